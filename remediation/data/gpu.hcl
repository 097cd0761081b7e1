# Remedies of gpu.*: cards that are missing, too many, or not what was bought.
# The shape of a remedy: params are the values that a finding brings, each with the words that stand in for it.
# Every step has a command, a BIOS option (bios) or is done by hand.

remedy "gpu.count/missing-card" {
  title    = "Find the card that the board does not see ({seen} of {expected})"
  title_zh = "找出主板看不到的卡（{seen} / {expected}）"
  params   = { expected = "the number declared", seen = "fewer" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only gpu.count {rig}"
  clears   = ["gpu.count"]

  step {
    text    = "List the cards that the bus sees and compare with the slots that hold one: the address that is not there is the card to look for."
    text_zh = "列出总线上看到的卡，与插了卡的插槽对照：缺少的地址就是要找的卡。"
    command = "lspci -D -nn -d 10de: | grep -E '\\[030[02]\\]'"
  }
  step {
    text    = "Let the firmware map cards above 4 GiB; without it some of several cards are often left out."
    text_zh = "让固件把卡映射到 4 GiB 以上；不打开时，多卡机器常有几张卡被丢下。"
    bios    = "above_4g_decoding"
  }
  step {
    text    = "See that the slot of the missing card is not split (x4x4x4x4) or switched off."
    text_zh = "确认缺失的卡所在插槽没有被拆分（x4x4x4x4）或关闭。"
    bios    = "pcie_bifurcation"
  }
  step {
    text    = "Power off and pull the mains plugs. Push each power plug of the missing card in until it clicks, with no gap at the collar; press the card down until the slot's latch closes; with a riser, push both of its ends home."
    text_zh = "关机并拔掉电源线。把缺失卡的每个供电插头插到咔哒一声、根部无缝隙；把卡压到插槽卡扣扣上；若用延长线，两端都插到底。"
    hand    = true
  }
  step {
    text    = "If it is still missing, let it trade places with a card that is seen. If the fault moves with the card, the card is faulty: return it. If it stays with the slot, replace the riser; a slot that belongs to an empty second CPU socket stays dead."
    text_zh = "若仍缺失，让它与能识别的卡互换位置。故障随卡走，则卡有问题，退换；故障留在插槽，则更换延长线；属于空置的第二颗 CPU 的插槽不会工作。"
    hand    = true
  }
}

remedy "gpu.count/driver-lost" {
  title    = "Bring {bdf} back to the driver"
  title_zh = "让 {bdf} 回到驱动中"
  params   = { bdf = "the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only gpu.count,driver.loaded {rig}"
  clears   = ["gpu.count", "driver.loaded"]

  step {
    text    = "See which driver holds the card: it must be nvidia."
    text_zh = "看哪个驱动占用了该卡：必须是 nvidia。"
    command = "lspci -nnk -s {bdf}"
  }
  step {
    text    = "Read why the NVIDIA driver gave it up. 'fallen off the bus' (Xid 79) is power, riser or heat; 'BAR1 is 0M' is address space."
    text_zh = "看 NVIDIA 驱动为何放弃它。'fallen off the bus'（Xid 79）是供电、延长线或过热；'BAR1 is 0M' 是地址空间。"
    command = "sudo dmesg | grep -iE 'NVRM|Xid|BAR 1' | tail -n 50"
  }
  step {
    text    = "Shut down, pull the mains plugs, wait 30 seconds and start again: a card that hangs is not reset by a warm reboot."
    text_zh = "关机，拔掉电源线，等 30 秒再开机：挂死的卡热重启无法复位。"
    hand    = true
  }
  step {
    text    = "If it is lost again, push its power plugs in until they click, reseat it, and try it in the slot of a card that works; if the fault moves with the card, return the card."
    text_zh = "若再次丢失，把供电插头插到咔哒一声，重新插卡，并换到正常卡的插槽试；故障随卡走则退换该卡。"
    hand    = true
  }
}

remedy "gpu.count/too-many" {
  title    = "Make the declaration and the machine agree ({seen} cards, {expected} declared)"
  title_zh = "让声明与机器一致（实有 {seen} 张，声明 {expected} 张）"
  params   = { expected = "fewer", seen = "more" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.count {rig}"
  clears   = ["gpu.count"]

  step {
    text    = "List what is fitted."
    text_zh = "列出装了哪些卡。"
    command = "nvidia-smi --query-gpu=index,pci.bus_id,name --format=csv"
  }
  step {
    text    = "If all of them belong there, write cards = {seen} for {rig} in rigs.hcl. If not, another machine may answer at this address: compare the host name and the board that the report shows."
    text_zh = "若全部应在其中，在 rigs.hcl 中为 {rig} 写上 cards = {seen}。若不是，可能是另一台机器在此地址应答：请对照报告中的主机名和主板。"
    hand    = true
  }
}

remedy "gpu.model/mismatch" {
  title    = "Settle which card {bdf} really is ({seen}, not {expected})"
  title_zh = "确认 {bdf} 究竟是什么卡（实为 {seen}，而非 {expected}）"
  params   = { bdf = "the card", expected = "the model declared", seen = "another model" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.model {rig}"
  clears   = ["gpu.model"]

  step {
    text    = "Read what the card says of itself: name, memory, VBIOS and part number. The part number starts with the device id of the die."
    text_zh = "看卡自己的信息：名称、显存、VBIOS 和部件号。部件号以芯片的设备 ID 开头。"
    command = "nvidia-smi -q -i {bdf} | grep -E 'Product Name|VBIOS Version|GPU Part Number|Total|Device Id'"
  }
  step {
    text    = "If the declaration is wrong, write gpu = \"{seen}\" for {rig} in rigs.hcl."
    text_zh = "若是声明有误，在 rigs.hcl 中为 {rig} 写上 gpu = \"{seen}\"。"
    hand    = true
  }
  step {
    text    = "If the invoice names {expected}, photograph the label on the back of the card and send it to the seller with this report; do not train on the card meanwhile, since a flashed or converted card can fail under load."
    text_zh = "若发票上写的是 {expected}，拍下卡背面的标签，连同本报告发给卖家；此间不要用它训练，刷过或改装过的卡可能在负载下出错。"
    hand    = true
  }
}

remedy "gpu.model/mixed" {
  title    = "Train on equal cards only"
  title_zh = "只用同型号的卡训练"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.model {rig}"
  clears   = ["gpu.model"]

  step {
    text    = "List the models with their indices."
    text_zh = "列出各型号及其编号。"
    command = "nvidia-smi --query-gpu=index,pci.bus_id,name,memory.total --format=csv"
  }
  step {
    text    = "Let a job use only the cards of one model, for instance the first two: the slowest and the smallest card set the pace of all."
    text_zh = "让作业只用同一型号的卡，例如前两张：最慢、显存最小的卡决定整体速度。"
    command = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1"
  }
  step {
    text    = "For good: fit equal cards in one rig, and move the odd ones to another."
    text_zh = "长远之计：一台机器装同型号的卡，把不同的移到另一台。"
    hand    = true
  }
}
