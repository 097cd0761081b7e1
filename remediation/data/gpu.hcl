# Remedies of gpu.*: cards that are missing, too many, or not what was bought.
# The shape of a remedy: params are the values that a finding brings, each with the words that stand in for it.
# Every step has a command, a BIOS option (bios) or is done by hand.

remedy "gpu.count/missing-card" {
  title  = "Find the card that the board does not see ({seen} of {expected})"
  params = { expected = "the number declared", seen = "fewer" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only gpu.count {rig}"
  clears = ["gpu.count"]

  step {
    text    = "List the cards that the bus sees and compare with the slots that hold one: the address that is not there is the card to look for."
    command = "lspci -D -nn -d 10de: | grep -E '\\[030[02]\\]'"
  }
  step {
    text = "Let the firmware map cards above 4 GiB; without it some of several cards are often left out."
    bios = "above_4g_decoding"
  }
  step {
    text = "See that the slot of the missing card is not split (x4x4x4x4) or switched off."
    bios = "pcie_bifurcation"
  }
  step {
    text = "Power off and pull the mains plugs. Push each power plug of the missing card in until it clicks, with no gap at the collar; press the card down until the slot's latch closes; with a riser, push both of its ends home."
    hand = true
  }
  step {
    text = "If it is still missing, let it trade places with a card that is seen. If the fault moves with the card, the card is faulty: return it. If it stays with the slot, replace the riser; a slot that belongs to an empty second CPU socket stays dead."
    hand = true
  }
}

remedy "gpu.count/driver-lost" {
  title  = "Bring {bdf} back to the driver"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only gpu.count,driver.loaded {rig}"
  clears = ["gpu.count", "driver.loaded"]

  step {
    text    = "See which driver holds the card: it must be nvidia."
    command = "lspci -nnk -s {bdf}"
  }
  step {
    text    = "Read why the NVIDIA driver gave it up. 'fallen off the bus' (Xid 79) is power, riser or heat; 'BAR1 is 0M' is address space."
    command = "sudo dmesg | grep -iE 'NVRM|Xid|BAR 1' | tail -n 50"
  }
  step {
    text = "Shut down, pull the mains plugs, wait 30 seconds and start again: a card that hangs is not reset by a warm reboot."
    hand = true
  }
  step {
    text = "If it is lost again, push its power plugs in until they click, reseat it, and try it in the slot of a card that works; if the fault moves with the card, return the card."
    hand = true
  }
}

remedy "gpu.count/too-many" {
  title  = "Make the declaration and the machine agree ({seen} cards, {expected} declared)"
  params = { expected = "fewer", seen = "more" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only gpu.count {rig}"
  clears = ["gpu.count"]

  step {
    text    = "List what is fitted."
    command = "nvidia-smi --query-gpu=index,pci.bus_id,name --format=csv"
  }
  step {
    text = "If all of them belong there, write cards = {seen} for {rig} in rigs.hcl. If not, another machine may answer at this address: compare the host name and the board that the report shows."
    hand = true
  }
}

remedy "gpu.model/mismatch" {
  title  = "Settle which card {bdf} really is ({seen}, not {expected})"
  params = { bdf = "the card", expected = "the model declared", seen = "another model" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only gpu.model {rig}"
  clears = ["gpu.model"]

  step {
    text    = "Read what the card says of itself: name, memory, VBIOS and part number. The part number starts with the device id of the die."
    command = "nvidia-smi -q -i {bdf} | grep -E 'Product Name|VBIOS Version|GPU Part Number|Total|Device Id'"
  }
  step {
    text = "If the declaration is wrong, write gpu = \"{seen}\" for {rig} in rigs.hcl."
    hand = true
  }
  step {
    text = "If the invoice names {expected}, photograph the label on the back of the card and send it to the seller with this report; do not train on the card meanwhile, since a flashed or converted card can fail under load."
    hand = true
  }
}

remedy "gpu.model/mixed" {
  title  = "Train on equal cards only"
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only gpu.model {rig}"
  clears = ["gpu.model"]

  step {
    text    = "List the models with their indices."
    command = "nvidia-smi --query-gpu=index,pci.bus_id,name,memory.total --format=csv"
  }
  step {
    text    = "Let a job use only the cards of one model, for instance the first two: the slowest and the smallest card set the pace of all."
    command = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1"
  }
  step {
    text = "For good: fit equal cards in one rig, and move the odd ones to another."
    hand = true
  }
}
