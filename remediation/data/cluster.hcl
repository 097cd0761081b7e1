# Remedies of cluster.consistency: one for each kind of difference.

remedy "cluster.consistency/driver" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others", package = "name=version" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "See which packages are installed, here and on a rig that has the value wanted."
    text_zh = "在本机和版本正确的机器上分别查看安装了哪些软件包。"
    command = "dpkg -l 2>/dev/null | grep -E '^ii +(lib)?nvidia' || rpm -qa 'nvidia*' 'kmod-nvidia*'"
  }
  step {
    text    = "Install the same package in the same version (NAME=VERSION as apt-cache madison NAME lists it; dnf install NAME-VERSION), and reboot."
    text_zh = "安装同名同版本的软件包（apt-cache madison 列出的 NAME=VERSION；dnf 为 NAME-VERSION），然后重启。"
    command = "sudo apt-get install {package} && sudo systemctl reboot"
  }
  step {
    text    = "Hold it there, so that an update of one rig does not part them again."
    text_zh = "锁定版本，避免单机升级再次造成不一致。"
    command = "dpkg-query -W -f '$${db:Status-Abbrev} $${Package}\\n' '*nvidia*' | awk '/^ii/ && $2 !~ /container/ {print $2}' | xargs sudo apt-mark hold"
  }
  step {
    text    = "Where no value is the majority's, choose one (the newest that all cards and jobs run on) and bring every rig of the group to it."
    text_zh = "如果没有多数，选定一个（所有卡和作业都能用的最新版本），把组内每台机器都统一过去。"
    hand    = true
  }
}

remedy "cluster.consistency/nccl" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "See version and file on each rig."
    text_zh = "在每台机器上查看版本和文件。"
    command = "python3 -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'; pip list | grep -i nccl"
  }
  step {
    text    = "Install one set of packages everywhere, from one lock file or one container image: NCCL refuses or hangs between different versions."
    text_zh = "用同一个锁文件或同一个镜像在所有机器上安装同一套包：NCCL 在不同版本之间会拒绝连接或挂死。"
    hand    = true
  }
}

remedy "cluster.consistency/kernel" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others", kernel = "its release" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "See what is installed and what will boot."
    text_zh = "查看已安装的内核和下次启动的内核。"
    command = "uname -r; dpkg -l 'linux-image-*' | grep ^ii; grep ^GRUB_DEFAULT /etc/default/grub"
  }
  step {
    text    = "Install the kernel of the others ({there}) with its headers, for which DKMS builds the driver's module; choose it in the boot menu where a newer one is installed, and reboot."
    text_zh = "安装与其他机器相同的内核（{there}）及头文件，DKMS 会为它编译驱动模块；若本机装有更新的内核，在引导菜单中选定它，再重启。"
    command = "sudo apt-get install linux-image-{kernel} linux-headers-{kernel} linux-modules-extra-{kernel} && dkms status"
  }
}

remedy "cluster.consistency/cmdline" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "Set the same options in /etc/default/grub on every rig (GRUB_CMDLINE_LINUX_DEFAULT), for instance iommu=pt."
    text_zh = "在每台机器的 /etc/default/grub（GRUB_CMDLINE_LINUX_DEFAULT）里写相同选项，例如 iommu=pt。"
    command = "grep ^GRUB_CMDLINE /etc/default/grub; cat /proc/cmdline"
  }
  step {
    text    = "Write the boot menu and reboot (RHEL and kin: grub2-mkconfig -o /boot/grub2/grub.cfg)."
    text_zh = "更新引导菜单并重启（RHEL 系：grub2-mkconfig -o /boot/grub2/grub.cfg）。"
    command = "sudo update-grub && sudo systemctl reboot"
  }
}

remedy "cluster.consistency/bios" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "Flash the same BIOS version on every rig from the BMC or from setup, then load one saved profile of settings on all of them."
    text_zh = "通过 BMC 或 BIOS 界面把所有机器刷到同一版本，再导入同一份保存的设置。"
    hand    = true
  }
  step {
    text    = "Make the settings alike that cards depend on, and boot mode and NUMA nodes per socket with them: Above 4G Decoding."
    text_zh = "把显卡依赖的设置统一（启动模式和每颗 CPU 的 NUMA 节点数也要一致）：Above 4G Decoding。"
    bios    = "above_4g_decoding"
  }
  step {
    text    = "Re-Size BAR."
    text_zh = "Re-Size BAR 设置。"
    bios    = "resizable_bar"
  }
  step {
    text    = "IOMMU, as on the others."
    text_zh = "IOMMU，与其他机器一致。"
    bios    = "iommu"
  }
  step {
    text    = "ACS, as on the others."
    text_zh = "ACS，与其他机器一致。"
    bios    = "acs"
  }
}

remedy "cluster.consistency/vbios" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "See the VBIOS of each card."
    text_zh = "查看每张卡的 VBIOS。"
    command = "nvidia-smi --query-gpu=index,pci.bus_id,name,vbios_version --format=csv"
  }
  step {
    text    = "Flash the version of the others with the tool that the card's maker gives for exactly this model; an image of another model can leave the card dead. Cards of two makers differ by right."
    text_zh = "用显卡厂商为该型号提供的工具刷成与其他机器相同的版本；刷错型号可能让卡报废。不同厂商的卡本来就不同。"
    hand    = true
  }
}

remedy "cluster.consistency/persistence" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "Switch the driver's daemon on for every boot, on every rig."
    text_zh = "在每台机器上启用驱动的持久化守护进程。"
    command = "sudo systemctl enable --now nvidia-persistenced && nvidia-smi --query-gpu=index,persistence_mode --format=csv"
  }
}

remedy "cluster.consistency/power" {
  title    = "Bring {what} from {here} to {there}"
  title_zh = "把 {what} 从 {here} 统一为 {there}"
  params   = { what = "it", here = "one value", there = "that of the others", watts = "so many" }
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only cluster.consistency {rig}"
  clears   = ["cluster.consistency"]

  step {
    text    = "See limits and defaults."
    text_zh = "查看上限和默认值。"
    command = "nvidia-smi --query-gpu=index,power.limit,power.default_limit --format=csv"
  }
  step {
    text    = "Set one limit on all rigs: all wait for the slowest card. Put it into a unit that runs at boot, since it is lost otherwise."
    text_zh = "在所有机器上设置同一上限：整个作业要等最慢的卡。写进开机运行的 unit，否则重启即失效。"
    command = "sudo nvidia-smi -pl {watts}"
  }
}
