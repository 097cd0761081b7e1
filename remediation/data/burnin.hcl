remedy "burn-in.thermal/hot" {
  title    = "Cool {bdf} under load"
  title_zh = "改善 {bdf} 满载时的散热"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig}"
  clears   = ["burn-in.thermal"]

  step {
    text    = "Give it air: a free slot beside air-cooled cards, fans that blow along the cards from front to back at full speed, no cable before the intake, dust off the fins; look at the temperature of the room's air at the intake."
    text_zh = "保证进风：风冷卡旁边空出一个槽位，机箱风扇沿显卡方向前进后出并开到全速，进风口不要被线材挡住，清理散热鳍片上的灰尘；检查进风口处的室温。"
    hand    = true
  }
  step {
    text    = "When a card that has air is still hot, its thermal paste or pads may have given up: compare it with its neighbours in another slot."
    text_zh = "如果进风正常但显卡仍然过热，可能是导热硅脂或导热垫失效：换一个槽位，与相邻显卡对比。"
    hand    = true
  }
  step {
    text    = "Until then a power cap keeps it running: a sweep shows what each cap costs on this rig, and restores the limits."
    text_zh = "在此之前可以用功耗上限保持运行：扫描会给出本机每个功耗上限的性能代价，并恢复原来的设置。"
    command = "preflight probe burn-in -i rigs.hcl {rig} --duration quick --sweep 450,400,350,300"
  }
}

remedy "burn-in.thermal/power-brake" {
  title    = "Find what brakes {bdf}"
  title_zh = "查明 {bdf} 被强制降频的原因"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig} --duration quick"
  clears   = ["burn-in.thermal"]

  step {
    text    = "The board or the supply asked the card to slow down, mostly because its power connector sags or a sense wire has no contact: reseat the plug, give the card a cable of its own without splitters, look for brown pins."
    text_zh = "主板或电源要求显卡降速，多半是供电接口电压跌落或侦测针接触不良：重新插紧供电接头，使用单独的、不带转接的供电线，检查针脚是否发黄发黑。"
    hand    = true
  }
  step {
    text    = "In a server, read what the BMC says of its supplies, and whether one of them is out."
    text_zh = "如果是服务器，查看 BMC 中电源的状态，确认是否有电源失效。"
    command = "sudo ipmitool sdr type 'Power Supply'"
  }
}

remedy "burn-in.thermal/spread" {
  title    = "Bring air to {bdf}"
  title_zh = "改善 {bdf} 的进风"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig}"
  clears   = ["burn-in.thermal"]

  step {
    text    = "It is much warmer than its neighbours at the same work: look for what stands before its fans, for a fan that does not turn, and for a neighbour's hot exhaust; leave a slot free beside it."
    text_zh = "在相同负载下它比相邻显卡热很多：检查其风扇前是否有遮挡、是否有风扇不转、是否吸入了相邻显卡排出的热风；在它旁边空出一个槽位。"
    hand    = true
  }
  step {
    text    = "Swap it with the coolest card. When the heat stays in the slot it is the air; when it moves with the card it is the card."
    text_zh = "与温度最低的显卡互换位置：如果高温留在原槽位，是风道问题；如果跟随显卡移动，是显卡本身的问题。"
    hand    = true
  }
}

remedy "burn-in.power/host-lost" {
  title    = "Give the rig power for the load of all cards at once"
  title_zh = "为所有显卡同时满载提供足够的供电"
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig} --duration quick"
  clears   = ["burn-in.power"]

  step {
    text    = "A host that goes off when all cards begin at once mostly has a supply whose protection trips at the step, or a breaker or extension cord that does: look at the breaker first, then at the supplies' rating against the sum above."
    text_zh = "所有显卡同时开始满载时主机断电，多半是电源的过流保护动作，或者断路器、插线板跳闸：先看断路器，再用上面的合计值核对电源额定功率。"
    hand    = true
  }
  step {
    text    = "See whether the machine logged why it stopped: a clean log that ends in the middle is a loss of power."
    text_zh = "查看系统是否记录了停机原因：日志在中途突然结束，说明是断电。"
    command = "journalctl -b -1 -n 50 --no-pager; sudo ipmitool sel list | tail -n 20"
  }
  step {
    text    = "Spread the cards over more supplies or circuits. Until then a power cap lowers the step; measure again with it."
    text_zh = "把显卡分散到更多电源或回路。在此之前可以用功耗上限降低冲击，设置后重新测试。"
    command = "preflight provision -i rigs.hcl power-cap {rig} --apply"
  }
}

remedy "burn-in.power/card-lost" {
  title    = "Find why {bdf} gives in under load"
  title_zh = "查明 {bdf} 满载时掉卡的原因"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight probe burn-in -i rigs.hcl {rig} --duration quick"
  clears   = ["burn-in.power"]

  step {
    text    = "Switch the rig off; reseat the card, its riser and its power plug, and give the card a cable of its own. A loose 16-pin plug and a bad riser are the usual reasons."
    text_zh = "关机后重新插紧显卡、转接线和供电接头，并使用单独的供电线。16 针接头松动和转接线不良是常见原因。"
    hand    = true
  }
  step {
    text    = "Read what the kernel said before the card went."
    text_zh = "查看掉卡之前内核的记录。"
    command = "sudo dmesg | grep -E 'NVRM|AER|PCIe Bus Error' | tail -n 40"
  }
  step {
    text    = "Put it in another slot with another cable. When the fault moves with the card, have the card replaced."
    text_zh = "换一个槽位和另一根供电线再试。如果故障跟随显卡移动，更换显卡。"
    hand    = true
  }
}

remedy "burn-in.power/low-load" {
  title    = "Find what keeps {bdf} from its power"
  title_zh = "查明 {bdf} 功耗上不去的原因"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig} --duration quick"
  clears   = ["burn-in.power"]

  step {
    text    = "Look whether its clocks are held back by hand, and by what under load."
    text_zh = "查看其时钟是否被手动限制，以及满载时的降频原因。"
    command = "nvidia-smi -i {bdf} -q -d CLOCK,PERFORMANCE,POWER; sudo nvidia-smi -i {bdf} -rgc"
  }
  step {
    text    = "When the load is right and the draw is small on every card of the kind, the load does not prove the supply: run a load of your own beside preflight watch."
    text_zh = "如果同型号的每张卡在满载时功耗都偏低，说明该负载不足以验证供电：运行自己的负载并用 preflight watch 观察。"
    command = "preflight watch -i rigs.hcl {rig}"
  }
}

remedy "burn-in.memory/wrong-bits" {
  title    = "Take {bdf} out of training"
  title_zh = "停止用 {bdf} 训练"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig}"
  clears   = ["burn-in.memory"]

  step {
    text    = "Its data cannot be trusted: a training on it may go wrong without a word. Undo any overclock of core or memory, cool it, and run the burn-in again."
    text_zh = "该卡的数据不可信：用它训练可能在没有任何报错的情况下出错。取消核心和显存的超频，改善散热后重新烤机。"
    hand    = true
  }
  step {
    text    = "Try it in another slot with another power cable. When it stays wrong, have it replaced: the addresses and bits above are the evidence."
    text_zh = "换一个槽位和另一根供电线再试。如果仍然出错，更换显卡：上面的地址和位就是证据。"
    hand    = true
  }
}

remedy "burn-in.memory/ecc" {
  title    = "Look at the memory of {bdf}"
  title_zh = "检查 {bdf} 的显存"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight probe burn-in -i rigs.hcl {rig}"
  clears   = ["burn-in.memory"]

  step {
    text    = "See which rows are remapped or pages retired; a reset or boot puts a remapping into force."
    text_zh = "查看行重映射和页退役情况；复位或重启后重映射生效。"
    command = "nvidia-smi -i {bdf} -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"
  }
  step {
    text    = "When uncorrected errors come again after that, have the card replaced."
    text_zh = "如果之后仍出现不可纠正错误，更换显卡。"
    hand    = true
  }
}

remedy "burn-in.memory/xid" {
  title    = "Find the cause of Xid {xid} on {bdf}"
  title_zh = "查明 {bdf} 上 Xid {xid} 的原因"
  params   = { bdf = "the card", xid = "N" }
  reboot   = "no"
  verify   = "preflight probe burn-in -i rigs.hcl {rig}"
  clears   = ["burn-in.memory"]

  step {
    text    = "The program that ran is known and the same on every card, so that the driver's complaint is about the card, its memory or its link. Read what came before and after."
    text_zh = "运行的程序已知且每张卡相同，因此驱动的报错与显卡、显存或链路有关。查看前后的记录。"
    command = "sudo dmesg | grep -E 'NVRM|AER' | tail -n 40"
  }
  step {
    text    = "Undo any overclock, reseat the card, try another slot and cable; when it stays with the card, have it replaced."
    text_zh = "取消超频，重新插紧显卡，换槽位和供电线再试；如果问题跟随显卡，更换显卡。"
    hand    = true
  }
}
