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

  locals {
    watts = param.watts != "auto" ? param.watts : (try(finding.cap_watts, "") != "" ? finding.cap_watts : try(finding.cap, ""))
  }

  task "unit" {
    verify = "nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits | awk -v w='${local.watts}' '{ n++; if ($1 < w - 1 || $1 > w + 1) bad = 1 } END { if (bad || !n) { print \"the cards do not hold the limit\"; exit 1 } }'"
    unit {
      name    = "preflight-power-cap.service"
      content = "# Written by preflight.\n[Unit]\nDescription=Power limit of the NVIDIA cards\nAfter=nvidia-persistenced.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-smi -pm 1\nExecStart=/usr/bin/nvidia-smi -pl ${local.watts}\n\n[Install]\nWantedBy=multi-user.target\n"
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
    verify = "! [ -e \"$${PREFLIGHT_ROOT-}/sys/module/nouveau\" ]"
    modprobe {
      name      = "preflight-nouveau"
      content   = "# Written by preflight.\nblacklist nouveau\noptions nouveau modeset=0\n"
      initramfs = true
    }
  }
}

playbook "nvidia-driver" {
  title    = "Install the NVIDIA driver"
  title_zh = "安装 NVIDIA 驱动"
  doc      = "Installs a driver branch from the distribution's packages or from NVIDIA's repository, with the kernel module that the cards need, and holds its version. In a group whose rigs run this branch already it takes the version that most of them run, so that all stay alike."
  clears   = ["driver.loaded/not-installed", "cluster.consistency/driver"]
  notes    = ["With Secure Boot a module from outside the distribution must be signed, or Secure Boot be off.", "Where Debian's own packages are used, the branch is the one that the release has: non-free must be among its sources."]

  param "branch" {
    default = "570"
    doc     = "driver branch, as in nvidia-driver-570-server"
  }
  param "version" {
    default = "auto"
    doc     = "how the version of the packages begins, for example 570.158.01; auto: what most rigs of the group run of this branch, else the newest"
  }
  param "source" {
    default = "distribution"
    one_of  = ["distribution", "nvidia"]
    doc     = "whose packages: the distribution's, as apt and dnf are set up, or NVIDIA's repository"
  }
  param "mirror" {
    default = "https://developer.download.nvidia.com/compute/cuda/repos"
    doc     = "NVIDIA's repository or a mirror of it (in China: https://developer.download.nvidia.cn/compute/cuda/repos)"
  }
  param "key" {
    default = "auto"
    doc     = "name of the key's file in the repository; auto: 3bf863cc.pub for apt, D42D0685.pub for dnf"
  }
  param "fingerprint" {
    default = "auto"
    doc     = "fingerprint of that key, 40 hexadecimal digits"
  }
  param "flavour" {
    default = "auto"
    one_of  = ["auto", "open", "proprietary"]
    doc     = "kernel module: open for Turing and later, which Blackwell needs; proprietary for older cards; auto goes by the cards"
  }
  param "packages" {
    default = []
    doc     = "names of the packages, where they are others; empty makes them of the rest"
  }
  param "hold" {
    default = true
    doc     = "keep the version at upgrades"
  }

  locals {
    # Kepler to Volta have no GSP: the open module does not drive them (NVIDIA's driver installation guide, "Kernel Modules").
    open = param.flavour == "open" || (param.flavour == "auto" && alltrue([for a in system.architectures : !contains(["kepler", "maxwell", "pascal", "volta"], a)]))

    # From 590 on NVIDIA's packages for apt do without the branch in their names; a pinning package sets it (the same guide, "Recent updates").
    ours   = version_at_least(param.branch, "590") ? ["nvidia-driver-pinning-${param.branch}", local.open ? "nvidia-open" : "cuda-drivers"] : ["${local.open ? "nvidia-open" : "cuda-drivers"}-${param.branch}"]
    ubuntu = ["nvidia-driver-${param.branch}-server${local.open ? "-open" : ""}", "nvidia-utils-${param.branch}-server"]
    debian = concat(["nvidia-driver"], local.open ? ["nvidia-open-kernel-dkms"] : [])
    apt    = length(param.packages) > 0 ? param.packages : (param.source == "nvidia" ? local.ours : (system.distro == "ubuntu" ? local.ubuntu : local.debian))
    dnf    = length(param.packages) > 0 ? param.packages : [local.open ? "nvidia-open" : "cuda-drivers"]

    major   = split(".", system.version)[0]
    release = system.distro == "ubuntu" ? "ubuntu${replace(system.version, ".", "")}" : (system.debian ? "debian${local.major}" : (system.distro == "fedora" ? "fedora${local.major}" : "rhel${local.major}"))
    folder  = "${param.mirror}/${local.release}/${system.machine == "aarch64" ? "sbsa" : "x86_64"}"
    key     = param.key != "auto" ? param.key : (system.debian ? "3bf863cc.pub" : "D42D0685.pub")
    finger  = param.fingerprint != "auto" ? param.fingerprint : (system.debian ? "EB693B3035CD5710E231E123A4B469963BF863CC" : "610C7B14E068A878070DA4E99CD0A493D42D0685")
    version = param.version != "auto" ? param.version : (startswith(group.driver, "${param.branch}.") ? group.driver : "")
  }

  task "repository" {
    when = param.source == "nvidia"
    repository {
      name        = "nvidia-cuda"
      key         = "${local.folder}/${local.key}"
      fingerprint = local.finger
      apt         = "${local.folder}/ /"
      dnf         = "${local.folder}/"
    }
  }
  task "stream" {
    when = !system.debian && param.source == "nvidia"
    shell {
      words = "dnf module stream nvidia-driver:${param.branch}${local.open ? "-open" : ""}"
      check = "! command -v dnf >/dev/null 2>&1 || ! dnf -q module list nvidia-driver >/dev/null 2>&1 || dnf -q module list --enabled nvidia-driver 2>/dev/null | grep -q '${param.branch}${local.open ? "-open" : ""} .*\\[e\\]'"
      apply = "dnf -q -y module reset nvidia-driver\ndnf -q -y module enable 'nvidia-driver:${param.branch}${local.open ? "-open" : ""}'"
      undo  = "dnf -q -y module reset nvidia-driver"
    }
  }
  task "driver" {
    reboot = "if-changed"
    verify = "nvidia-smi -L | grep -q '^GPU 0:'"
    package {
      apt     = local.apt
      dnf     = local.dnf
      version = local.version
      hold    = param.hold
    }
  }
}
