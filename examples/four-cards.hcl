# Four cards on risers in an open frame, on a server board (ASRock Rack ROMED8-2T), with two supplies that do not
# share the load: each feeds its own cards, so each is judged by itself.
#
#   preflight check -i examples/four-cards.hcl

ssh {
  user            = "ops"
  identity_files  = ["~/.ssh/id_ed25519"]
  connect_timeout = 10
}

profile "workshop" {
  psu_margin       = 1.25
  ram_per_card_gib = 64

  # Every link must have trained at full width, whatever the risers are like.
  allow_x8 = false

  check "memory-window" {
    assert  = alltrue([for card in host.cards : card.bar1 >= card.memory])
    message = "a card does not expose its whole memory"
  }
}

rig "frame-1" {
  address = "frame-1.lab:2222"
  cards   = 4
  gpu     = "rtx-4090"
  profile = "workshop"
  group   = "workshop"

  labels = {
    owner = "vision"
    place = "rack 2, shelf 1"
  }

  # Feeds the board and two cards.
  psu {
    watts = 2000
    cards = ["0000:01:00.0", "0000:41:00.0"]
  }

  # Feeds the other two.
  psu {
    watts = 1600
    cards = ["0000:81:00.0", "0000:c1:00.0"]
  }

  mains {
    volts    = 230
    amps     = 16
    circuits = 2
  }

  chassis {
    cooling = "air"
    mount   = "riser"

    # On risers the slots do not space the cards; they still say how wide each is wired.
    slot "1" {
      card  = "0000:01:00.0"
      width = 16
    }
    slot "3" {
      card  = "0000:41:00.0"
      width = 16
    }
    slot "5" {
      card  = "0000:81:00.0"
      width = 16
    }
    slot "7" {
      card  = "0000:c1:00.0"
      width = 16
    }
  }
}

workload "sft-13b" {
  parameters = "13B"
  method     = "lora"
  sequence   = 4096
  batch      = 2
  strategy   = "ddp"
}
