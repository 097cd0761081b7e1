# Remedies of the cards themselves: health, throttling, power limits, genuineness.

remedy "gpu.health/off-bus" {
  title    = "Find out why {bdf} leaves the bus"
  title_zh = "查明 {bdf} 为何从总线上掉线"
  params   = { bdf = "the card", watts = "so many" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only gpu.health,pcie.errors {rig}"
  clears   = ["gpu.health", "driver.loaded", "gpu.count", "nccl.all-reduce"]

  step {
    text    = "Read what came before it: PCIe errors point at riser and slot, thermal lines at heat, nothing at all at power."
    text_zh = "查看掉线之前的日志：有 PCIe 错误多半是延长线或插槽，有温度告警是散热，什么都没有则多半是供电。"
    command = "sudo dmesg -T | grep -iE 'xid|fallen off|AER|PCIe Bus Error|thermal' | tail -n 40"
  }
  step {
    text    = "Power off at the switch for 30 seconds. Push the card's power plugs in until they click, without splitters, each cable from an outlet of its own at the supply."
    text_zh = "断电 30 秒。把显卡供电插头插到卡扣到位，不要用一分二转接线，每根线单独接电源的一个输出口。"
    hand    = true
  }
  step {
    text    = "Take the card out, clean slot and contacts, seat it again; with a riser, put the card straight into the slot once to see whether the riser is at fault."
    text_zh = "拔下显卡，清洁插槽和金手指后重新插好；如果用了延长线，先直插一次主板插槽，判断是否延长线有问题。"
    hand    = true
  }
  step {
    text    = "See whether it is power: with a limit of two thirds of the default on every card it should last. If it does, the supply is too weak for the peaks. The limit is lost at a reboot."
    text_zh = "判断是否供电问题：把每张卡的功耗上限降到默认值的三分之二，如果不再掉线，说明电源扛不住瞬时峰值。该设置重启后失效。"
    command = "nvidia-smi --query-gpu=index,power.min_limit,power.limit,power.default_limit --format=csv; sudo nvidia-smi -i {bdf} -pl {watts}"
  }
  step {
    text    = "Change places with another card. If the fault goes with the card, the card is broken; if it stays, it is slot, riser or cable."
    text_zh = "与另一张卡互换位置。故障跟着卡走就是卡坏，留在原位就是插槽、延长线或电源线。"
    hand    = true
  }
}

remedy "gpu.health/reset" {
  title    = "Reset {bdf}"
  title_zh = "复位 {bdf}"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.health {rig}"
  clears   = ["gpu.health"]

  step {
    text    = "End everything that uses the card; services that watch cards (nvidia-persistenced, dcgm) hold it as well."
    text_zh = "先结束占用该卡的所有进程；nvidia-persistenced、dcgm 等监控服务也会占用显卡。"
    command = "systemctl is-active nvidia-persistenced nvidia-dcgm; sudo systemctl stop nvidia-persistenced nvidia-dcgm 2>/dev/null; sudo fuser -v /dev/nvidia*"
  }
  step {
    text    = "Reset it. Cards that are joined by NVLink are reset together: leave out -i."
    text_zh = "执行复位。有 NVLink 互联的卡要一起复位：去掉 -i 参数。"
    command = "sudo nvidia-smi --gpu-reset -i {bdf}"
  }
  step {
    text    = "Start the services again that were active."
    text_zh = "重新启动之前在运行的服务。"
    command = "sudo systemctl start nvidia-persistenced"
  }
  step {
    text    = "A card that refuses a reset (most GeForce cards do), or whose recovery action is Reboot, wants the machine to be started anew."
    text_zh = "如果不支持复位（多数 GeForce 不支持），或恢复动作要求 Reboot，就重启整机。"
    command = "sudo systemctl reboot"
  }
  step {
    text    = "When it comes back under load, update the driver to the newest of its branch: firmware of the card comes with it."
    text_zh = "如果带负载后再次出现，把驱动升级到所在分支的最新版：显卡 GSP 固件随驱动一起更新。"
    command = "nvidia-smi --query-gpu=driver_version,gsp_firmware_version,vbios_version --format=csv 2>/dev/null || nvidia-smi -q | grep -iE 'driver version|gsp|vbios'"
  }
}

remedy "gpu.health/memory" {
  title    = "Find out whether the memory of {bdf} holds"
  title_zh = "确认 {bdf} 的显存是否可靠"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.health {rig}"
  clears   = ["gpu.health"]

  step {
    text    = "Look at the counters: 'Remapping Failure: Yes', or uncorrectable errors that keep coming, mean that the card is to be replaced."
    text_zh = "查看计数：Remapping Failure 为 Yes，或不可纠正错误持续增加，就应换卡。"
    command = "nvidia-smi -q -i {bdf} -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"
  }
  step {
    text    = "With no job on it, reset the card, so that faulty rows are set aside and the counters since the last start begin at 0; or reboot. A job that ran meanwhile may have wrong results."
    text_zh = "确认卡上没有任务后复位显卡（或重启整机），使故障行被替换，并让 volatile 计数从 0 开始。期间跑过的任务结果可能有误。"
    command = "sudo nvidia-smi --gpu-reset -i {bdf}"
  }
  step {
    text    = "Fill its memory with a verifying test for half an hour (gpu_burn of wilicc/gpu-burn, on all cards), and look at the counters again."
    text_zh = "用带校验的显存测试（wilicc/gpu-burn 的 gpu_burn，覆盖所有卡）跑半小时，再看一次计数。"
    command = "gpu_burn -m 95% 1800"
  }
  step {
    text    = "Errors again: take the card out of service and send it in, with the log and the output of the first step."
    text_zh = "若仍有错误：停用该卡并送修，附上日志和第一步的输出。"
    hand    = true
  }
}

remedy "gpu.health/nvlink" {
  title    = "Mend the NVLink of {bdf}"
  title_zh = "修复 {bdf} 的 NVLink"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only gpu.health {rig}"
  clears   = ["gpu.health", "nccl.all-reduce"]

  step {
    text    = "See which links are down, and which count errors."
    text_zh = "查看哪些链路断开、哪些在累积错误。"
    command = "nvidia-smi nvlink -s -i {bdf}; nvidia-smi nvlink -e -i {bdf}"
  }
  step {
    text    = "With bridges: power off, take the bridge off, clean its contacts, press it on evenly; try it turned round or with another bridge."
    text_zh = "桥接器：断电后取下桥接器，清洁触点，均匀压紧；可以换个方向或换一个桥接器再试。"
    hand    = true
  }
  step {
    text    = "With NVSwitch: read the fabric manager's log, and start it anew when it has the driver's version."
    text_zh = "NVSwitch 机型：查看 Fabric Manager 日志，确认其版本与驱动一致后重启该服务。"
    command = "sudo tail -n 50 /var/log/fabricmanager.log; sudo systemctl restart nvidia-fabricmanager"
  }
  step {
    text    = "Reboot, since a failed link trains again only with a reset of all cards on it."
    text_zh = "重启：失败的链路只有在相关的卡全部复位后才会重新训练。"
    command = "sudo systemctl reboot"
  }
}

remedy "gpu.health/program" {
  title    = "Tell a faulty program from a faulty card at {bdf}"
  title_zh = "区分 {bdf} 上是程序错误还是硬件错误"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.health {rig}"
  clears   = ["gpu.health"]

  step {
    text    = "See which programs it names, and whether it is always this card."
    text_zh = "查看日志里是哪些程序，以及是否总是这张卡。"
    command = "sudo dmesg -T | grep 'Xid' | tail -n 40"
  }
  step {
    text    = "Run the same program on another card. If it fails there as well, it is the program: let compute-sanitizer name the line."
    text_zh = "把同一程序换到另一张卡上跑。那边也出错就是程序问题：用 compute-sanitizer 定位。"
    command = "CUDA_VISIBLE_DEVICES=1 compute-sanitizer --tool memcheck python train.py"
  }
  step {
    text    = "If only this card fails, set its clocks back to the default: an overclock that games survive breaks training."
    text_zh = "如果只有这张卡出错，先恢复默认频率：打游戏稳定的超频，跑训练未必稳定。"
    command = "sudo nvidia-smi -i {bdf} -rgc; sudo nvidia-smi -i {bdf} -rmc"
  }
}

remedy "gpu.health/xid" {
  title    = "Look into Xid {xid} of {bdf}"
  title_zh = "排查 {bdf} 的 Xid {xid}"
  params   = { bdf = "the card", xid = "of the log" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only gpu.health {rig}"
  clears   = ["gpu.health"]

  step {
    text    = "Read the lines around the first one: it names the program or the part."
    text_zh = "查看第一条 Xid 前后的日志：里面会写明相关的程序或部件。"
    command = "sudo dmesg -T | grep -iE -B3 -A3 'xid' | head -n 60"
  }
  step {
    text    = "Update the driver to the newest of its branch and reboot; many of these are faults of driver or firmware."
    text_zh = "把驱动升级到所在分支的最新版并重启；这类 Xid 很多是驱动或固件的问题。"
    command = "sudo apt-get update && apt list --upgradable 2>/dev/null | grep -i nvidia"
  }
  step {
    text    = "If it stays, power off for 30 seconds, then change places with another card and see whether it goes with the card."
    text_zh = "若仍出现，断电 30 秒后与另一张卡互换位置，看故障是否跟着卡走。"
    hand    = true
  }
}

remedy "gpu.throttle/thermal" {
  title    = "Cool {bdf}"
  title_zh = "改善 {bdf} 的散热"
  params   = { bdf = "the card", watts = "so many" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.throttle {rig}"
  clears   = ["gpu.throttle"]

  step {
    text    = "Watch temperature, fan and reasons under load."
    text_zh = "带负载观察温度、风扇转速和降频原因。"
    command = "nvidia-smi -i {bdf} --query-gpu=temperature.gpu,temperature.memory,fan.speed,power.draw,clocks.sm,clocks_throttle_reasons.active --format=csv -l 2"
  }
  step {
    text    = "Give it air: a free slot beside air-cooled cards, fans that blow along the cards from front to back, no cable before the intake, dust off the fins."
    text_zh = "保证进风：风冷卡旁边空出一个槽位，机箱风扇沿显卡方向前进后出，进风口不要被线材挡住，清理散热鳍片上的灰尘。"
    hand    = true
  }
  step {
    text    = "Until then, a lower limit costs little: 80 % of the power gives about 95 % of the speed."
    text_zh = "在此之前可以降功耗上限，代价很小：功耗降到 80 %，性能约剩 95 %。"
    command = "nvidia-smi -i {bdf} --query-gpu=power.min_limit,power.limit,power.default_limit --format=csv; sudo nvidia-smi -i {bdf} -pl {watts}"
  }
  step {
    text    = "A single card that is hotter than its siblings at the same load: new thermal paste and pads, after its guarantee ended."
    text_zh = "同样负载下只有一张卡明显偏热：过保后更换硅脂和导热垫。"
    hand    = true
  }
}

remedy "gpu.throttle/power-brake" {
  title    = "Find what pulls the power brake on {bdf}"
  title_zh = "查明 {bdf} 为何触发功率制动"
  params   = { bdf = "the card", watts = "so many" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only gpu.throttle,power.psu {rig}"
  clears   = ["gpu.throttle"]

  step {
    text    = "The signal comes from board or supplies. On a server, the BMC's log says which supply failed or was overloaded."
    text_zh = "该信号由主板或电源发出。服务器可在 BMC 日志中看到是哪个电源故障或过载。"
    command = "sudo ipmitool sel list | tail -n 20; sudo ipmitool sdr type 'Power Supply'"
  }
  step {
    text    = "Check that every supply is plugged in and its lamp is green, and that the power plugs of the card sit firmly."
    text_zh = "确认每个电源都已接电且指示灯为绿色，显卡供电插头插紧到位。"
    hand    = true
  }
  step {
    text    = "Lower the limit of each card in steps until it goes away: that is what the supplies can carry."
    text_zh = "逐步降低每张卡的功耗上限直到现象消失：那就是电源能承受的功率。"
    command = "nvidia-smi --query-gpu=index,power.min_limit,power.limit,power.default_limit --format=csv; sudo nvidia-smi -i {bdf} -pl {watts}"
  }
}

remedy "gpu.power-limit/lowered" {
  title    = "Decide on the power limit of {bdf}: {limit} of {default} W"
  title_zh = "确定 {bdf} 的功耗上限：当前 {limit} W，默认 {default} W"
  params   = { bdf = "the card", limit = "lowered", default = "its default" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.power-limit,power.psu {rig}"
  clears   = ["gpu.power-limit"]

  step {
    text    = "Not meant: set the default again."
    text_zh = "不是有意设置的：恢复默认值。"
    command = "sudo nvidia-smi -i {bdf} -pl {default}"
  }
  step {
    text    = "Meant: let a unit set it at each boot, since a reboot brings the default back. One ExecStart line for each card."
    text_zh = "是有意设置的：用 systemd 单元在每次开机时设置，否则重启后会恢复默认。每张卡一行 ExecStart。"
    command = "printf '[Unit]\\nDescription=Power limit of the cards\\nAfter=nvidia-persistenced.service\\n[Service]\\nType=oneshot\\nExecStart=/usr/bin/nvidia-smi -i {bdf} -pl {limit}\\n[Install]\\nWantedBy=multi-user.target\\n' | sudo tee /etc/systemd/system/gpu-power-limit.service && sudo systemctl daemon-reload && sudo systemctl enable --now gpu-power-limit"
  }
}

remedy "gpu.genuine/modded" {
  title    = "Know what a card with added memory costs ({bdf})"
  title_zh = "了解魔改显存卡的代价（{bdf}）"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.genuine {rig}"
  clears   = ["gpu.genuine"]

  step {
    text    = "Compare what was sold with what is there. No maker gives a guarantee on such a card, and its VBIOS cannot be updated."
    text_zh = "核对购买时的描述与实物是否一致。这类卡厂商不质保，VBIOS 也无法升级。"
    command = "nvidia-smi -i {bdf} --query-gpu=name,memory.total,vbios_version,pci.device_id,pci.sub_device_id --format=csv"
  }
  step {
    text    = "Prove all of its memory before it is paid for: write and read back every byte, hot, for half an hour."
    text_zh = "付款前验证全部显存：在高温下对每个字节写入并读回校验，持续半小时。"
    command = "gpu_burn -m 95% 1800"
  }
  step {
    text    = "Leave P2P off: its BAR1 covers 32 GiB at most, less than its memory."
    text_zh = "不要启用 P2P：其 BAR1 最大 32 GiB，小于显存容量。"
    command = "nvidia-smi -i {bdf} -q -d MEMORY"
  }
}

remedy "gpu.genuine/flashed" {
  title    = "Find out what {bdf} really is"
  title_zh = "查明 {bdf} 的真实型号"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.genuine,gpu.model {rig}"
  clears   = ["gpu.genuine"]

  step {
    text    = "Lay name, ids, part number and VBIOS side by side: the die's part number is the hardest to change."
    text_zh = "把名称、设备号、部件号和 VBIOS 放在一起对比：其中核心的部件号最难伪造。"
    command = "lspci -nn -d 10de: ; nvidia-smi -i {bdf} -q | grep -iE 'product name|part number|vbios|device id|sub system'"
  }
  step {
    text    = "Count its units: a card that was flashed to a better name has the multiprocessors of the lesser one."
    text_zh = "数一下计算单元：刷成更高型号的卡，SM 数量仍是原来的。"
    command = "python3 -c 'import torch; p = torch.cuda.get_device_properties(0); print(p.name, p.multi_processor_count, p.total_memory)'"
  }
  step {
    text    = "Take the cooler's sticker and the marking on the die as witnesses, and give the card back to its seller when they do not agree."
    text_zh = "拆下散热器核对标签和核心丝印，如果不一致就退给卖家。"
    hand    = true
  }
}

remedy "gpu.genuine/laptop" {
  title    = "Know what a laptop's GPU on a desktop board is ({bdf})"
  title_zh = "了解移动版核心改装卡（{bdf}）"
  params   = { bdf = "the card" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only gpu.genuine {rig}"
  clears   = ["gpu.genuine"]

  step {
    text    = "Its units, memory and power are those of the laptop model, one class below the desktop card of that number. See its limits."
    text_zh = "其计算单元、显存和功耗都是移动版规格，比同编号的桌面卡低一档。查看其上限。"
    command = "nvidia-smi -i {bdf} -q -d POWER,MEMORY,CLOCK"
  }
  step {
    text    = "Declare it as what it is, so that other checks reckon with the right figures, or give it back when it was sold as a desktop card."
    text_zh = "在清单里按真实型号声明，其他检查才会用对参数；如果是当桌面卡卖的，就退货。"
    hand    = true
  }
}
