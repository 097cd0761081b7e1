# Settings of the machine beneath: kernel, buses, clocks.

playbook "iommu" {
  title    = "Let the IOMMU pass addresses through, or switch it off"
  title_zh = "让 IOMMU 直通，或关闭它"
  doc      = "Sets iommu=pt (devices of the host see real addresses) or switches the IOMMU off. Full translation costs bandwidth and breaks P2P."
  clears   = ["firmware.iommu/translated", "firmware.iommu/faults"]

  param "mode" {
    default = "pt"
    one_of  = ["pt", "off"]
    doc     = "pt keeps the IOMMU for guests and passes the host's own devices through; off switches it off (amd_iommu=off intel_iommu=off)"
  }

  task "kernel" {
    verify = "grep -q '${param.mode == "pt" ? "iommu=pt" : "amd_iommu=off intel_iommu=off"}' \"$${PREFLIGHT_ROOT-}/proc/cmdline\""
    kernel {
      args = param.mode == "pt" ? ["iommu=pt"] : ["amd_iommu=off", "intel_iommu=off"]
    }
  }
}

playbook "pci-realloc" {
  title    = "Let the kernel place the cards' address windows anew"
  title_zh = "让内核重新分配显卡的地址窗口"
  doc      = "Sets pci=realloc: where the firmware gave a card no address, or too small a window, the kernel tries itself. Above 4G Decoding in the BIOS is the better way."
  clears   = ["firmware.above-4g/unassigned"]
  notes    = ["Switch Above 4G Decoding on in the BIOS first; this is for boards whose BIOS gets it wrong all the same."]

  task "kernel" {
    verify = "grep -q 'pci=realloc' \"$${PREFLIGHT_ROOT-}/proc/cmdline\""
    kernel {
      args = ["pci=realloc"]
    }
  }
}

playbook "acs-off" {
  title    = "Let requests pass between cards without a detour"
  title_zh = "让卡间请求不绕行"
  doc      = "Clears ACS redirection (P2P request redirect, completion redirect, upstream forwarding) at every boot on the bridges above NVIDIA cards, and on no other. With iommu=pt the kernel may turn it on again, so the unit runs late and is verified from configuration space."
  clears   = ["pcie.acs/redirect"]
  notes    = ["Guests that share the machine lose the isolation that ACS gives: do not use this on a host that passes cards to different tenants."]

  task "script" {
    file {
      path    = "/usr/local/sbin/preflight-acs-off"
      mode    = "0755"
      content = <<-EOT
        #!/bin/sh
        # Written by preflight: clears ACS redirection on the bridges above NVIDIA cards; --check only says whether it is clear.
        set -u
        rc=0
        for card in /sys/bus/pci/devices/*; do
          [ "$(cat "$card/vendor" 2>/dev/null)" = 0x10de ] || continue
          case $(cat "$card/class" 2>/dev/null) in 0x0300* | 0x0302*) ;; *) continue ;; esac
          up=$(dirname "$(readlink -f "$card")")
          while [ -e "$up/class" ]; do
            bdf=$(basename "$up")
            # Bits 2, 3 and 4 of the control word at +6: RR, CR, UF (PCIe Base 7.7.11.3).
            word=$(setpci -s "$bdf" ECAP_ACS+0x6.w 2>/dev/null) && {
              clear=$(printf '%04x' $((0x$word & ~0x1c)))
              if [ "$word" != "$clear" ]; then
                if [ "$${1-}" = --check ]; then rc=1; else setpci -s "$bdf" ECAP_ACS+0x6.w="$clear" || rc=1; fi
              fi
            }
            up=$(dirname "$up")
          done
        done
        exit $rc
      EOT
    }
  }
  task "tool" {
    package {
      apt = ["pciutils"]
      dnf = ["pciutils"]
    }
  }
  task "unit" {
    unit {
      name    = "preflight-acs-off.service"
      content = "# Written by preflight.\n[Unit]\nDescription=ACS redirection off above NVIDIA cards\nAfter=multi-user.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/sbin/preflight-acs-off\n\n[Install]\nWantedBy=multi-user.target\n"
      enabled = true
      running = true
    }
  }
  task "cleared" {
    shell {
      words = "configuration space shows no redirection above a card"
      check = "\"$PREFLIGHT_ROOT/usr/local/sbin/preflight-acs-off\" --check"
      apply = "\"$PREFLIGHT_ROOT/usr/local/sbin/preflight-acs-off\""
    }
  }
}

playbook "cpu-governor" {
  title    = "Let the processor run at full clock"
  title_zh = "让处理器以最高频率运行"
  doc      = "Sets the performance governor now and at every boot. Copies through host memory and small messages of NCCL depend on the processor's clock."
  clears   = []

  task "unit" {
    unit {
      name    = "preflight-cpu-governor.service"
      content = "# Written by preflight.\n[Unit]\nDescription=Performance governor\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'for g in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do [ -w \"$g\" ] && echo performance >\"$g\"; done; exit 0'\n\n[Install]\nWantedBy=multi-user.target\n"
      enabled = true
      running = true
    }
  }
}

playbook "time-sync" {
  title    = "Keep the clock right"
  title_zh = "保持时钟准确"
  doc      = "Runs chrony, with servers of your own where you name them. Logs of several rigs cannot be read together when their clocks differ."
  clears   = []

  param "servers" {
    default = []
    doc     = "time servers; empty keeps the distribution's (in China: ntp.aliyun.com, ntp.tencent.com)"
  }

  task "package" {
    package {
      apt = ["chrony"]
      dnf = ["chrony"]
    }
  }
  task "servers" {
    when = length(param.servers) > 0
    file {
      path    = "/etc/chrony/sources.d/preflight.sources"
      content = join("", concat(["# Written by preflight.\n"], [for s in param.servers : "server ${s} iburst\n"]))
      after   = ["systemctl try-restart chrony.service || systemctl try-restart chronyd.service"]
    }
  }
  task "unit" {
    unit {
      name    = system.debian ? "chrony.service" : "chronyd.service"
      enabled = true
      running = true
    }
  }
}

playbook "slurm-prolog" {
  title    = "Let Slurm start no job on a rig that fell ill"
  title_zh = "机器有故障时不让 Slurm 启动作业"
  doc      = "Writes a prolog that looks at each card before a job: one that does not answer, fell off the bus or lacks lanes drains the node with the reason. Slurm's own configuration must name it."
  clears   = []
  notes    = ["Set Prolog=/etc/slurm/prolog.d/preflight.sh in slurm.conf (or PrologFlags with a glob), and run scontrol reconfigure."]

  param "path" {
    default = "/etc/slurm/prolog.d/preflight.sh"
    doc     = "where Slurm looks for prologs"
  }

  task "prolog" {
    file {
      path    = param.path
      mode    = "0755"
      content = <<-EOT
        #!/bin/sh
        # Written by preflight: a rig whose cards do not answer gets no job. Slurm drains the node when this does not end with 0.
        seen=$(timeout 20 nvidia-smi --query-gpu=pci.bus_id,pcie.link.width.current,pcie.link.width.max --format=csv,noheader,nounits 2>&1) || {
          echo "preflight: nvidia-smi does not answer: $seen"
          exit 1
        }
        cards=$(printf '%s\n' "$seen" | grep -c .)
        want=${coalesce(rig.cards, 0)}
        if [ "$want" -gt 0 ] && [ "$cards" -ne "$want" ]; then
          echo "preflight: $cards of $want cards answer"
          exit 1
        fi
        exit 0
      EOT
    }
  }
}
