# Remedies of cpu.*, ram.* and storage.*.

remedy "cpu.lanes/short" {
  title    = "Make do with {lanes} CPU lanes, or get the {needed} that these cards want"
  title_zh = "适应 {lanes} 条 CPU 通道，或配足这些卡需要的 {needed} 条"
  params   = { lanes = "the", needed = "number" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only cpu.lanes,pcie.width {rig}"
  clears   = ["cpu.lanes", "pcie.width"]

  step {
    text    = "See which links take lanes now: cards, NVMe drives and network cards."
    text_zh = "看现在哪些链路占用通道：卡、NVMe 硬盘和网卡。"
    command = "for d in /sys/bus/pci/devices/*; do w=$(cat $d/current_link_width 2>/dev/null); case $(cat $d/class) in 0x0300*|0x0302*|0x0108*|0x0200*) echo \"$(basename $d) x$w\";; esac; done"
  }
  step {
    text    = "Power off and move drives and network cards to sockets of the chipset, so that the cards keep the CPU's lanes."
    text_zh = "关机，把硬盘和网卡移到芯片组的接口上，把 CPU 的通道留给卡。"
    hand    = true
  }
  step {
    text    = "For good: a platform with more lanes (Threadripper PRO, EPYC, Xeon W or Xeon SP), or a board with a PCIe switch; or fit no more than two cards on a desktop CPU."
    text_zh = "长远之计：通道更多的平台（Threadripper PRO、EPYC、Xeon W 或 Xeon SP），或带 PCIe 交换芯片的主板；或在桌面 CPU 上最多装两张卡。"
    hand    = true
  }
  step {
    text    = "If x8 is enough for what you train (data parallel, large batches), say so: allow_x8 = true in the profile, in rigs.hcl."
    text_zh = "若 x8 对你的训练足够（数据并行、大批量），请写明：在 rigs.hcl 的配置档中写 allow_x8 = true。"
    hand    = true
  }
}

remedy "cpu.cores/short" {
  title    = "Feed the cards with {cores} cores, or get {needed}"
  title_zh = "用 {cores} 个核心供给这些卡，或配足 {needed} 个"
  params   = { cores = "few", needed = "more" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only cpu.cores {rig}"
  clears   = ["cpu.cores"]

  step {
    text    = "See that no core is switched off: sockets × cores must be what the CPU's maker states."
    text_zh = "确认没有核心被关闭：路数 × 核数必须等于 CPU 厂商的标称。"
    command = "lscpu | grep -E '^(Model name|Socket|Core|Thread|On-line)'; cat /proc/cmdline"
  }
  step {
    text    = "Until there are more: start with one data-loading worker for each core and card, and see in training whether the cards wait for data."
    text_zh = "在增加之前：先按每核每卡一个数据加载进程开始，在训练中看卡是否在等数据。"
    command = "nvidia-smi dmon -s puc -d 5"
  }
  step {
    text    = "Prepare data ahead (tokenise, decode and resize once, store as shards), so that the cores only read. For good: fit a CPU with {needed} cores, or lower cores in the profile if your data needs few."
    text_zh = "提前准备数据（一次性完成分词、解码、缩放，存成分片），让核心只管读取。长远之计：换用 {needed} 核的 CPU；若数据不需要那么多核，可在配置档中调低 cores。"
    hand    = true
  }
}

remedy "ram.per-card/short" {
  title    = "Bring the RAM from {have} to {needed}"
  title_zh = "把内存从 {have} 增加到 {needed}"
  params   = { have = "what is there", needed = "what the profile asks" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only ram.per-card {rig}"
  clears   = ["ram.per-card"]

  step {
    text    = "See which sockets are filled, with what."
    text_zh = "看哪些插槽插了什么内存。"
    command = "sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator|Speed|Part Number)'"
  }
  step {
    text    = "Power off and add modules of the same size and speed, one to each channel before a second to any."
    text_zh = "关机，增加容量和频率相同的内存条，先让每个通道各有一条，再插第二条。"
    hand    = true
  }
  step {
    text    = "Until then: no optimizer offload to RAM, fewer data-loading workers, and no dataset held in memory for each rank."
    text_zh = "在此之前：不要把优化器卸载到内存，减少数据加载进程，不要让每个 rank 各存一份数据集。"
    hand    = true
  }
}

remedy "ram.per-card/lost-dimm" {
  title    = "Find the memory that is fitted and not used"
  title_zh = "找出已安装却没有使用的内存"
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only ram.per-card {rig}"
  clears   = ["ram.per-card"]

  step {
    text    = "See whether the kernel was told to use less (mem=, memmap=, crashkernel=)."
    text_zh = "看内核是否被要求少用内存（mem=、memmap=、crashkernel=）。"
    command = "cat /proc/cmdline; grep MemTotal /proc/meminfo; sudo dmidecode -t 17 | grep -E '^\\s(Size|Locator)'"
  }
  step {
    text    = "On a server, read which module the firmware mapped out."
    text_zh = "在服务器上，看固件屏蔽了哪条内存。"
    command = "sudo ipmitool sel elist | grep -iE 'memory|dimm' | tail -n 20"
  }
  step {
    text    = "Power off, reseat the modules until both latches close, and start again. If one stays out, let it trade places with another: the fault that moves with it is the module's, the other is the socket's or a bent CPU pin."
    text_zh = "关机，把内存条重新插到两侧卡扣都扣上，再开机。若有一条仍不识别，与另一条互换：故障随条走是内存条的问题，否则是插槽或 CPU 弯针的问题。"
    hand    = true
  }
}

remedy "storage.capacity/short" {
  title    = "Bring the NVMe storage from {have} to {needed}"
  title_zh = "把 NVMe 存储从 {have} 增加到 {needed}"
  params   = { have = "what is there", needed = "what the profile asks" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only storage.capacity {rig}"
  clears   = ["storage.capacity"]

  step {
    text    = "See which drives there are, and how they are attached."
    text_zh = "看有哪些硬盘，以及如何连接。"
    command = "lsblk -d -o NAME,MODEL,SIZE,ROTA,TRAN"
  }
  step {
    text    = "Power off and add an NVMe drive, in a socket that does not take lanes from a card's slot."
    text_zh = "关机，增加一块 NVMe 硬盘，装在不占用显卡插槽通道的接口上。"
    hand    = true
  }
  step {
    text    = "If your data lies on a network share that keeps up, lower storage_tb in the profile, in rigs.hcl."
    text_zh = "若数据放在速度跟得上的网络存储上，在 rigs.hcl 的配置档中调低 storage_tb。"
    hand    = true
  }
}
