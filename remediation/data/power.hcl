# Remedies of power.* and chassis.*: watts, breakers and air.

remedy "power.psu/short" {
  title  = "Bring supply ({usable}) and draw ({draw}) into proportion"
  params = { usable = "usable watts", draw = "expected draw", cap_watts = "a lower limit" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only power.psu {rig}"
  clears = ["power.psu"]

  step {
    text    = "Cap each card at {cap_watts} W now; that passes, and costs little speed. The cap is gone after a reboot."
    command = "sudo nvidia-smi -pl {cap_watts}"
    needs   = ["cap_watts"]
  }
  step {
    text    = "Make the cap last."
    needs   = ["cap_watts"]
    command = <<-CMD
      printf '%s\n' '[Unit]' 'Description=Power limit of the NVIDIA cards' 'After=nvidia-persistenced.service' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' 'ExecStart=/usr/bin/nvidia-smi -pm 1' 'ExecStart=/usr/bin/nvidia-smi -pl {cap_watts}' '[Install]' 'WantedBy=multi-user.target' | sudo tee /etc/systemd/system/nvidia-power-limit.service
      sudo systemctl daemon-reload && sudo systemctl enable --now nvidia-power-limit.service
    CMD
  }
  step {
    text = "Or fit a larger supply, or a second one with cards of its own; each 16-pin plug on the supply maker's own cable, no splitters. Then write the new watts into psu, in rigs.hcl."
    hand = true
  }
}

remedy "power.psu/cap-not-permanent" {
  title  = "Make the power cap of {cap} W survive a reboot"
  params = { cap = "these cards" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only power.psu {rig}"
  clears = ["power.psu"]

  step {
    text    = "Install a unit that sets it at each start."
    command = <<-CMD
      printf '%s\n' '[Unit]' 'Description=Power limit of the NVIDIA cards' 'After=nvidia-persistenced.service' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' 'ExecStart=/usr/bin/nvidia-smi -pm 1' 'ExecStart=/usr/bin/nvidia-smi -pl {cap}' '[Install]' 'WantedBy=multi-user.target' | sudo tee /etc/systemd/system/nvidia-power-limit.service
      sudo systemctl daemon-reload && sudo systemctl enable --now nvidia-power-limit.service
    CMD
  }
  step {
    text    = "See that it is in force."
    command = "systemctl is-enabled nvidia-power-limit.service; nvidia-smi --query-gpu=index,power.limit --format=csv"
  }
}

remedy "power.mains/short" {
  title  = "Draw less from the mains ({draw}) or bring in more (limit {limit})"
  params = { draw = "the draw", limit = "of the circuits" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only power.mains {rig}"
  clears = ["power.mains"]

  step {
    text    = "Lower the draw now, for instance to 300 W for each card, until the sum is below {limit}."
    command = "sudo nvidia-smi -pl 300"
  }
  step {
    text = "Let an electrician lay a circuit of its own, or one of more amperes, for {rig}; put the supplies on different circuits, each with its own breaker, and nothing else on them (a heater or an air conditioner on the same circuit counts)."
    hand = true
  }
  step {
    text = "Write what is there into mains, in rigs.hcl: volts, the amperes of one breaker, and the number of circuits."
    hand = true
  }
}

remedy "chassis.slot-spacing/tight" {
  title  = "Give the cards {a} and {b} air"
  params = { a = "side by side", b = "its neighbour" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only chassis.slot-spacing {rig}"
  clears = ["chassis.slot-spacing"]

  step {
    text = "Power off and move one of the two so that a slot between them stays free: an open-air cooler that touches its neighbour breathes the neighbour's heat."
    hand = true
  }
  step {
    text = "Where there is no slot left: put one on a riser, use two-slot cards with blowers, or water blocks; and write cooling and mount into chassis, in rigs.hcl."
    hand = true
  }
  step {
    text    = "Until then lower the heat, for instance to 300 W for each card, and watch the hotter one: it should stay below 85 °C after half an hour of full load."
    command = "sudo nvidia-smi -pl 300; nvidia-smi dmon -s pt -d 5"
  }
}

remedy "chassis.slot-spacing/impossible" {
  title  = "Correct the declared places of {a} and {b}"
  params = { a = "the cards", b = "its neighbour" }
  reboot = "no"
  verify = "preflight check -i rigs.hcl --only chassis.slot-spacing {rig}"
  clears = ["chassis.slot-spacing"]

  step {
    text = "Count from one end of the board: a slot's label is its position, one for each 20.32 mm, empty places and M.2 gaps counted. Measure the thickness of a card in the same unit (60 mm is 3)."
    hand = true
  }
  step {
    text = "Cards that hang on risers do not sit in the slots: write mount = \"riser\" or \"open\" into chassis, in rigs.hcl."
    hand = true
  }
  step {
    text    = "See which bus address belongs to which slot, and mend card in the slot blocks."
    command = "sudo dmidecode -t 9 | grep -E 'Designation|Bus Address'"
  }
}
