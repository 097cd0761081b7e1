# A row of eight-card servers that train together: two-slot cards with blowers, four supplies of which one may fail,
# two circuits. One block stands for all of them; names and addresses come from a Slurm-like list.
#
#   preflight check -i examples/eight-cards.hcl 'group:row-a'
#   preflight check -i examples/eight-cards.hcl --var 'nodes=gpu[01-16]'

variable "nodes" {
  type        = string
  default     = "gpu[01-04]"
  description = "The servers, as Slurm writes them."
}

locals {
  servers = toset(hostlist(var.nodes))
  domain  = "hpc.example"
}

ssh {
  user      = "root"
  jump_host = "bastion.${local.domain}"
}

profile "train-a6000" {
  psu_margin = 1.25
  cores      = 64
  require    = ["gpu.count", "pcie.width", "pcie.speed", "power.psu", "nccl.all-reduce", "site.bios-floor"]

  check "bios-floor" {
    assert  = version_at_least(host.bios.version, "2.5")
    message = "BIOS older than the validated 2.5"
  }

  check "one-driver" {
    assert  = host.driver.version == "550.163.01"
    message = "not the driver that this row is validated with"
  }
}

# The same, for handing a new server over.
profile "hand-over" {
  extends    = "train-a6000"
  acceptance = true
  nccl_pass  = 0.8
}

rig "a" {
  for_each = local.servers

  address        = "${each.key}.${local.domain}"
  slurm_node     = each.key
  cards          = 8
  gpu            = "rtx-a6000"
  profile        = "train-a6000"
  group          = "row-a"
  nic            = "ens1f0"
  price_per_hour = 5.20

  psu {
    watts = 2000
    count = 4
    spare = 1 # N+1
  }

  mains {
    volts    = 230
    amps     = 16
    circuits = 2
  }

  # The same board in every server, hence the same bus numbers.
  chassis {
    cooling = "blower"
    mount   = "slot"

    slot "1" {
      card      = "0000:01:00.0"
      width     = 16
      thickness = 2
    }
    slot "3" {
      card      = "0000:25:00.0"
      width     = 16
      thickness = 2
    }
    slot "5" {
      card      = "0000:41:00.0"
      width     = 16
      thickness = 2
    }
    slot "7" {
      card      = "0000:61:00.0"
      width     = 16
      thickness = 2
    }
    slot "9" {
      card      = "0000:81:00.0"
      width     = 16
      thickness = 2
    }
    slot "11" {
      card      = "0000:a1:00.0"
      width     = 16
      thickness = 2
    }
    slot "13" {
      card      = "0000:c1:00.0"
      width     = 16
      thickness = 2
    }
    slot "15" {
      card      = "0000:e1:00.0"
      width     = 16
      thickness = 2
    }
  }
}

workload "pretrain-1b" {
  parameters = "1.3B"
  method     = "full"
  sequence   = 4096
  batch      = 8
  strategy   = "ddp"
}
