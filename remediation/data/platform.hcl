# Remedies of cpu.*, ram.* and storage.*.

remedy "cpu.lanes/short" {
  title  = "Make do with {lanes} CPU lanes, or get the {needed} that these cards want"
  params = { lanes = "the", needed = "number" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only cpu.lanes,pcie.width {rig}"
  clears = ["cpu.lanes", "pcie.width"]

  step {
    text    = "See which links take lanes now: cards, NVMe drives and network cards."
    command = "for d in /sys/bus/pci/devices/*; do w=$(cat $d/current_link_width 2>/dev/null); case $(cat $d/class) in 0x0300*|0x0302*|0x0108*|0x0200*) echo \"$(basename $d) x$w\";; esac; done"
  }
  step {
    text = "Power off and move drives and network cards to sockets of the chipset, so that the cards keep the CPU's lanes."
    hand = true
  }
  step {
    text = "For good: a platform with more lanes (Threadripper PRO, EPYC, Xeon W or Xeon SP), or a board with a PCIe switch; or fit no more than two cards on a desktop CPU."
    hand = true
  }
  step {
    text = "If x8 is enough for what you train (data parallel, large batches), say so: allow_x8 = true in the profile, in rigs.hcl."
    hand = true
  }
}

remedy "cpu.cores/short" {
  title  = "Feed the cards with {cores} cores, or get {needed}"
  params = { cores = "few", needed = "more" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only cpu.cores {rig}"
  clears = ["cpu.cores"]

  step {
    text    = "See that no core is switched off: sockets × cores must be what the CPU's maker states."
    command = "lscpu | grep -E '^(Model name|Socket|Core|Thread|On-line)'; cat /proc/cmdline"
  }
  step {
    text    = "Until there are more: start with one data-loading worker for each core and card, and see in training whether the cards wait for data."
    command = "nvidia-smi dmon -s puc -d 5"
  }
  step {
    text = "Prepare data ahead (tokenise, decode and resize once, store as shards), so that the cores only read. For good: fit a CPU with {needed} cores, or lower cores in the profile if your data needs few."
    hand = true
  }
}

remedy "ram.per-card/short" {
  title  = "Bring the RAM from {have} to {needed}"
  params = { have = "what is there", needed = "what the profile asks" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only ram.per-card {rig}"
  clears = ["ram.per-card"]

  step {
    text    = "See which sockets are filled, with what."
    command = "sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator|Speed|Part Number)'"
  }
  step {
    text = "Power off and add modules of the same size and speed, one to each channel before a second to any."
    hand = true
  }
  step {
    text = "Until then: no optimizer offload to RAM, fewer data-loading workers, and no dataset held in memory for each rank."
    hand = true
  }
}

remedy "ram.per-card/lost-dimm" {
  title  = "Find the memory that is fitted and not used"
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only ram.per-card {rig}"
  clears = ["ram.per-card"]

  step {
    text    = "See whether the kernel was told to use less (mem=, memmap=, crashkernel=)."
    command = "cat /proc/cmdline; grep MemTotal /proc/meminfo; sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator)'"
  }
  step {
    text    = "On a server, read which module the firmware mapped out."
    command = "sudo ipmitool sel elist | grep -iE 'memory|dimm' | tail -n 20"
  }
  step {
    text = "Power off, reseat the modules until both latches close, and start again. If one stays out, let it trade places with another: the fault that moves with it is the module's, the other is the socket's or a bent CPU pin."
    hand = true
  }
}

remedy "storage.capacity/short" {
  title  = "Bring the NVMe storage from {have} to {needed}"
  params = { have = "what is there", needed = "what the profile asks" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only storage.capacity {rig}"
  clears = ["storage.capacity"]

  step {
    text    = "See which drives there are, and how they are attached."
    command = "lsblk -d -o NAME,MODEL,SIZE,ROTA,TRAN"
  }
  step {
    text = "Power off and add an NVMe drive, in a socket that does not take lanes from a card's slot."
    hand = true
  }
  step {
    text = "If your data lies on a network share that keeps up, lower storage_tb in the profile, in rigs.hcl."
    hand = true
  }
}
