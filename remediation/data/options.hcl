# What makers call the options of data/bios_paths.csv, for boards that are not in it.

option "above_4g_decoding" {
  place = "the PCI page"
  names = ["Above 4G Decoding", "Above 4G memory", "Memory Mapped I/O above 4 GB", "PCI 64-bit Resource Allocation", "PCI Express 64-Bit BAR Support"]
  value = "Enabled"
}

option "resizable_bar" {
  place = "the PCI page"
  names = ["Re-Size BAR Support", "Resizable BAR", "Smart Access Memory", "C.A.M. (Clever Access Memory)"]
  value = "Enabled"
}

option "mmio_high_base" {
  place = "the PCI page"
  names = ["MMIO High Base", "MMIOHBase", "Memory Mapped I/O Base"]
  value = "the highest offered that the cards can reach (32T on most)"
}

option "mmio_high_size" {
  place = "the PCI page"
  names = ["MMIO High Granularity Size", "MMIOH Size", "Memory Mapped I/O Size"]
  value = "1024G, or the largest offered"
}

option "csm" {
  place = "the Boot page"
  names = ["CSM Support", "Launch CSM", "Boot Mode Select", "BIOS CSM/UEFI Mode"]
  value = "Disabled (UEFI only)"
}

option "secure_boot" {
  place = "the Security or Boot page"
  names = ["Secure Boot", "Secure Boot Enable", "OS Type = Other OS"]
  value = "Disabled"
}

option "iommu" {
  place = "the CPU or chipset page"
  names = ["IOMMU", "Intel VT for Directed I/O (VT-d)"]
  value = "Disabled"
}

option "acs" {
  place = "the chipset page (AMD: CBS ▸ NBIO Common Options)"
  names = ["ACS Enable", "ACS Control", "Access Control Service"]
  value = "Disabled"
}

option "pcie_bifurcation" {
  place = "the PCI or chipset page, one line for each slot"
  names = ["PCIe Bifurcation", "PCIE1 Link Width", "IOU0 (IIO PCIe Br1)", "PCIEX16 Bandwidth"]
  value = "x16"
}

option "pcie_link_speed" {
  place = "the PCI or chipset page, one line for each slot"
  names = ["PCIe Link Speed", "PCIEX16 Link Mode", "Gen Switch"]
  value = "Auto"
}
