package facts

import (
	"strings"
	"testing"
)

func TestDMIText(t *testing.T) {
	const text = `# dmidecode 3.3
Handle 0x0000, DMI type 0, 26 bytes
BIOS Information
	Vendor: American Megatrends Inc.
	Version: 1106
	Release Date: 03/12/2021

Handle 0x0001, DMI type 1, 27 bytes
System Information
	Manufacturer: Supermicro
	Product Name: To be filled by O.E.M.

Handle 0x0002, DMI type 2, 15 bytes
Base Board Information
	Manufacturer: ASUSTeK COMPUTER INC.
	Product Name: Pro WS WRX80E-SAGE SE WIFI

Handle 0x0003, DMI type 3, 22 bytes
Chassis Information
	Type: Rack Mount Chassis

Handle 0x0038, DMI type 9, 17 bytes
System Slot Information
	Designation: PCIEX16_1
	Type: x8 PCI Express 3 x16
	Current Usage: In Use
	ID: 1
	Characteristics:
		3.3 V is provided
	Bus Address: 0000:41:00.0

Handle 0x0039, DMI type 9, 17 bytes
System Slot Information
	Designation: PCIEX16_2
	Type: x16 PCI Express 4 x16
	Current Usage: Available
	Bus Address: 0000:ff:00.0

Handle 0x004B, DMI type 4, 48 bytes
Processor Information
	Type: Central Processor
	Version: AMD Ryzen Threadripper PRO 5955WX 16-Cores     
	Status: Populated, Enabled
	Core Count: 16
	Thread Count: 32

Handle 0x004C, DMI type 4, 48 bytes
Processor Information
	Type: Central Processor
	Status: Unpopulated

Handle 0x004D, DMI type 16, 23 bytes
Physical Memory Array
	Use: System Memory
	Error Correction Type: Multi-bit ECC

Handle 0x0051, DMI type 17, 92 bytes
Memory Device
	Size: No Module Installed
	Locator: DIMM 0
	Type: Unknown

Handle 0x0052, DMI type 17, 92 bytes
Memory Device
	Size: 32 GB
	Locator: DIMM 1
	Bank Locator: P0 CHANNEL A
	Type: DDR4
	Speed: 3200 MT/s
	Configured Memory Speed: 2933 MT/s

Handle 0x0053, DMI type 17, 92 bytes
Memory Device
	Size: 16384 MB
	Locator: DIMM 2
	Type: DDR4
	Configured Clock Speed: 2666 MHz

Handle 0x0054, DMI type 17, 92 bytes
Memory Device
	Size: 16 MB
	Type: Flash

Handle 0x0060, DMI type 39, 22 bytes
System Power Supply
	Name: PWS-2K08A-1R
	Max Power Capacity: 2000 W
	Status: Present, OK

Handle 0x0061, DMI type 39, 22 bytes
System Power Supply
	Max Power Capacity: Unknown
	Status: Not Present
`
	for name, in := range map[string]string{
		"as printed": text, "-q, without handles": strings.Join(dropHandles(strings.Split(text, "\n")), "\n"), "without indentation": strings.ReplaceAll(text, "\n\t", "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, "dmidecode.txt", in)
			if h.BIOS.Version.Value != "1106" || h.Board.Name.Value != "Pro WS WRX80E-SAGE SE WIFI" || h.Board.Product.Known() || h.Board.ChassisType.Value != 23 {
				t.Errorf("%+v %+v", h.BIOS, h.Board)
			}
			if len(h.Slots) != 2 || h.Slots[0].Width != 8 || h.Slots[0].BDF != "0000:41:00.0" || !*h.Slots[0].InUse || h.Slots[1].BDF != "" || *h.Slots[1].InUse {
				t.Errorf("slots %+v", h.Slots)
			}
			if h.CPU.Cores.Value != 16 || h.CPU.Sockets.Value != 1 || h.CPU.EmptyCount.Value != 1 || h.CPU.Model.Value != "AMD Ryzen Threadripper PRO 5955WX 16-Cores" {
				t.Errorf("cpu %+v", h.CPU)
			}
			m := h.Memory
			if m.InstalledMiB.Value != 49152 || len(m.DIMMs) != 3 || m.DIMMs[1].MTs != 2933 || m.DIMMs[2].MTs != 2666 || m.DIMMs[1].Bank != "P0 CHANNEL A" || !m.ECC.Value {
				t.Errorf("memory %+v", m)
			}
			if len(h.PSUs) != 1 || h.PSUs[0].Watts != 2000 || !h.PSUs[0].Present {
				t.Errorf("supplies %+v", h.PSUs)
			}
			if h.Gaps[KindSMBIOS] != "" || h.Gaps[KindCPU] != "" {
				t.Errorf("gaps %v", h.Gaps)
			}
		})
	}
	h := hostOf(t, "dmidecode.txt", "# dmidecode 3.3\n/dev/mem: Permission denied\n")
	if !strings.Contains(h.Gaps[KindSMBIOS], "without root") {
		t.Errorf("gap %q", h.Gaps[KindSMBIOS])
	}
	if one := hostOf(t, "dmidecode.txt", "Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n        Manufacturer: Dell Inc.\n        Product Name: PowerEdge XE9680\n"); one.Gaps[KindSMBIOS] == "" || one.Board.Product.Value != "PowerEdge XE9680" {
		t.Error("type 1 alone tells nothing of slots and memory")
	}
}

func dropHandles(lines []string) []string {
	var out []string
	for _, l := range lines {
		if !strings.HasPrefix(l, "Handle ") {
			out = append(out, l)
		}
	}
	return out
}

func TestNumactlAndGrub(t *testing.T) {
	h := hostOf(t, "numactl-H.txt", "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 193129 MB\nnode 1 cpus: 2 3\nnode 1 size: 193477 MB\nnode distances:\nnode   0   1\n  0:  10  32\n  1:  32  10\n",
		"grub-default.txt", "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"amd_iommu=off quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n")
	if h.CPU.Nodes.Value != 2 || len(h.CPU.NUMA) != 2 || h.CPU.NUMA[1].MemMiB != 193477 || h.CPU.NUMA[1].Distance[0] != 32 || h.CPU.NUMA[0].CPUs != "0,1" {
		t.Errorf("%+v", h.CPU)
	}
	if h.OS.Cmdline.Value != "amd_iommu=off quiet" || !strings.HasPrefix(h.OS.Cmdline.Source, "grub-default.txt") {
		t.Errorf("%+v", h.OS.Cmdline)
	}
	if both := hostOf(t, "cmdline.txt", "BOOT_IMAGE=/vmlinuz ro\n", "grub-default.txt", "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"iommu=pt\"\n"); strings.Contains(both.OS.Cmdline.Value, "iommu") || len(both.Conflicts) != 0 {
		t.Errorf("what the next boot gets is not what runs: %+v", both.OS.Cmdline)
	}
}

func TestCollectEnv(t *testing.T) {
	rows := map[string]string{
		"PyTorch": "Collecting environment information...\nPyTorch version: 2.1.0+cu121\nIs debug build: False\nCUDA used to build PyTorch: 12.1\nOS: Ubuntu 22.04.3 LTS (x86_64)\n" +
			"Python version: 3.10.12 (main, Jun 11 2023)\nIs CUDA available: True\nGPU models and configuration: \nGPU 0: NVIDIA GeForce RTX 4090\nGPU 1: NVIDIA GeForce RTX 4090\n\nNvidia driver version: 535.104.05\n" +
			"CPU:\nArchitecture:        x86_64\nModel name:          AMD EPYC 7542\nSocket(s):           1\nCore(s) per socket:  32\n\nVersions of relevant libraries:\n[pip3] nvidia-nccl-cu12==2.18.1\n",
		"vLLM": "==============================\n        System Info\n==============================\nOS                           : Ubuntu 22.04.3 LTS (x86_64)\n\nPyTorch version              : 2.1.0+cu121\nCUDA used to build PyTorch   : 12.1\n" +
			"Python version               : 3.10.12\nIs CUDA available            : True\nGPU models and configuration :\nGPU 0: NVIDIA GeForce RTX 4090\nGPU 1: NVIDIA GeForce RTX 4090\n\nNvidia driver version        : 535.104.05\n" +
			"Architecture:        x86_64\nModel name:          AMD EPYC 7542\nSocket(s):           1\nCore(s) per socket:  32\n[pip3] nvidia-nccl-cu12==2.18.1\nGPU Topology:\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tPHB\t0-31\nGPU1\tPHB\tX\t0-31\n",
	}
	for name, text := range rows {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, "env.txt", text)
			if len(h.Software.Torch) != 1 {
				t.Fatalf("%+v", h.Software)
			}
			p := h.Software.Torch[0]
			if p.Version != "2.1.0+cu121" || p.CUDA != "12.1" || p.NCCL != "2.18.1" || p.Devices != -1 || p.Python != "python 3.10.12" {
				t.Errorf("%+v", p)
			}
			if h.Driver.Version.Value != "535.104.05" || h.Driver.Attached.Value != 2 || h.CPU.Cores.Value != 32 || !strings.HasPrefix(h.OS.Distro.Value, "Ubuntu") {
				t.Errorf("%+v %+v", h.Driver, h.CPU)
			}
			if name == "vLLM" && (len(h.Topo) != 1 || h.Topo[0].Level != "PHB") {
				t.Errorf("topo %v", h.Topo)
			}
		})
	}
}

func TestCUDASamples(t *testing.T) {
	query := "deviceQuery Starting...\n CUDA Device Query (Runtime API) version (CUDART static linking)\nDetected 2 CUDA Capable device(s)\n\nDevice 0: \"NVIDIA GeForce RTX 4090\"\n" +
		"  CUDA Driver Version / Runtime Version          12.4 / 12.1\n  Device PCI Domain ID / Bus ID / location ID:   0 / 65 / 0\n" +
		"Device 1: \"NVIDIA GeForce RTX 4090\"\n  Device PCI Domain ID / Bus ID / location ID:   0 / 97 / 0\n" +
		"> Peer access from NVIDIA GeForce RTX 4090 (GPU0) -> NVIDIA GeForce RTX 4090 (GPU1) : No\n"
	h := hostOf(t, "deviceQuery.txt", query)
	if len(h.Cards) != 2 || h.Cards[0].BDF != "0000:41:00.0" || h.Cards[1].BDF != "0000:61:00.0" || h.Driver.CUDA.Value != "12.4" || len(h.P2P) != 1 || h.P2P[0].Code != "NS" {
		t.Errorf("%+v %+v", h.Cards, h.P2P)
	}
	peer := "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, NVIDIA A, pciBusID: 41, pciDeviceID: 0, pciDomainID:0\nDevice: 1, NVIDIA A, pciBusID: 61, pciDeviceID: 0, pciDomainID:0\nDevice=0 CAN Access Peer Device=1\nDevice=1 CAN Access Peer Device=0\n"
	h = hostOf(t, "p2pBandwidthLatencyTest.txt", peer)
	if len(h.P2P) != 2 || h.P2P[0].Code != "OK" || h.P2P[0].A != "0000:41:00.0" || h.Gaps[KindP2P] != "" {
		t.Errorf("%+v", h.P2P)
	}
}

func TestFabricManager(t *testing.T) {
	h := hostOf(t, "fabricmanager.log", "[Feb 27 2025 15:10:02] [INFO] [tid 1] ok\n[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 port 61\n")
	if len(h.Log.Events) != 1 || h.Log.Events[0].Code != 12028 || h.Log.Events[0].BDF != "0000:86:00.0" || h.Log.Events[0].Kind != "sxid" {
		t.Errorf("%+v", h.Log.Events)
	}
}

func TestCardsOfABootLog(t *testing.T) {
	h := hostOf(t, "dmesg.txt", "[    2.1] pci 0000:00:00.0: PCI bridge to [bus 01]\n[    2.8] pci 0000:01:00.0: [10de:2204] type 00 class 0x030000 PCIe Legacy Endpoint\n"+
		"[    2.9] pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"+
		"[    3.0] pci 0000:01:00.0: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign\n")
	if len(h.Cards) != 1 || h.Gaps[KindPCI] == "" {
		t.Fatalf("%+v %v", h.Cards, h.Gaps)
	}
	c := h.Cards[0]
	if c.Product != "2204" || c.Link.MaxWidth.Value != 16 || strings.Join(c.Chain, "") != "0000:00:00.0" || len(c.BARs) != 1 || !c.BARs[0].Unassigned {
		t.Errorf("%+v", c)
	}
	if port := h.PCI[0]; port.Link.Width.Value != 4 || port.Link.Speed.Value != 8 {
		t.Errorf("%+v", port.Link)
	}
}
