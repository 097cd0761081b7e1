# A desktop with two cards, on one household socket.
#
#   preflight check -i examples/two-cards.hcl

profile "desktop" {
  # The board splits the CPU's 16 lanes x8/x8: right for this machine, and worth knowing when it is not.
  allow_x8   = true
  storage_tb = 2
}

rig "desk" {
  address = "desk.local"
  cards   = 2
  gpu     = "rtx-3090"
  profile = "desktop"

  psu {
    watts = 1600
  }

  mains {
    volts    = 230
    amps     = 16
    circuits = 1
  }

  chassis {
    cooling = "air"
    mount   = "slot"

    slot "1" {
      card      = "0000:0a:00.0"
      width     = 8
      thickness = 2.5
    }

    slot "5" {
      card      = "0000:0b:00.0"
      width     = 8
      thickness = 2.5
    }
  }
}

workload "chat-7b" {
  parameters = "7B"
  method     = "qlora"
  sequence   = 2048
  batch      = 1
}
