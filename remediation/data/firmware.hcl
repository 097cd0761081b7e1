# Remedies of firmware.*: what the BIOS must be told.

remedy "firmware.above-4g/off" {
  title  = "Switch Above 4G Decoding on"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only firmware {rig}"
  clears = ["firmware.above-4g", "gpu.count"]

  step {
    text = "Let the firmware map cards above 4 GiB."
    bios = "above_4g_decoding"
  }
  step {
    text = "Start by UEFI alone: on many boards the option is hidden or without effect while the compatibility module (CSM) is on. A system that was installed in legacy mode will not start then; convert its disk to GPT and UEFI first."
    bios = "csm"
  }
  step {
    text    = "After the reboot a window above 4 GiB must be there: an address of nine digits or more."
    command = "sudo grep -E '^ *[0-9a-f]{9,}-.*PCI Bus' /proc/iomem"
  }
}

remedy "firmware.above-4g/unassigned" {
  title  = "Give {bdf} the address space that it did not get"
  params = { bdf = "the card" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only firmware,gpu.count {rig}"
  clears = ["firmware.above-4g", "driver.loaded", "gpu.count"]

  step {
    text    = "Read what the kernel could not place: [mem size …] of BAR 1, or of a bridge above the card."
    command = "sudo dmesg | grep -E 'no space|failed to assign|no compatible bridge window' | grep '\\[mem'"
  }
  step {
    text = "Let the firmware map cards above 4 GiB."
    bios = "above_4g_decoding"
  }
  step {
    text = "On server boards, enlarge the window of each root port: it must hold the BAR1 of all cards behind it (32 GiB or more for each, rounded up)."
    bios = "mmio_high_size"
  }
  step {
    text = "On server boards, raise the base where the window does not fit."
    bios = "mmio_high_base"
  }
  step {
    text    = "If the board has neither, let the kernel assign anew (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=pci=realloc)."
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&pci=realloc /' /etc/default/grub && sudo update-grub"
  }
}

remedy "firmware.resizable-bar/enable" {
  title  = "Enable Re-Size BAR"
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears = ["firmware.resizable-bar"]

  step {
    text = "Let the firmware map cards above 4 GiB; the next option shows only then."
    bios = "above_4g_decoding"
  }
  step {
    text = "Let it enlarge the cards' BARs."
    bios = "resizable_bar"
  }
  step {
    text = "Start by UEFI alone; with the compatibility module on, the option has no effect on many boards."
    bios = "csm"
  }
  step {
    text    = "If the BIOS has no such option, let the driver do it (R525 or newer)."
    command = "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee /etc/modprobe.d/nvidia-resizable-bar.conf && { sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all; }"
  }
  step {
    text    = "After the reboot, BAR1 must be as large as the memory. If it is not, a card of the 30 series sold before March 2021 needs a newer VBIOS first."
    command = "nvidia-smi -q -d MEMORY | grep -A1 -E 'FB Memory|BAR1'"
  }
}

remedy "firmware.resizable-bar/vbios" {
  title  = "Bring a VBIOS that offers larger BARs onto {bdf}"
  params = { bdf = "the card" }
  reboot = "power off"
  verify = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears = ["firmware.resizable-bar"]

  step {
    text    = "Read which VBIOS is on the card, and its maker (Subsystem)."
    command = "nvidia-smi --query-gpu=pci.bus_id,name,vbios_version --format=csv; lspci -nnv -s {bdf} | grep Subsystem"
  }
  step {
    text = "Factory cards of the 30 series: run the Resizable BAR updater of the card's maker (ASUS, Gigabyte, MSI, Zotac, EVGA, Palit and others have one for each model) under Windows, on one card at a time, with no other load; then cut the power once."
    hand = true
  }
  step {
    text = "Cards converted to more memory (48 GB 4090, 20 GB 3080): no VBIOS offers more than it shows now. Keep them for jobs that do not need P2P, and record the limit in the hand-over."
    hand = true
  }
}

remedy "firmware.resizable-bar/partial" {
  title  = "Find room for the whole BAR1 of {bdf}"
  params = { bdf = "the card" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears = ["firmware.resizable-bar"]

  step {
    text    = "See which root port ran out of space: the driver steps down to a smaller BAR1 where a window is full."
    command = "sudo dmesg | grep -E 'BAR 1|bridge window' | grep -E 'no space|failed|resiz'"
  }
  step {
    text = "Enlarge the window of each root port."
    bios = "mmio_high_size"
  }
  step {
    text = "Raise the base where the board has the option."
    bios = "mmio_high_base"
  }
  step {
    text    = "If the board has neither, let the kernel assign anew (Debian, Ubuntu; elsewhere: grubby --update-kernel=ALL --args=pci=realloc), then reboot."
    command = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&pci=realloc /' /etc/default/grub && sudo update-grub"
  }
}

remedy "firmware.resizable-bar/display-mode" {
  title  = "Switch {bdf} from display to compute mode"
  params = { bdf = "the card" }
  reboot = "yes"
  verify = "preflight check -i rigs.hcl --only firmware.resizable-bar {rig}"
  clears = ["firmware.resizable-bar"]

  step {
    text    = "See that no monitor is driven by the card; its outputs stay dark afterwards."
    command = "nvidia-smi --query-gpu=pci.bus_id,name,display_active --format=csv"
  }
  step {
    text    = "Stop what uses the cards, and change the mode with NVIDIA's Display Mode Selector (a download of NVIDIA's developer site); the choice is kept on the card."
    command = "sudo ./displaymodeselector --gpumode physical_display_disabled"
  }
  step {
    text    = "Or leave the mode, and let the driver enlarge BAR1."
    command = "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee /etc/modprobe.d/nvidia-resizable-bar.conf && { sudo update-initramfs -u -k all || sudo dracut -f --regenerate-all; }"
  }
  step {
    text    = "Reboot."
    command = "sudo systemctl reboot"
  }
}
