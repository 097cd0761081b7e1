# The NVIDIA driver and what keeps it as it should be.

playbook "persistence" {
  title    = "Keep the cards initialised"
  title_zh = "让显卡保持初始化状态"
  doc      = "Starts nvidia-persistenced at each boot. Without it the driver lets go of idle cards: each job waits for them again, and a power limit is lost."
  clears   = ["driver.persistence/off"]
  when     = host.driver.loaded
  why_not  = "the NVIDIA driver is not loaded: mend that first"

  param "mode" {
    default = "daemon"
    one_of  = ["daemon", "legacy"]
    doc     = "daemon: nvidia-persistenced, which comes with the driver; legacy: a unit of ours that runs nvidia-smi -pm 1"
  }

  task "override" {
    when = param.mode == "daemon"
    shell {
      words = "start the daemon without --no-persistence-mode, as some packages do"
      check = "! systemctl cat nvidia-persistenced.service 2>/dev/null | grep '^ExecStart=/' | tail -n 1 | grep -q -- --no-persistence-mode"
      apply = <<-EOT
        d="$PREFLIGHT_ROOT/etc/systemd/system/nvidia-persistenced.service.d"
        mkdir -p "$d"
        line=$(systemctl cat nvidia-persistenced.service | grep '^ExecStart=/' | tail -n 1 | sed 's/ --no-persistence-mode//')
        printf '# Written by preflight.\n[Service]\nExecStart=\n%s\n' "$line" >"$d/preflight.conf"
        systemctl daemon-reload
        systemctl try-restart nvidia-persistenced.service
      EOT
      undo = <<-EOT
        rm -f "$PREFLIGHT_ROOT/etc/systemd/system/nvidia-persistenced.service.d/preflight.conf"
        rmdir "$PREFLIGHT_ROOT/etc/systemd/system/nvidia-persistenced.service.d" 2>/dev/null || true
        systemctl daemon-reload
        systemctl try-restart nvidia-persistenced.service
      EOT
    }
  }
  task "daemon" {
    when = param.mode == "daemon"
    unit {
      name    = "nvidia-persistenced.service"
      enabled = true
      running = true
    }
  }
  task "legacy" {
    when = param.mode == "legacy"
    unit {
      name    = "preflight-persistence.service"
      content = "# Written by preflight.\n[Unit]\nDescription=Persistence mode of the NVIDIA cards\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-smi -pm 1\n\n[Install]\nWantedBy=multi-user.target\n"
      enabled = true
      running = true
    }
  }
}

playbook "power-cap" {
  title    = "Cap the power of each card, at every boot"
  title_zh = "每次启动时限制每张卡的功率"
  doc      = "Sets a power limit for all cards and a unit that sets it again at boot: nvidia-smi -pl alone is lost at a reboot. With watts = auto, the cap that the finding power.psu names."
  clears   = ["power.psu/short", "power.psu/cap-not-permanent"]
  when     = host.driver.loaded
  why_not  = "the NVIDIA driver is not loaded: mend that first"
  notes    = ["A cap makes too small supplies do; it does not make them good. Fit larger ones when the cards must run at full power."]

  param "watts" {
    default = "auto"
    doc     = "watts for each card, or auto: what the finding about the supplies names"
  }

  task "unit" {
    unit {
      name    = "preflight-power-cap.service"
      content = "# Written by preflight.\n[Unit]\nDescription=Power limit of the NVIDIA cards\nAfter=nvidia-persistenced.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-smi -pm 1\nExecStart=/usr/bin/nvidia-smi -pl ${param.watts == "auto" ? (try(finding.cap_watts, "") != "" ? finding.cap_watts : finding.cap) : param.watts}\n\n[Install]\nWantedBy=multi-user.target\n"
      enabled = true
      running = true
    }
  }
}

playbook "nouveau-off" {
  title    = "Keep nouveau away from the cards"
  title_zh = "禁止 nouveau 占用显卡"
  doc      = "Blacklists nouveau in the running system and in the initramfs, so that the NVIDIA driver gets the cards at the next boot."
  clears   = ["driver.loaded/nouveau"]

  task "blacklist" {
    modprobe {
      name      = "preflight-nouveau"
      content   = "# Written by preflight.\nblacklist nouveau\noptions nouveau modeset=0\n"
      initramfs = true
    }
  }
}

playbook "nvidia-driver" {
  title    = "Install the NVIDIA driver from the distribution"
  title_zh = "从发行版安装 NVIDIA 驱动"
  doc      = "Installs a driver branch from the distribution's packages (on Debian and Ubuntu; on others NVIDIA's repository must be there) and holds its version, so that all rigs of a group stay alike. Mirrors are those of the distribution: apt and dnf are asked as they are set up."
  clears   = ["driver.loaded/not-installed", "cluster.consistency/driver"]
  notes    = ["With Secure Boot a module from outside the distribution must be signed, or Secure Boot be off."]

  param "branch" {
    default = "570"
    doc     = "driver branch, as in nvidia-driver-570-server"
  }
  param "flavour" {
    default = "open"
    one_of  = ["open", "proprietary"]
    doc     = "kernel module: open for Turing and later, which Blackwell needs; proprietary for older cards"
  }
  param "package" {
    default = ""
    doc     = "name of the package, where the distribution's is another; empty makes it of branch and flavour"
  }
  param "hold" {
    default = true
    doc     = "keep the version at upgrades"
  }

  task "driver" {
    reboot = true
    package {
      apt  = [param.package != "" ? param.package : "nvidia-driver-${param.branch}-server${param.flavour == "open" ? "-open" : ""}", "nvidia-utils-${param.branch}-server"]
      dnf  = [param.package != "" ? param.package : "nvidia-driver"]
      hold = param.hold
    }
  }
}
