package rigsim

// gpuModel is a card as it shows itself. Names, ids and sizes as real cards of the model print them.
type gpuModel struct {
	Slug, Name, Brand, Arch string
	Device, Subsystem       string // upper-case hex: device id; subsystem device then vendor, as nvidia-smi prints it
	SubClass                string // 0 VGA, 2 3D controller
	MemoryMiB, ReservedMiB  int
	Gen                     int     // the card's own PCIe generation
	DefaultW, MinW, MaxW    float64 // board power limits
	VBIOS, Part, BoardPart  string
	Inforom, InforomECC     string
	ECC                     string // N/A, Disabled, Enabled
	Fan                     string // at idle
	TargetTemp              string // °C, without unit; N/A where there is none
	TLimit                  bool   // temperatures as distance to the limit (Ada and later)
	MaxClock, MemClock      int    // MHz
	VideoClock              int
	HasSerial, HasAudio     bool
	P2P                     string // what `topo -p2p` says between two of them over PCIe with the stock driver
	BigBAR                  int    // MiB of BAR1 once resized
}

var gpuModels = map[string]gpuModel{
	"rtx-4090": {
		Slug: "rtx-4090", Name: "GeForce RTX 4090", Brand: "GeForce", Arch: "Ada Lovelace", Device: "2684", Subsystem: "889D1043", SubClass: "0",
		MemoryMiB: 24564, ReservedMiB: 439, Gen: 4, DefaultW: 450, MinW: 150, MaxW: 600, VBIOS: "95.02.3C.40.B8", Part: "2684-301-A1", BoardPart: "N/A",
		Inforom: "G002.0000.00.03", InforomECC: "6.16", ECC: "Disabled", Fan: "0 %", TargetTemp: "84", TLimit: true,
		MaxClock: 3105, MemClock: 10501, VideoClock: 2415, HasAudio: true, P2P: "CNS", BigBAR: 32768,
	},
	"rtx-3090": {
		Slug: "rtx-3090", Name: "GeForce RTX 3090", Brand: "GeForce", Arch: "Ampere", Device: "2204", Subsystem: "403B1458", SubClass: "0",
		MemoryMiB: 24576, ReservedMiB: 308, Gen: 4, DefaultW: 350, MinW: 100, MaxW: 400, VBIOS: "94.02.42.C0.0E", Part: "2204-300-A1", BoardPart: "N/A",
		Inforom: "G001.0000.03.03", InforomECC: "N/A", ECC: "N/A", Fan: "0 %", TargetTemp: "83",
		MaxClock: 2100, MemClock: 9751, VideoClock: 1950, HasAudio: true, P2P: "CNS", BigBAR: 32768,
	},
	"rtx-6000-ada": {
		Slug: "rtx-6000-ada", Name: "RTX 6000 Ada Generation", Brand: "NVIDIA RTX", Arch: "Ada Lovelace", Device: "26B1", Subsystem: "16A110DE", SubClass: "0",
		MemoryMiB: 49140, ReservedMiB: 631, Gen: 4, DefaultW: 300, MinW: 100, MaxW: 300, VBIOS: "95.02.66.00.02", Part: "26B1-870-A1", BoardPart: "900-5G133-2250-000",
		Inforom: "G133.0500.00.05", InforomECC: "6.16", ECC: "Disabled", Fan: "30 %", TargetTemp: "85", TLimit: true,
		MaxClock: 3105, MemClock: 10001, VideoClock: 2415, HasSerial: true, HasAudio: true, P2P: "OK", BigBAR: 65536,
	},
}

// cpuModel is a processor as /proc/cpuinfo and SMBIOS type 4 name it.
type cpuModel struct {
	Name          string
	Cores         int
	Family, Model int
	MHz           int
	Socket        string
	Upgrade       byte // SMBIOS type 4 offset 19h
	PortDevice    string
	PortGen       int // PCIe generation of its root ports
}

var cpuModels = map[string]cpuModel{
	"tr-pro-7975wx": {Name: "AMD Ryzen Threadripper PRO 7975WX 32-Cores", Cores: 32, Family: 25, Model: 24, MHz: 4000, Socket: "sTR5", Upgrade: 0x4b, PortDevice: "14a5", PortGen: 5},
	"epyc-7543p":    {Name: "AMD EPYC 7543P 32-Core Processor", Cores: 32, Family: 25, Model: 1, MHz: 2800, Socket: "SP3", Upgrade: 0x3f, PortDevice: "1483", PortGen: 4},
	"epyc-7542":     {Name: "AMD EPYC 7542 32-Core Processor", Cores: 32, Family: 23, Model: 49, MHz: 2900, Socket: "SP3", Upgrade: 0x3f, PortDevice: "1483", PortGen: 4},
	"ryzen-7950x":   {Name: "AMD Ryzen 9 7950X 16-Core Processor", Cores: 16, Family: 25, Model: 97, MHz: 4500, Socket: "AM5", Upgrade: 0x49, PortDevice: "14db", PortGen: 5},
}
