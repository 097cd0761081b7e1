# Remedies of PCIe errors, ACS, IOMMU and boot mode.

remedy "pcie.errors/link" {
  title    = "Stop the link errors of {bdf}"
  title_zh = "消除 {bdf} 的链路错误"
  params   = { bdf = "the card's link" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.errors {rig}"
  clears   = ["pcie.errors", "gpu.health"]

  step {
    text    = "Put the link under load and see whether the counters rise; a few since boot that do not rise are harmless."
    text_zh = "给链路加负载，看计数是否继续增加；开机以来只有几个且不再增加的，无妨。"
    command = "cat /sys/bus/pci/devices/{bdf}/aer_dev_correctable; sleep 60; cat /sys/bus/pci/devices/{bdf}/aer_dev_correctable"
  }
  step {
    text    = "Power off, take the card out, clean slot and contacts, seat it again and screw it to the bracket, so that its weight does not tilt it."
    text_zh = "断电后拔下显卡，清洁插槽和金手指，重新插好并固定挡板螺丝，避免因自重倾斜。"
    hand    = true
  }
  step {
    text    = "Riser: use a shorter one that is made for the generation in use, away from power cables; try the card without it."
    text_zh = "延长线：换更短、且标称支持当前代数的产品，远离供电线；先不用延长线直插试一次。"
    hand    = true
  }
  step {
    text    = "If they stay, set the slot one generation lower: slower and clean is faster than many repeats."
    text_zh = "若仍有错误，把插槽降一代：降速但干净，好过不断重传。"
    bios    = "pcie_link_speed"
  }
}

remedy "pcie.errors/uncorrected" {
  title    = "Find out why {bdf} loses transfers"
  title_zh = "查明 {bdf} 为何出现不可纠正的 PCIe 错误"
  params   = { bdf = "the card's link" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only pcie.errors,gpu.health {rig}"
  clears   = ["pcie.errors", "gpu.health", "driver.loaded"]

  step {
    text    = "See which error came first, and when: SDES is a link that broke, CmpltTO a card that did not answer."
    text_zh = "查看最先出现的是哪种错误、何时出现：SDES 是链路断开，CmpltTO 是显卡没有应答。"
    command = "sudo dmesg -T | grep -E -A6 'PCIe Bus Error' | head -n 60; grep -v ' 0$' /sys/bus/pci/devices/{bdf}/aer_dev_fatal /sys/bus/pci/devices/{bdf}/aer_dev_nonfatal"
  }
  step {
    text    = "Power off for 30 seconds, seat the card and its power plugs again, and take riser and extension cables out of the way for a test."
    text_zh = "断电 30 秒，重新插好显卡和供电插头，测试时先去掉 PCIe 延长线和供电加长线。"
    hand    = true
  }
  step {
    text    = "Switch off power saving of the link (ASPM), which some boards do not come back from: at once, until the next boot. For good: pcie_aspm.policy=performance on the kernel's command line; pcie_aspm=off would leave what the firmware set."
    text_zh = "关闭链路省电（ASPM），有些主板会因此恢复失败：立即生效，重启后失效。要永久生效，加内核参数 pcie_aspm.policy=performance；pcie_aspm=off 只会保留固件的设置。"
    command = "echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy"
  }
  step {
    text    = "Change places with another card: what moves with the card is the card, what stays is slot, riser or board."
    text_zh = "与另一张卡互换位置：跟着卡走的是卡的问题，留在原位的是插槽、延长线或主板。"
    hand    = true
  }
}

remedy "pcie.acs/redirect" {
  title    = "Let cards talk straight through {bdf}"
  title_zh = "让卡间流量不再绕行 {bdf}"
  params   = { bdf = "the bridge" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only pcie.acs,nccl.all-reduce {rig}"
  clears   = ["pcie.acs", "nccl.all-reduce"]

  step {
    text    = "Now, until the next boot, for every bridge that was named. Not on a host that passes cards to virtual machines: ACS is what keeps them apart there."
    text_zh = "立即生效、重启失效，对每个列出的桥执行。把显卡直通给虚拟机的主机不要这样做：那里需要 ACS 隔离。"
    command = "sudo setpci -s {bdf} ECAP_ACS+0x6.w=0000"
  }
  step {
    text    = "For good, in the BIOS."
    text_zh = "永久生效：在 BIOS 中关闭。"
    bios    = "acs"
  }
  step {
    text    = "Without such an option: let the kernel do it at each boot (4.19 and later). All addresses stand in one option, parted by \\; in /etc/default/grub. Debian, Ubuntu; elsewhere grubby --update-kernel=ALL --args=pci=disable_acs_redir=…"
    text_zh = "BIOS 没有该选项时：让内核在每次开机时关闭（4.19 及以上）。多个地址写在同一个选项里，在 /etc/default/grub 中用 \\; 分隔。适用于 Debian、Ubuntu；其他系统用 grubby --update-kernel=ALL --args=pci=disable_acs_redir=…"
    command = "sudo sed -i.bak 's/^GRUB_CMDLINE_LINUX=\"/&pci=disable_acs_redir={bdf} /' /etc/default/grub && sudo update-grub"
  }
  step {
    text    = "Reboot, and see that the bits are gone."
    text_zh = "重启后确认这些位已清除。"
    command = "sudo lspci -vvv -s {bdf} | grep ACSCtl"
  }
}

remedy "firmware.iommu/translated" {
  title    = "Take the IOMMU out of the cards' way"
  title_zh = "让 IOMMU 不再介入卡间通信"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware.iommu {rig}"
  clears   = ["firmware.iommu", "topology.p2p", "nccl.all-reduce"]

  step {
    text    = "Pass DMA through: the kernel's command line, which keeps the IOMMU for interrupts (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=iommu=pt; on ARM it is iommu.passthrough=1). Hosts that pass cards to virtual machines stay as they are."
    text_zh = "改为直通模式：加内核参数，IOMMU 仍负责中断重映射（Debian、Ubuntu；其他系统：grubby --update-kernel=ALL --args=iommu=pt；ARM 平台用 iommu.passthrough=1）。需要把显卡直通给虚拟机的主机保持原样。"
    command = "sudo sed -i.bak 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub"
  }
  step {
    text    = "Or switch it off in the BIOS, which patched P2P drivers ask for."
    text_zh = "或在 BIOS 中关闭，打了 P2P 补丁的驱动要求这样做。"
    bios    = "iommu"
  }
  step {
    text    = "Reboot."
    text_zh = "重启。"
    command = "sudo systemctl reboot"
  }
}

remedy "firmware.iommu/faults" {
  title    = "Stop the IOMMU from refusing {bdf}"
  title_zh = "解决 IOMMU 拒绝 {bdf} 访问的问题"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware.iommu,nccl.all-reduce {rig}"
  clears   = ["firmware.iommu", "nccl.all-reduce"]

  step {
    text    = "Until it is mended, keep NCCL off P2P: refused copies hang, or leave wrong data."
    text_zh = "修复之前先让 NCCL 不走 P2P：被拒绝的拷贝会卡住，或留下错误数据。"
    command = "export NCCL_P2P_DISABLE=1"
  }
  step {
    text    = "Pass DMA through, and reboot (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=iommu=pt; on ARM it is iommu.passthrough=1)."
    text_zh = "改为直通模式并重启（Debian、Ubuntu；其他系统：grubby --update-kernel=ALL --args=iommu=pt；ARM 平台用 iommu.passthrough=1）。"
    command = "sudo sed -i.bak 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub && sudo systemctl reboot"
  }
  step {
    text    = "Faults that stay: switch the IOMMU off in the BIOS."
    text_zh = "若仍有报错：在 BIOS 中关闭 IOMMU。"
    bios    = "iommu"
  }
}

remedy "firmware.boot-mode/legacy" {
  title    = "Start the machine by UEFI"
  title_zh = "改为 UEFI 启动"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware {rig}"
  clears   = ["firmware.boot-mode", "firmware.resizable-bar", "firmware.above-4g"]

  step {
    text    = "See first whether the disk can be started by UEFI: it needs GPT and an EFI partition. Without them the system must be installed anew, or converted."
    text_zh = "先确认系统盘能否 UEFI 启动：需要 GPT 分区表和 EFI 分区。没有则要重装或转换。"
    command = "lsblk -o NAME,PTTYPE,PARTTYPENAME,FSTYPE,MOUNTPOINT"
  }
  step {
    text    = "Switch the CSM off, and choose UEFI as boot mode."
    text_zh = "关闭 CSM，启动模式选 UEFI。"
    bios    = "csm"
  }
  step {
    text    = "After the start, see that it is UEFI."
    text_zh = "启动后确认已是 UEFI。"
    command = "[ -d /sys/firmware/efi ] && echo UEFI || echo legacy"
  }
}
