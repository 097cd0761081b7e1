# Remedies of pcie.*: links that are narrower, slower or more shared than they could be.

remedy "pcie.width/slot-fault" {
  title  = "Get {bdf} from {width} to {expected}"
  params = { bdf = "the card", width = "the narrow link", expected = "full width", hop = "between the slot and the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.width {rig}"
  clears = ["pcie.width", "nccl.all-reduce"]

  step {
    text    = "See the link as it is now ({hop}): LnkCap is what the card can do, LnkSta what it does."
    command = "sudo lspci -vv -s {bdf} | grep -E 'LnkCap:|LnkSta:'"
  }
  step {
    text = "Power off and pull the mains plugs. Take the card out, wipe its gold contacts with isopropyl alcohol and a lint-free cloth, blow the slot out, and press the card in until the latch closes; a heavy card must not hang at its far end."
    hand = true
  }
  step {
    text = "With a riser: push both of its ends home, or try the card straight in the slot. A riser that gives {width} once will do it again; replace it by one made for the card's PCIe generation, and a shorter one."
    hand = true
  }
  step {
    text = "See that the slot is not split in the BIOS, and that no M.2 drive or other slot shares its lanes."
    bios = "pcie_bifurcation"
  }
  step {
    text = "If it stays, let the card trade places with a neighbour. If the fault moves with the card, the card's contacts are damaged; if it stays with the slot, look with a lamp for bent pins in the slot and in the CPU's socket."
    hand = true
  }
  step {
    text = "If the slot is wired {width} by design, write that down, so that it is judged as a limit and not as a fault: width in a slot block of chassis, in rigs.hcl."
    hand = true
  }
}

remedy "pcie.width/slot-limit" {
  title  = "Give {bdf} a slot with more lanes than {width}"
  params = { bdf = "the card", width = "it has", expected = "its full width" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.width {rig}"
  clears = ["pcie.width", "nccl.all-reduce"]

  step {
    text    = "See how the board's slots are wired; a long slot is not always a wide one."
    command = "sudo dmidecode -t 9 | grep -E 'Designation|Type:|Bus Address'"
  }
  step {
    text = "If the slot can have all lanes, give them to it."
    bios = "pcie_bifurcation"
  }
  step {
    text = "Power off and move the card to a slot that is wired {expected}, or empty the slot or M.2 socket that shares its lanes."
    hand = true
  }
  step {
    text = "If this is how the rig is meant to be, say so: allow_x8 = true in its profile, in rigs.hcl. Data parallel training with large batches loses little; sharded training loses much."
    hand = true
  }
}

remedy "pcie.width/off-bus" {
  title  = "Bring {bdf} back onto the bus"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.width,driver.loaded {rig}"
  clears = ["pcie.width", "driver.loaded", "gpu.count"]

  step {
    text    = "Read when it left, and what came before."
    command = "sudo dmesg | grep -E 'Xid|fallen off|AER|PCIe Bus Error|link is down' | tail -n 40"
  }
  step {
    text = "Shut down, pull the mains plugs for 30 seconds, push the card's power plugs in until they click, reseat the card, and replace its riser if it has one."
    hand = true
  }
  step {
    text = "If it leaves again in another slot and on other cables, return the card."
    hand = true
  }
}

remedy "pcie.speed/slot-gen" {
  title  = "Let {bdf} run at {expected} and not {gen}"
  params = { bdf = "the card", gen = "a lower generation", expected = "its own generation" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only pcie.speed {rig}"
  clears = ["pcie.speed", "nccl.all-reduce"]

  step {
    text = "Lift a limit that was set for the slot."
    bios = "pcie_link_speed"
  }
  step {
    text    = "See which end holds it back: the port above, or the card (a card can show a forced limit as its own)."
    command = "sudo lspci -vv -s {bdf} | grep -E 'LnkCap:|LnkCap2:|LnkCtl2:'"
  }
  step {
    text = "If the limit was set because the link was unstable, replace the riser by one made for {expected}, 20 cm or shorter, and set the slot back to Auto."
    hand = true
  }
  step {
    text = "If the CPU or the board has no more than {gen}, this is the machine's limit: plan with it, or move the card to a newer one."
    hand = true
  }
}

remedy "pcie.speed/under-load" {
  title  = "Find why {bdf} stays at {gen} under load"
  params = { bdf = "the card", gen = "a lower generation", expected = "the generation that both ends can do" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.speed,nccl.all-reduce {rig}"
  clears = ["pcie.speed", "nccl.all-reduce"]

  step {
    text    = "Count the link's errors. Counts that grow under load are the riser or the contacts; none means that a setting holds the link down."
    command = "grep -H . /sys/bus/pci/devices/{bdf}/aer_dev_correctable"
  }
  step {
    text = "See that the slot is not held to a lower generation."
    bios = "pcie_link_speed"
  }
  step {
    text = "Power off, reseat the card with clean contacts, and replace a riser by a shorter one made for {expected}; riser cables side by side disturb each other, so keep them apart."
    hand = true
  }
  step {
    text    = "Watch the link while a job runs."
    command = "nvidia-smi --query-gpu=pci.bus_id,pstate,pcie.link.gen.current,pcie.link.width.current --format=csv -l 1"
  }
}

remedy "pcie.uplink/shared" {
  title  = "Relieve the uplink that cards share"
  params = { port = "the switch's port", cards = "several cards" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.uplink,nccl.all-reduce {rig}"
  clears = ["pcie.uplink", "nccl.all-reduce"]

  step {
    text    = "See what hangs below {port}: {cards}, and any drives and network cards."
    command = "lspci -tvnn"
  }
  step {
    text = "Power off and spread the cards evenly over the board's switches and CPU slots; move NVMe drives and network cards from this switch to others."
    hand = true
  }
  step {
    text = "See that the slot which feeds the switch has all its lanes."
    bios = "pcie_bifurcation"
  }
  step {
    text    = "Where the board cannot do better, talk less: accumulate gradients, and let a job use the cards of one switch, for instance the first four."
    command = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,3"
  }
}

remedy "pcie.uplink/chipset" {
  title  = "Move {bdf} from the chipset to a slot of the CPU"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.uplink {rig}"
  clears = ["pcie.uplink", "nccl.all-reduce"]

  step {
    text    = "See what the chipset carries: all of it shares one x4 link to the CPU."
    command = "lspci -tvnn"
  }
  step {
    text = "Power off and move the card to a slot of the CPU (mostly the first and second long ones from the CPU), or to a bifurcation riser in such a slot."
    hand = true
  }
  step {
    text    = "Until then keep it out of training, and use it for inference by itself."
    command = "nvidia-smi --query-gpu=index,pci.bus_id --format=csv; export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0"
  }
}

remedy "pcie.uplink/external" {
  title  = "Put {bdf} inside the machine"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only pcie.uplink {rig}"
  clears = ["pcie.uplink"]

  step {
    text = "Shut down and move the card from its Thunderbolt or USB4 case to a slot, or to an OCuLink or SlimSAS riser of the CPU: the case has at most an x4 link, and its cable can be unplugged in the middle of a run."
    hand = true
  }
  step {
    text    = "Until then keep it out of training."
    command = "nvidia-smi --query-gpu=index,pci.bus_id --format=csv; export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0"
  }
}
