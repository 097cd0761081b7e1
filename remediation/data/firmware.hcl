# Remedies of firmware.*: what the BIOS must be told.

remedy "firmware.above-4g/off" {
  title    = "Switch Above 4G Decoding on"
  title_zh = "打开 Above 4G Decoding"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware {rig}"
  clears   = ["firmware.above-4g", "gpu.count"]

  step {
    text    = "Let the firmware map cards above 4 GiB."
    text_zh = "让固件把卡映射到 4 GiB 以上。"
    bios    = "above_4g_decoding"
  }
  step {
    text    = "Start by UEFI alone: on many boards the option is hidden or without effect while the compatibility module (CSM) is on. A system that was installed in legacy mode will not start then; convert its disk to GPT and UEFI first."
    text_zh = "只用 UEFI 启动：在许多主板上，兼容模块（CSM）打开时该选项被隐藏或不起作用。以传统模式安装的系统届时将无法启动；请先把磁盘转换为 GPT 与 UEFI。"
    bios    = "csm"
  }
  step {
    text    = "After the reboot a window above 4 GiB must be there: an address of nine digits or more."
    text_zh = "重启后必须出现 4 GiB 以上的窗口，即九位或更多位的地址。"
    command = "sudo grep -E '^ *[0-9a-f]{9,}-.*PCI Bus' /proc/iomem"
  }
}

remedy "firmware.above-4g/unassigned" {
  title    = "Give {bdf} the address space that it did not get"
  title_zh = "为 {bdf} 分配它没有得到的地址空间"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware,gpu.count {rig}"
  clears   = ["firmware.above-4g", "driver.loaded", "gpu.count"]

  step {
    text    = "Read what the kernel could not place: [mem size …] of BAR 1, or of a bridge above the card."
    text_zh = "看内核放不下的是什么：BAR 1 的 [mem size …]，或卡上游某个桥的窗口。"
    command = "sudo dmesg | grep -E 'no space|failed to assign|no compatible bridge window' | grep '\\[mem'"
  }
  step {
    text    = "Let the firmware map cards above 4 GiB."
    text_zh = "让固件把卡映射到 4 GiB 以上。"
    bios    = "above_4g_decoding"
  }
  step {
    text    = "On server boards, enlarge the window of each root port: it must hold the BAR1 of all cards behind it (32 GiB or more for each, rounded up)."
    text_zh = "在服务器主板上，增大每个根端口的窗口：必须容得下其后所有卡的 BAR1（每张 32 GiB 或更多，向上取整）。"
    bios    = "mmio_high_size"
  }
  step {
    text    = "On server boards, raise the base where the window does not fit."
    text_zh = "在服务器主板上，窗口放不下时提高基址。"
    bios    = "mmio_high_base"
  }
  step {
    text    = "If the board has neither, let the kernel assign anew (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=pci=realloc)."
    text_zh = "若主板两者都没有，让内核重新分配（Debian、Ubuntu；其他系统：grubby --update-kernel=ALL --args=pci=realloc）。"
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&pci=realloc /' /etc/default/grub && sudo update-grub"
  }
}

remedy "firmware.resizable-bar/enable" {
  title    = "Enable Re-Size BAR"
  title_zh = "打开 Re-Size BAR"
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears   = ["firmware.resizable-bar"]

  step {
    text    = "Let the firmware map cards above 4 GiB; the next option shows only then."
    text_zh = "让固件把卡映射到 4 GiB 以上；打开后才会出现下一个选项。"
    bios    = "above_4g_decoding"
  }
  step {
    text    = "Let it enlarge the cards' BARs."
    text_zh = "允许固件放大卡的 BAR。"
    bios    = "resizable_bar"
  }
  step {
    text    = "Start by UEFI alone; with the compatibility module on, the option has no effect on many boards."
    text_zh = "只用 UEFI 启动；在许多主板上，兼容模块打开时该选项不起作用。"
    bios    = "csm"
  }
  step {
    text    = "If the BIOS has no such option, let the driver do it (R525 or newer)."
    text_zh = "若 BIOS 没有此选项，让驱动来做（R525 或更新）。"
    command = "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee /etc/modprobe.d/nvidia-resizable-bar.conf && { sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all; }"
  }
  step {
    text    = "After the reboot, BAR1 must be as large as the memory. If it is not, a card of the 30 series sold before March 2021 needs a newer VBIOS first."
    text_zh = "重启后 BAR1 必须与显存一样大。若不是，2021 年 3 月以前售出的 30 系列卡需先升级 VBIOS。"
    command = "nvidia-smi -q -d MEMORY | grep -A1 -E 'FB Memory|BAR1'"
  }
}

remedy "firmware.resizable-bar/vbios" {
  title    = "Bring a VBIOS that offers larger BARs onto {bdf}"
  title_zh = "给 {bdf} 刷入支持更大 BAR 的 VBIOS"
  params   = { bdf = "the card" }
  reboot   = "power off"
  verify   = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears   = ["firmware.resizable-bar"]

  step {
    text    = "Read which VBIOS is on the card, and its maker (Subsystem)."
    text_zh = "查看卡上的 VBIOS 版本及厂商（Subsystem）。"
    command = "nvidia-smi --query-gpu=pci.bus_id,name,vbios_version --format=csv; lspci -nnv -s {bdf} | grep Subsystem"
  }
  step {
    text    = "Factory cards of the 30 series: run the Resizable BAR updater of the card's maker (ASUS, Gigabyte, MSI, Zotac, EVGA, Palit and others have one for each model) under Windows, on one card at a time, with no other load; then cut the power once."
    text_zh = "30 系列原厂卡：在 Windows 下运行卡厂商（华硕、技嘉、微星、索泰、EVGA、同德等各型号都有）的 Resizable BAR 升级工具，每次只处理一张卡，且无其他负载；之后断电一次。"
    hand    = true
  }
  step {
    text    = "Cards converted to more memory (48 GB 4090, 20 GB 3080): no VBIOS offers more than it shows now. Keep them for jobs that do not need P2P, and record the limit in the hand-over."
    text_zh = "改装大显存的卡（48 GB 4090、20 GB 3080）：没有 VBIOS 能提供比现在更大的 BAR。用于不需要 P2P 的作业，并在交付记录中写明此限制。"
    hand    = true
  }
}

remedy "firmware.resizable-bar/partial" {
  title    = "Find room for the whole BAR1 of {bdf}"
  title_zh = "为 {bdf} 的整个 BAR1 腾出空间"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears   = ["firmware.resizable-bar"]

  step {
    text    = "See which root port ran out of space: the driver steps down to a smaller BAR1 where a window is full."
    text_zh = "看哪个根端口的空间用尽：窗口满时驱动会退到较小的 BAR1。"
    command = "sudo dmesg | grep -E 'BAR 1|bridge window' | grep -E 'no space|failed|resiz'"
  }
  step {
    text    = "Enlarge the window of each root port."
    text_zh = "增大每个根端口的窗口。"
    bios    = "mmio_high_size"
  }
  step {
    text    = "Raise the base where the board has the option."
    text_zh = "主板有此选项时提高基址。"
    bios    = "mmio_high_base"
  }
  step {
    text    = "If the board has neither, let the kernel assign anew (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=pci=realloc), then reboot."
    text_zh = "若主板两者都没有，让内核重新分配（Debian、Ubuntu；其他系统：grubby --update-kernel=ALL --args=pci=realloc），然后重启。"
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&pci=realloc /' /etc/default/grub && sudo update-grub"
  }
}

remedy "firmware.resizable-bar/display-mode" {
  title    = "Switch {bdf} from display to compute mode"
  title_zh = "把 {bdf} 从显示模式切换到计算模式"
  params   = { bdf = "the card" }
  reboot   = "yes"
  verify   = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears   = ["firmware.resizable-bar"]

  step {
    text    = "See that no monitor is driven by the card; its outputs stay dark afterwards."
    text_zh = "确认没有显示器接在该卡上；切换后其输出口不再显示。"
    command = "nvidia-smi --query-gpu=pci.bus_id,name,display_active --format=csv"
  }
  step {
    text    = "Stop what uses the cards, and change the mode with NVIDIA's Display Mode Selector (a download of NVIDIA's developer site); the choice is kept on the card."
    text_zh = "停止使用这些卡的程序，用 NVIDIA 的 Display Mode Selector（在 NVIDIA 开发者网站下载）切换模式；设置保存在卡上。"
    command = "sudo ./displaymodeselector --gpumode physical_display_disabled"
  }
  step {
    text    = "Or leave the mode, and let the driver enlarge BAR1."
    text_zh = "或保留该模式，让驱动放大 BAR1。"
    command = "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee /etc/modprobe.d/nvidia-resizable-bar.conf && { sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all; }"
  }
  step {
    text    = "Reboot."
    text_zh = "重启。"
    command = "sudo systemctl reboot"
  }
}
