package rigsim

// port is a root port with a slot.
type port struct {
	Bus    int // root bus
	Dev    int
	Fn     int
	Width  int // lanes of the slot
	Socket int
	Slot   string // SMBIOS type 9 designation
}

// board is a mainboard, with the slots that cards go into in the order in which people fill them.
type board struct {
	Key                   string
	SysVendor, Product    string
	Vendor, Name, Version string
	BIOSVendor, BIOS      string
	BIOSDate              string // MM/DD/YYYY
	Chassis               byte   // SMBIOS type 3
	CPU                   string
	Sockets               int
	DIMMs                 int // sockets
	DIMMKind              byte
	DIMMMTs               int
	Server                bool // BMC, IPMI, listed supplies
	RootBuses             []int
	Ports                 []port
}

var boards = map[string]board{
	"wrx90": {
		Key: "wrx90", SysVendor: "ASUS", Product: "System Product Name", Vendor: "ASUSTeK COMPUTER INC.", Name: "Pro WS WRX90E-SAGE SE", Version: "Rev 1.xx",
		BIOSVendor: "American Megatrends Inc.", BIOS: "1106", BIOSDate: "02/14/2025", Chassis: 3, CPU: "tr-pro-7975wx", Sockets: 1,
		DIMMs: 8, DIMMKind: 0x22, DIMMMTs: 4800, RootBuses: []int{0x00, 0x20, 0x40, 0xc0},
		Ports: []port{{0x20, 1, 1, 16, 0, "PCIEX16(G5)_1"}, {0x40, 1, 1, 16, 0, "PCIEX16(G5)_5"}, {0xc0, 1, 1, 16, 0, "PCIEX16(G5)_3"}, {0x00, 1, 1, 16, 0, "PCIEX16(G5)_7"}},
	},
	"romed8-2t": {
		Key: "romed8-2t", SysVendor: "To Be Filled By O.E.M.", Product: "To Be Filled By O.E.M.", Vendor: "ASRockRack", Name: "ROMED8-2T", Version: "",
		BIOSVendor: "American Megatrends International, LLC.", BIOS: "P3.50", BIOSDate: "03/10/2022", Chassis: 3, CPU: "epyc-7543p", Sockets: 1,
		DIMMs: 8, DIMMKind: 0x1a, DIMMMTs: 3200, Server: true, RootBuses: []int{0x00, 0x40, 0x80, 0xc0},
		Ports: []port{
			{0x00, 1, 1, 16, 0, "PCIE6"},
			{0x40, 1, 1, 16, 0, "PCIE1"},
			{0x80, 1, 1, 16, 0, "PCIE3"},
			{0xc0, 1, 1, 16, 0, "PCIE5"},
			{0x40, 3, 1, 16, 0, "PCIE2"},
			{0x80, 3, 1, 16, 0, "PCIE4"},
		},
	},
	"as-4124gs": {
		Key: "as-4124gs", SysVendor: "Supermicro", Product: "AS -4124GS-TNR", Vendor: "Supermicro", Name: "H12DSG-O-CPU", Version: "1.01A",
		BIOSVendor: "American Megatrends Inc.", BIOS: "2.4", BIOSDate: "12/30/2021", Chassis: 17, CPU: "epyc-7542", Sockets: 2,
		DIMMs: 32, DIMMKind: 0x1a, DIMMMTs: 3200, Server: true, RootBuses: []int{0x00, 0x20, 0x40, 0x60, 0x80, 0xa0, 0xc0, 0xe0},
		Ports: []port{
			{0x00, 1, 1, 16, 0, "CPU1 SLOT1 PCI-E 4.0 X16"},
			{0x20, 1, 1, 16, 0, "CPU1 SLOT2 PCI-E 4.0 X16"},
			{0x40, 1, 1, 16, 0, "CPU1 SLOT3 PCI-E 4.0 X16"},
			{0x60, 1, 1, 16, 0, "CPU1 SLOT4 PCI-E 4.0 X16"},
			{0x80, 1, 1, 16, 1, "CPU2 SLOT5 PCI-E 4.0 X16"},
			{0xa0, 1, 1, 16, 1, "CPU2 SLOT6 PCI-E 4.0 X16"},
			{0xc0, 1, 1, 16, 1, "CPU2 SLOT7 PCI-E 4.0 X16"},
			{0xe0, 1, 1, 16, 1, "CPU2 SLOT8 PCI-E 4.0 X16"},
		},
	},
	// Two slots that share the processor's sixteen lanes: each port runs x8 by design.
	"am5": {
		Key: "am5", SysVendor: "ASUS", Product: "System Product Name", Vendor: "ASUSTeK COMPUTER INC.", Name: "ProArt X670E-CREATOR WIFI", Version: "Rev 1.xx",
		BIOSVendor: "American Megatrends Inc.", BIOS: "2204", BIOSDate: "06/20/2024", Chassis: 3, CPU: "ryzen-7950x", Sockets: 1,
		DIMMs: 4, DIMMKind: 0x22, DIMMMTs: 4800, RootBuses: []int{0x00},
		Ports: []port{{0x00, 1, 1, 8, 0, "PCIEX16_1"}, {0x00, 1, 2, 8, 0, "PCIEX16_2"}},
	},
}
