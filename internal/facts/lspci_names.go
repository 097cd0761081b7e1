package facts

// classCodes are the classes of functions by lspci's names for them, those that some check looks at (pci.ids).
var classCodes = map[string]string{
	"VGA compatible controller": "0300", "3D controller": "0302", "Display controller": "0380", "Processing accelerators": "1200",
	"Host bridge": "0600", "ISA bridge": "0601", "PCI bridge": "0604", "Bridge": "0680", "Non-Volatile memory controller": "0108",
	"RAID bus controller": "0104", "SATA controller": "0106", "Serial Attached SCSI controller": "0107", "Ethernet controller": "0200",
	"Infiniband controller": "0207", "Network controller": "0280", "Audio device": "0403", "USB controller": "0c03", "SMBus": "0c05",
	"Serial bus controller": "0c80", "System peripheral": "0880", "IOMMU": "0806", "Communication controller": "0780",
	"Signal processing controller": "1180", "Encryption controller": "1080", "Generic system peripheral": "0880",
}

// vendorNames are the vendors of cards, processors, bridges and card makers by the names that lspci prints (pci.ids).
// Longer names come before their beginnings.
var vendorNames = []struct{ name, id string }{
	{"NVIDIA Corporation", "10de"},
	{"Intel Corporation", "8086"},
	{"Advanced Micro Devices, Inc. [AMD/ATI]", "1002"},
	{"Advanced Micro Devices, Inc. [AMD]", "1022"},
	{"PLX Technology, Inc.", "10b5"},
	{"Broadcom / LSI", "1000"},
	{"LSI Logic / Symbios Logic", "1000"},
	{"PMC-Sierra Inc.", "11f8"},
	{"Microchip Technology", "11f8"},
	{"ASMedia Technology Inc.", "1b21"},
	{"Pericom Semiconductor", "12d8"},
	{"ASPEED Technology, Inc.", "1a03"},
	{"Matrox Electronics Systems Ltd.", "102b"},
	{"Mellanox Technologies", "15b3"},
	{"Red Hat, Inc.", "1af4"},
	{"Samsung Electronics Co Ltd", "144d"},
	{"ASUSTeK Computer Inc.", "1043"},
	{"Gigabyte Technology Co., Ltd", "1458"},
	{"Micro-Star International Co., Ltd.", "1462"},
	{"ZOTAC International (MCO) Ltd.", "19da"},
	{"eVga.com. Corp.", "3842"},
	{"EVGA Corp.", "3842"},
	{"Palit Microsystems Inc.", "1569"},
	{"CardExpert Technology", "10b0"},
	{"Gainward GmbH", "10b0"},
	{"Colorful Technology And Development Co., Ltd", "7377"},
	{"Device 7377", "7377"},
	{"PNY", "196e"},
	{"KFA2/Galaxy Microsystems Ltd.", "1b4c"},
	{"GALAX", "1b4c"},
	{"Dell", "1028"},
	{"Hewlett-Packard Company", "103c"},
	{"Hewlett Packard Enterprise", "1590"},
	{"Lenovo", "17aa"},
	{"Super Micro Computer Inc", "15d9"},
}
