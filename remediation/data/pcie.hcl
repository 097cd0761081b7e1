# Remedies of pcie.*: links that are narrower, slower or more shared than they could be.

remedy "pcie.width/slot-fault" {
  title    = "Get {bdf} from {width} to {expected}"
  title_zh = "让 {bdf} 从 {width} 恢复到 {expected}"
  params   = { bdf = "the card", width = "the narrow link", expected = "full width", hop = "between the slot and the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.width {rig}"
  clears   = ["pcie.width", "nccl.all-reduce"]

  step {
    text    = "See the link as it is now ({hop}): LnkCap is what the card can do, LnkSta what it does."
    text_zh = "看链路现状（{hop}）：LnkCap 是卡的能力，LnkSta 是当前状态。"
    command = "sudo lspci -vv -s {bdf} | grep -E 'LnkCap:|LnkSta:'"
  }
  step {
    text    = "Power off and pull the mains plugs. Take the card out, wipe its gold contacts with isopropyl alcohol and a lint-free cloth, blow the slot out, and press the card in until the latch closes; a heavy card must not hang at its far end."
    text_zh = "关机并拔掉电源线。取出卡，用异丙醇和无绒布擦拭金手指，吹净插槽，把卡压到卡扣扣上；重卡的尾端不能悬空。"
    hand    = true
  }
  step {
    text    = "With a riser: push both of its ends home, or try the card straight in the slot. A riser that gives {width} once will do it again; replace it by one made for the card's PCIe generation, and a shorter one."
    text_zh = "若用延长线：两端都插到底，或把卡直接插到插槽试试。出现过一次 {width} 的延长线还会再犯；换成支持该卡 PCIe 代数、且更短的。"
    hand    = true
  }
  step {
    text    = "See that the slot is not split in the BIOS, and that no M.2 drive or other slot shares its lanes."
    text_zh = "确认 BIOS 没有拆分该插槽，也没有 M.2 硬盘或其他插槽共享其通道。"
    bios    = "pcie_bifurcation"
  }
  step {
    text    = "If it stays, let the card trade places with a neighbour. If the fault moves with the card, the card's contacts are damaged; if it stays with the slot, look with a lamp for bent pins in the slot and in the CPU's socket."
    text_zh = "若仍如此，让卡与相邻卡互换位置。故障随卡走，则卡的触点损坏；留在插槽，则用灯检查插槽和 CPU 插座是否有弯针。"
    hand    = true
  }
  step {
    text    = "If the slot has only {width} by design, write that down, so that it is judged as a limit and not as a fault: width in a slot block of chassis, in rigs.hcl."
    text_zh = "若该插槽设计上就是 {width}，请写明，使其按限制而不是故障判断：在 rigs.hcl 的 chassis 的 slot 块中写 width。"
    hand    = true
  }
}

remedy "pcie.width/slot-limit" {
  title    = "Give {bdf} a slot with more lanes than {width}"
  title_zh = "给 {bdf} 一个通道数多于 {width} 的插槽"
  params   = { bdf = "the card", width = "it has", expected = "its full width" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.width {rig}"
  clears   = ["pcie.width", "nccl.all-reduce"]

  step {
    text    = "See how the board's slots are wired; a long slot is not always a wide one."
    text_zh = "看主板插槽如何布线；长插槽不一定是宽插槽。"
    command = "sudo dmidecode -t 9 | grep -E 'Designation|Type:|Bus Address'"
  }
  step {
    text    = "If the slot can have all lanes, give them to it."
    text_zh = "若该插槽可以得到全部通道，就分给它。"
    bios    = "pcie_bifurcation"
  }
  step {
    text    = "Power off and move the card to a slot that is wired {expected}, or empty the slot or M.2 socket that shares its lanes."
    text_zh = "关机，把卡移到布线为 {expected} 的插槽，或腾空与其共享通道的插槽或 M.2 接口。"
    hand    = true
  }
  step {
    text    = "If this is how the rig is meant to be, say so: allow_x8 = true in its profile, in rigs.hcl. Data parallel training with large batches loses little; sharded training loses much."
    text_zh = "若机器本来就是这样设计，请写明：在 rigs.hcl 的配置档中写 allow_x8 = true。大批量的数据并行训练损失不大；分片训练损失较大。"
    hand    = true
  }
}

remedy "pcie.width/off-bus" {
  title    = "Bring {bdf} back onto the bus"
  title_zh = "让 {bdf} 回到总线上"
  params   = { bdf = "the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.width,driver.loaded {rig}"
  clears   = ["pcie.width", "driver.loaded", "gpu.count"]

  step {
    text    = "Read when it left, and what came before."
    text_zh = "看它何时离开，之前发生了什么。"
    command = "sudo dmesg | grep -E 'Xid|fallen off|AER|PCIe Bus Error|link is down' | tail -n 40"
  }
  step {
    text    = "Shut down, pull the mains plugs for 30 seconds, push the card's power plugs in until they click, reseat the card, and replace its riser if it has one."
    text_zh = "关机，拔掉电源线 30 秒，把供电插头插到咔哒一声，重新插卡，若有延长线则更换。"
    hand    = true
  }
  step {
    text    = "If it leaves again in another slot and on other cables, return the card."
    text_zh = "若换插槽、换线材后仍离开，退换该卡。"
    hand    = true
  }
}

remedy "pcie.speed/slot-gen" {
  title    = "Let {bdf} run at {expected} and not {gen}"
  title_zh = "让 {bdf} 运行在 {expected} 而不是 {gen}"
  params   = { bdf = "the card", gen = "a lower generation", expected = "its own generation" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only pcie.speed {rig}"
  clears   = ["pcie.speed", "nccl.all-reduce"]

  step {
    text    = "Lift a limit that was set for the slot."
    text_zh = "取消对该插槽设置的限制。"
    bios    = "pcie_link_speed"
  }
  step {
    text    = "See which end holds it back: the port above, or the card (a card can show a forced limit as its own)."
    text_zh = "看是哪一端在限制：上游端口，还是卡（卡可能把被强制的限制显示为自身能力）。"
    command = "sudo lspci -vv -s {bdf} | grep -E 'LnkCap:|LnkCap2:|LnkCtl2:'"
  }
  step {
    text    = "If the limit was set because the link was unstable, replace the riser by one made for {expected}, 20 cm or shorter, and set the slot back to Auto."
    text_zh = "若当初因链路不稳而设限，换一条支持 {expected}、20 cm 以内的延长线，再把插槽设回 Auto。"
    hand    = true
  }
  step {
    text    = "If the CPU or the board has no more than {gen}, this is the machine's limit: plan with it, or move the card to a newer one."
    text_zh = "若 CPU 或主板最高只有 {gen}，这就是机器的上限：按此规划，或把卡移到更新的机器。"
    hand    = true
  }
}

remedy "pcie.speed/under-load" {
  title    = "Find why {bdf} stays at {gen} under load"
  title_zh = "查明 {bdf} 为何在负载下停在 {gen}"
  params   = { bdf = "the card", gen = "a lower generation", expected = "the generation that both ends can do" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.speed,nccl.all-reduce {rig}"
  clears   = ["pcie.speed", "nccl.all-reduce"]

  step {
    text    = "Count the link's errors. Counts that grow under load are the riser or the contacts; none means that a setting holds the link down."
    text_zh = "统计链路错误。负载下增长说明是延长线或触点；没有错误说明是某项设置压低了链路。"
    command = "grep -H . /sys/bus/pci/devices/{bdf}/aer_dev_correctable"
  }
  step {
    text    = "See that the slot is not held to a lower generation."
    text_zh = "确认该插槽没有被限制到较低代数。"
    bios    = "pcie_link_speed"
  }
  step {
    text    = "Power off, reseat the card with clean contacts, and replace a riser by a shorter one made for {expected}; riser cables side by side disturb each other, so keep them apart."
    text_zh = "关机，清洁触点后重新插卡，换一条更短、支持 {expected} 的延长线；并排的延长线会互相干扰，请分开。"
    hand    = true
  }
  step {
    text    = "Watch the link while a job runs."
    text_zh = "在作业运行时观察链路。"
    command = "nvidia-smi --query-gpu=pci.bus_id,pstate,pcie.link.gen.current,pcie.link.width.current --format=csv -l 1"
  }
}

remedy "pcie.uplink/shared" {
  title    = "Relieve the uplink that cards share"
  title_zh = "减轻多卡共用上行链路的压力"
  params   = { port = "the switch's port", cards = "several cards" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.uplink,nccl.all-reduce {rig}"
  clears   = ["pcie.uplink", "nccl.all-reduce"]

  step {
    text    = "See what hangs below {port}: {cards}, and any drives and network cards."
    text_zh = "看 {port} 之下有什么：{cards}，以及硬盘和网卡。"
    command = "lspci -tvnn"
  }
  step {
    text    = "Power off and spread the cards evenly over the board's switches and CPU slots; move NVMe drives and network cards from this switch to others."
    text_zh = "关机，把卡均匀分布到主板的各交换芯片和 CPU 插槽；把 NVMe 硬盘和网卡从这个交换芯片移到别处。"
    hand    = true
  }
  step {
    text    = "See that the slot which feeds the switch has all its lanes."
    text_zh = "确认给交换芯片供通道的插槽拥有全部通道。"
    bios    = "pcie_bifurcation"
  }
  step {
    text    = "Where the board cannot do better, talk less: accumulate gradients, and let a job use the cards of one switch, for instance the first four."
    text_zh = "主板无法改善时，减少通信：累积梯度，并让作业使用同一交换芯片下的卡，例如前四张。"
    command = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,3"
  }
}

remedy "pcie.uplink/chipset" {
  title    = "Move {bdf} from the chipset to a slot of the CPU"
  title_zh = "把 {bdf} 从芯片组移到 CPU 的插槽"
  params   = { bdf = "the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.uplink {rig}"
  clears   = ["pcie.uplink", "nccl.all-reduce"]

  step {
    text    = "See what the chipset carries: all of it shares one x4 link to the CPU."
    text_zh = "看芯片组承载了什么：它们全部共用一条到 CPU 的 x4 链路。"
    command = "lspci -tvnn"
  }
  step {
    text    = "Power off and move the card to a slot of the CPU (mostly the first and second long ones from the CPU), or to a bifurcation riser in such a slot."
    text_zh = "关机，把卡移到 CPU 的插槽（通常是离 CPU 最近的第一、第二条长插槽），或移到此类插槽上的拆分转接卡。"
    hand    = true
  }
  step {
    text    = "Until then keep it out of training, and use it for inference by itself."
    text_zh = "在此之前不要用它训练，可单独用于推理。"
    command = "nvidia-smi --query-gpu=index,pci.bus_id --format=csv; export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0"
  }
}

remedy "pcie.uplink/external" {
  title    = "Put {bdf} inside the machine"
  title_zh = "把 {bdf} 装进机器内部"
  params   = { bdf = "the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.uplink {rig}"
  clears   = ["pcie.uplink"]

  step {
    text    = "Shut down and move the card from its Thunderbolt or USB4 case to a slot, or to an OCuLink or SlimSAS riser of the CPU: the case has at most an x4 link, and its cable can be unplugged in the middle of a run."
    text_zh = "关机，把卡从 Thunderbolt 或 USB4 外置盒移到插槽，或 CPU 的 OCuLink、SlimSAS 转接：外置盒最多只有 x4 链路，线缆还可能在运行中被拔掉。"
    hand    = true
  }
  step {
    text    = "Until then keep it out of training."
    text_zh = "在此之前不要用它训练。"
    command = "nvidia-smi --query-gpu=index,pci.bus_id --format=csv; export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0"
  }
}
