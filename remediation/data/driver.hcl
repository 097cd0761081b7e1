# Remedies of driver.loaded.

remedy "driver.loaded/not-installed" {
  title    = "Install the NVIDIA driver"
  title_zh = "安装 NVIDIA 驱动"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Install the headers of the running kernel, so that the module can be built (Debian, Ubuntu; on Fedora and RHEL: kernel-devel-$(uname -r))."
    text_zh = "安装当前运行内核的头文件，以便编译模块（Debian、Ubuntu；Fedora 和 RHEL 上为 kernel-devel-$(uname -r)）。"
    command = "sudo apt-get update && sudo apt-get install -y linux-headers-$(uname -r)"
  }
  step {
    text    = "Ubuntu: install the driver that fits the cards, in its form for servers."
    text_zh = "Ubuntu：安装与卡匹配的服务器版驱动。"
    command = "sudo ubuntu-drivers install --gpgpu"
  }
  step {
    text    = "Debian, with the non-free component switched on."
    text_zh = "Debian，需先启用 non-free 软件源。"
    command = "sudo apt-get install -y nvidia-driver nvidia-smi"
  }
  step {
    text    = "Fedora, RHEL and kin, with NVIDIA's own repository."
    text_zh = "Fedora、RHEL 及同类系统，使用 NVIDIA 官方软件源。"
    command = "sudo dnf install -y nvidia-open"
  }
  step {
    text    = "Reboot, then see that every card is listed."
    text_zh = "重启，然后确认列出了每一张卡。"
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/not-loaded" {
  title    = "Load the NVIDIA driver"
  title_zh = "加载 NVIDIA 驱动"
  reboot   = "no"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Load it by hand; the message says what is in the way."
    text_zh = "手动加载；报错信息会说明原因。"
    command = "sudo modprobe nvidia && nvidia-smi -L"
  }
  step {
    text    = "'Module not found' after a kernel update: build it for the running kernel."
    text_zh = "内核更新后出现 'Module not found'：为当前运行的内核重新编译。"
    command = "sudo apt-get install -y linux-headers-$(uname -r); sudo dkms autoinstall && dkms status"
  }
  step {
    text    = "'No such device' or 'Operation not permitted': the kernel's log has the reason."
    text_zh = "'No such device' 或 'Operation not permitted'：原因在内核日志里。"
    command = "sudo dmesg | grep -iE 'nvrm|nvidia|module verification|key was rejected' | tail -n 30"
  }
}

remedy "driver.loaded/nouveau" {
  title    = "Keep nouveau away from the cards"
  title_zh = "不让 nouveau 占用显卡"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Forbid nouveau."
    text_zh = "禁用 nouveau。"
    command = "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
  }
  step {
    text    = "Put that into the image that starts the system, or nouveau comes back from there."
    text_zh = "把这项设置写进启动镜像，否则 nouveau 会从镜像里再次加载。"
    command = "sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all"
  }
  step {
    text    = "Reboot, and see that nvidia is 'in use' on every card. If nvidia-smi is not there at all, install the driver first."
    text_zh = "重启，确认每张卡的 'in use' 都是 nvidia。若根本没有 nvidia-smi，请先安装驱动。"
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/version-mismatch" {
  title    = "Bring the kernel module and the libraries to one version"
  title_zh = "让内核模块与用户态库版本一致"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Compare the module in the kernel with the one on disk: the package was updated while the old module kept running."
    text_zh = "比较内核中的模块与磁盘上的模块：软件包已更新，而旧模块仍在运行。"
    command = "head -n1 /proc/driver/nvidia/version; modinfo -F version nvidia"
  }
  step {
    text    = "Reboot; this always helps when the two on disk agree."
    text_zh = "重启；只要磁盘上的两者一致，重启就能解决。"
    command = "sudo systemctl reboot"
  }
  step {
    text    = "If it stays, two installations lie over each other (a .run installer and packages). See which libraries are there, and remove the .run one."
    text_zh = "若仍不行，说明两套安装互相覆盖（.run 安装包与软件包）。查看有哪些库，并卸载 .run 安装的那套。"
    command = "ldconfig -p | grep -E 'libcuda|libnvidia-ml'; sudo nvidia-uninstall"
  }
  step {
    text    = "Keep unattended updates from doing it again."
    text_zh = "防止自动更新再次造成同样问题。"
    command = "sudo apt-mark hold $(dpkg-query -W -f '$${Package} ' 'nvidia-*' 'libnvidia-*')"
  }
}

remedy "driver.loaded/vfio" {
  title    = "Take {bdf} back from virtual machines"
  title_zh = "把 {bdf} 从虚拟机手中收回"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Find what reserves it: ids for vfio-pci on the kernel's command line or in a modprobe file, or an override."
    text_zh = "找出是什么保留了它：内核命令行或 modprobe 文件中的 vfio-pci ids，或 driver_override。"
    command = "cat /proc/cmdline; grep -rn vfio /etc/modprobe.d /etc/modules-load.d; driverctl list-overrides 2>/dev/null"
  }
  step {
    text    = "Remove an override by driverctl, where one is listed."
    text_zh = "若 driverctl 中列有覆盖项，将其删除。"
    command = "sudo driverctl unset-override {bdf}"
  }
  step {
    text    = "Otherwise delete the ids from the file that was found (vfio-pci.ids= or options vfio-pci ids=), and renew the images."
    text_zh = "否则从找到的文件中删除这些 id（vfio-pci.ids= 或 options vfio-pci ids=），并更新启动镜像。"
    command = "sudo update-grub; sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all"
  }
  step {
    text    = "Reboot, and see that nvidia is 'in use'."
    text_zh = "重启，确认 'in use' 是 nvidia。"
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/unbound" {
  title    = "Find out why the driver does not take {bdf}"
  title_zh = "查明驱动为何不接管 {bdf}"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded,firmware.above-4g {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "Read the driver's own words. 'not supported by the … driver' wants another driver, 'BAR1 is 0M' wants address space, 'RmInitAdapter failed' is the card or its power."
    text_zh = "看驱动自己的说法：'not supported by the … driver' 需要换驱动，'BAR1 is 0M' 是缺地址空间，'RmInitAdapter failed' 是卡或其供电的问题。"
    command = "sudo dmesg | grep -iE 'NVRM|nvidia' | tail -n 40"
  }
  step {
    text    = "Offer the card to the driver once more, and read the log again."
    text_zh = "让驱动再接管一次该卡，并重新查看日志。"
    command = "echo {bdf} | sudo tee /sys/bus/pci/drivers/nvidia/bind; sudo dmesg | tail -n 20"
  }
  step {
    text    = "A card that is newer than the driver: install a newer driver, then reboot."
    text_zh = "卡比驱动新：安装更新的驱动，然后重启。"
    command = "sudo ubuntu-drivers install --gpgpu && sudo systemctl reboot"
  }
  step {
    text    = "'RmInitAdapter failed' that stays: shut down, pull the mains plugs for 30 seconds, push the card's power plugs in until they click, and start again."
    text_zh = "'RmInitAdapter failed' 一直存在：关机，拔掉电源线 30 秒，把卡的供电插头插到咔哒一声，再开机。"
    hand    = true
  }
}

remedy "driver.loaded/hung" {
  title    = "Free the driver that no longer answers"
  title_zh = "解脱不再应答的驱动"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "List processes stuck in the kernel (state D). They cannot be ended, and every further nvidia-smi joins them."
    text_zh = "列出卡在内核中的进程（状态 D）。它们无法结束，之后每个 nvidia-smi 都会同样卡住。"
    command = "ps -eo pid,stat,wchan:24,args | awk '$2 ~ /^D/'"
  }
  step {
    text    = "Read which card is the cause, by its Xid."
    text_zh = "按 Xid 看是哪张卡引起的。"
    command = "sudo dmesg | grep -E 'Xid|fallen off|NVRM' | tail -n 30"
  }
  step {
    text    = "End all jobs on the cards, then reboot."
    text_zh = "结束卡上的所有作业，然后重启。"
    command = "sudo systemctl reboot"
  }
  step {
    text    = "If the reboot does not go through, cut the power: by the BMC where there is one, else at the supply's switch."
    text_zh = "若重启无法完成，就断电：有 BMC 用 BMC，否则用电源开关。"
    command = "ipmitool -I lanplus -H BMC-ADDRESS -U USER -a chassis power cycle"
  }
}

remedy "driver.loaded/open-module" {
  title    = "Use NVIDIA's open kernel modules, which these cards need"
  title_zh = "使用这些卡所需的 NVIDIA 开源内核模块"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "See which kind is installed: 'NVIDIA' is the closed one, 'Dual MIT/GPL' the open one."
    text_zh = "看安装的是哪一种：'NVIDIA' 为闭源，'Dual MIT/GPL' 为开源。"
    command = "modinfo -F license nvidia"
  }
  step {
    text    = "Ubuntu: install the open form (its name ends in -open; take the newest that is listed)."
    text_zh = "Ubuntu：安装开源版（名称以 -open 结尾；取列出的最新版）。"
    command = "ubuntu-drivers list --gpgpu | grep -- -open; sudo apt-get install -y nvidia-driver-570-server-open"
  }
  step {
    text    = "With NVIDIA's own repository (Debian, Fedora, RHEL)."
    text_zh = "使用 NVIDIA 官方软件源（Debian、Fedora、RHEL）。"
    command = "sudo apt-get install -y nvidia-open || sudo dnf install -y nvidia-open"
  }
  step {
    text    = "Reboot."
    text_zh = "重启。"
    command = "sudo systemctl reboot"
  }
}

remedy "driver.loaded/secure-boot" {
  title    = "Let Secure Boot accept the NVIDIA module"
  title_zh = "让 Secure Boot 接受 NVIDIA 模块"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only driver.loaded {rig}"
  clears   = ["driver.loaded", "gpu.count"]

  step {
    text    = "See that Secure Boot is on and that the module was refused."
    text_zh = "确认 Secure Boot 已开启且模块被拒绝。"
    command = "mokutil --sb-state; sudo dmesg | grep -iE 'key was rejected|unsigned module'"
  }
  step {
    text    = "Enrol the key that DKMS signs with; choose a password that you can type on a US keyboard."
    text_zh = "登记 DKMS 签名所用的密钥；设一个能用美式键盘输入的密码。"
    command = "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der || sudo mokutil --import /var/lib/dkms/mok.pub"
  }
  step {
    text    = "Reboot at the console or through the BMC: a blue screen asks. Choose Enroll MOK ▸ Continue ▸ Yes, and give the password."
    text_zh = "在控制台或通过 BMC 重启：会出现蓝色界面。依次选 Enroll MOK ▸ Continue ▸ Yes，并输入密码。"
    hand    = true
  }
  step {
    text    = "Or, where the site's rules allow it, switch Secure Boot off."
    text_zh = "或者，在机房规定允许时关闭 Secure Boot。"
    bios    = "secure_boot"
  }
}
