# Remedies of power.* and chassis.*: watts, breakers and air.

remedy "power.psu/short" {
  title    = "Bring supply ({usable}) and draw ({draw}) into proportion"
  title_zh = "让供电（{usable}）与功耗（{draw}）相称"
  params   = { usable = "usable watts", draw = "expected draw", cap_watts = "a lower limit" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only power.psu {rig}"
  clears   = ["power.psu"]

  step {
    text    = "Cap each card at {cap_watts} W now; that passes, and costs little speed. The cap is gone after a reboot."
    text_zh = "现在把每张卡限制在 {cap_watts} W；这样即可通过，速度损失很小。重启后该限制失效。"
    command = "sudo nvidia-smi -pl {cap_watts}"
    needs   = ["cap_watts"]
  }
  step {
    text    = "Make the cap last."
    text_zh = "让功率上限长期有效。"
    needs   = ["cap_watts"]
    command = <<-CMD
      printf '%s\n' '[Unit]' 'Description=Power limit of the NVIDIA cards' 'After=nvidia-persistenced.service' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' 'ExecStart=/usr/bin/nvidia-smi -pm 1' 'ExecStart=/usr/bin/nvidia-smi -pl {cap_watts}' '[Install]' 'WantedBy=multi-user.target' | sudo tee /etc/systemd/system/nvidia-power-limit.service
      sudo systemctl daemon-reload && sudo systemctl enable --now nvidia-power-limit.service
    CMD
  }
  step {
    text    = "Or fit a larger supply, or a second one with cards of its own; each 16-pin plug on the supply maker's own cable, no splitters. Then write the new watts into psu, in rigs.hcl."
    text_zh = "或换更大的电源，或增加一个单独供部分卡的电源；每个 16 针插头用电源原厂线材，不用一分二。然后把新的瓦数写进 rigs.hcl 的 psu。"
    hand    = true
  }
}

remedy "power.psu/cap-not-permanent" {
  title    = "Make the power cap of {cap} W survive a reboot"
  title_zh = "让 {cap} W 的功率上限在重启后依然有效"
  params   = { cap = "these cards" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only power.psu {rig}"
  clears   = ["power.psu"]

  step {
    text    = "Install a unit that sets it at each start."
    text_zh = "安装一个每次开机都设置它的 systemd 单元。"
    command = <<-CMD
      printf '%s\n' '[Unit]' 'Description=Power limit of the NVIDIA cards' 'After=nvidia-persistenced.service' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' 'ExecStart=/usr/bin/nvidia-smi -pm 1' 'ExecStart=/usr/bin/nvidia-smi -pl {cap}' '[Install]' 'WantedBy=multi-user.target' | sudo tee /etc/systemd/system/nvidia-power-limit.service
      sudo systemctl daemon-reload && sudo systemctl enable --now nvidia-power-limit.service
    CMD
  }
  step {
    text    = "See that it is in force."
    text_zh = "确认已生效。"
    command = "systemctl is-enabled nvidia-power-limit.service; nvidia-smi --query-gpu=index,power.limit --format=csv"
  }
}

remedy "power.mains/short" {
  title    = "Draw less from the mains ({draw}) or bring in more (limit {limit})"
  title_zh = "减少市电取电（{draw}），或引入更多（上限 {limit}）"
  params   = { draw = "the draw", limit = "of the circuits" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only power.mains {rig}"
  clears   = ["power.mains"]

  step {
    text    = "Lower the draw now, for instance to 300 W for each card, until the sum is below {limit}."
    text_zh = "现在就降低功耗，例如每张卡 300 W，直到总和低于 {limit}。"
    command = "sudo nvidia-smi -pl 300"
  }
  step {
    text    = "Let an electrician lay a circuit of its own, or one of more amperes, for {rig}; put the supplies on different circuits, each with its own breaker, and nothing else on them (a heater or an air conditioner on the same circuit counts)."
    text_zh = "请电工为 {rig} 拉一条独立回路，或换更大安培数的回路；把各电源分到不同回路，各有自己的断路器，回路上不接其他设备（同一回路上的电暖器或空调也要计入）。"
    hand    = true
  }
  step {
    text    = "Write what is there into mains, in rigs.hcl: volts, the amperes of one breaker, and the number of circuits."
    text_zh = "把实际情况写进 rigs.hcl 的 mains：电压、单个断路器的安培数和回路数。"
    hand    = true
  }
}

remedy "chassis.slot-spacing/tight" {
  title    = "Give the cards {a} and {b} air"
  title_zh = "给 {a} 和 {b} 留出风道"
  params   = { a = "side by side", b = "its neighbour" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only chassis.slot-spacing {rig}"
  clears   = ["chassis.slot-spacing"]

  step {
    text    = "Power off and move one of the two so that a slot between them stays free: an open-air cooler that touches its neighbour breathes the neighbour's heat."
    text_zh = "关机，移动其中一张，使两者之间空出一槽：开放式散热器紧贴相邻卡时，吸入的是相邻卡的热风。"
    hand    = true
  }
  step {
    text    = "Where there is no slot left: put one on a riser, use two-slot cards with blowers, or water blocks; and write cooling and mount into chassis, in rigs.hcl."
    text_zh = "没有空槽时：用延长线移出一张，改用双槽涡轮卡，或水冷；并把 cooling 和 mount 写进 rigs.hcl 的 chassis。"
    hand    = true
  }
  step {
    text    = "Until then lower the heat, for instance to 300 W for each card, and watch the hotter one: it should stay below 85 °C after half an hour of full load."
    text_zh = "在此之前降低发热，例如每张卡 300 W，并观察较热的那张：满载半小时后应低于 85 °C。"
    command = "sudo nvidia-smi -pl 300; nvidia-smi dmon -s pt -d 5"
  }
}

remedy "chassis.slot-spacing/impossible" {
  title    = "Correct the declared places of {a} and {b}"
  title_zh = "更正 {a} 和 {b} 的声明位置"
  params   = { a = "the cards", b = "its neighbour" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only chassis.slot-spacing {rig}"
  clears   = ["chassis.slot-spacing"]

  step {
    text    = "Count from one end of the board: a slot's label is its position, one for each 20.32 mm, empty places and M.2 gaps counted. Measure the thickness of a card in the same unit (60 mm is 3)."
    text_zh = "从主板一端数起：插槽的标签就是它的位置，每 20.32 mm 一格，空位和 M.2 间隔也算。卡的厚度用同样的单位（60 mm 为 3）。"
    hand    = true
  }
  step {
    text    = "Cards that hang on risers do not sit in the slots: write mount = \"riser\" or \"open\" into chassis, in rigs.hcl."
    text_zh = "用延长线的卡不在插槽里：在 rigs.hcl 的 chassis 中写 mount = \"riser\" 或 \"open\"。"
    hand    = true
  }
  step {
    text    = "See which bus address belongs to which slot, and mend card in the slot blocks."
    text_zh = "看哪个总线地址对应哪个插槽，并修正 slot 块中的 card。"
    command = "sudo dmidecode -t 9 | grep -E 'Designation|Bus Address'"
  }
}
