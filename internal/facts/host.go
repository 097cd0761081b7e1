package facts

import "time"

// Host is everything observed about one machine. It is built from a snapshot or from dumps, and it never changes after that.
type Host struct {
	Name       Fact[string]    `json:"name,omitzero"`
	Kind       Fact[string]    `json:"kind,omitzero"` // metal, vm, container, wsl
	At         time.Time       `json:"-"`             // when the snapshot was taken
	OS         OS              `json:"os"`
	BIOS       BIOS            `json:"bios"`
	Board      Board           `json:"board"`
	Boot       Boot            `json:"boot"`
	CPU        CPU             `json:"cpu"`
	Memory     Memory          `json:"memory"`
	Driver     Driver          `json:"driver"`
	Cards      []Card          `json:"cards"`
	PCI        []Device        `json:"pci"`     // every PCI function that was seen, cards included, sorted by BDF
	Windows    []Window        `json:"windows"` // MMIO windows of PCI root buses
	Slots      []Slot          `json:"slots"`   // SMBIOS type 9
	PSUs       []PSU           `json:"psus"`    // SMBIOS type 39
	Disks      []Disk          `json:"disks"`
	IOMMU      IOMMU           `json:"iommu"`
	Topo       []TopoPair      `json:"topo"` // nvidia-smi topo -m
	TopoNodes  []TopoNode      `json:"topo_nodes,omitempty"`
	P2P        []P2PPair       `json:"p2p"` // nvidia-smi topo -p2p
	Log        KernelLog       `json:"kernel_log"`
	AEROwned   Fact[bool]      `json:"aer_owned_by_os,omitzero"` // the firmware granted AER to the OS (_OSC)
	Software   Software        `json:"software"`
	Limits     Limits          `json:"limits"`
	Conflicts  []Conflict      `json:"conflicts,omitempty"` // where two sources of the input disagree
	Load       []LinkSample    `json:"load"`                // links seen while a probe was running
	DDP        *DDP            `json:"ddp,omitempty"`       // a short training on one card and on several
	BurnIn     *BurnIn         `json:"burn_in,omitempty"`   // half an hour of load, or what was asked for
	NCCL       []NCCLRun       `json:"nccl"`
	Rates      []CardRate      `json:"bandwidth,omitempty"` // host↔card, measured
	Copies     []PeerCopy      `json:"peers,omitempty"`     // card↔card, measured
	Across     *AcrossRun      `json:"across,omitempty"`    // over several hosts, measured
	Helper     Helper          `json:"helper,omitzero"`
	Hypervisor Fact[bool]      `json:"hypervisor,omitzero"`      // cpuinfo flag
	CapUnits   Fact[[]string]  `json:"power_cap_units,omitzero"` // files that set a power limit at boot
	Gaps       map[Kind]string `json:"-"`                        // why a kind of fact is missing; absent key: it was read
}

// Kind names a group of facts that is read together, so that a check can say what it lacks.
type Kind string

// The kinds of facts.
const (
	KindPCI        Kind = "pci"         // devices, BARs, links
	KindConfig     Kind = "pci-config"  // configuration space beyond 64 bytes; needs root
	KindIOMem      Kind = "iomem"       // /proc/iomem with real addresses; needs root
	KindSMBIOS     Kind = "smbios"      // DMI table; needs root
	KindDMI        Kind = "dmi"         // /sys/class/dmi/id
	KindCPU        Kind = "cpu"         // /proc/cpuinfo
	KindMemory     Kind = "memory"      // /proc/meminfo
	KindSMI        Kind = "nvidia-smi"  // nvidia-smi -q
	KindTopo       Kind = "topo"        // nvidia-smi topo -m
	KindP2P        Kind = "p2p"         // nvidia-smi topo -p2p
	KindLog        Kind = "kernel-log"  // dmesg or journal
	KindDisks      Kind = "disks"       // block devices
	KindNCCL       Kind = "nccl"        // an all-reduce result
	KindDriver     Kind = "driver"      // /proc/driver/nvidia, /sys/module
	KindVirt       Kind = "virt"        // what the machine is
	KindIOMMU      Kind = "iommu"       // IOMMU groups and types
	KindDDP        Kind = "ddp"         // a scaling test
	KindBurnIn     Kind = "burn-in"     // cards under load for minutes
	KindLinkSample Kind = "link-sample" // links under load
)

// OS is the running system.
type OS struct {
	Distro   Fact[string] `json:"distro,omitzero"`  // PRETTY_NAME of etc/os-release
	Kernel   Fact[string] `json:"kernel,omitzero"`  // proc/sys/kernel/osrelease
	Arch     Fact[string] `json:"arch,omitzero"`    // uname -m
	Cmdline  Fact[string] `json:"cmdline,omitzero"` // proc/cmdline
	UptimeS  Fact[int64]  `json:"uptime,omitzero" unit:"s"`
	BootID   Fact[string] `json:"boot_id,omitzero"`
	ShmTotal Fact[int64]  `json:"shm_total,omitzero" unit:"MiB"` // df /dev/shm
	ShmFree  Fact[int64]  `json:"shm_free,omitzero" unit:"MiB"`
}

// BIOS is the firmware's own description.
type BIOS struct {
	Vendor  Fact[string] `json:"vendor,omitzero"`
	Version Fact[string] `json:"version,omitzero"`
	Date    Fact[string] `json:"date,omitzero"`
}

// Board is the mainboard and the machine around it. Placeholders ("To Be Filled By O.E.M.") are absent.
type Board struct {
	Vendor      Fact[string] `json:"vendor,omitzero"`
	Name        Fact[string] `json:"name,omitzero"`
	Version     Fact[string] `json:"version,omitzero"`
	SystemMaker Fact[string] `json:"system_vendor,omitzero"`
	Product     Fact[string] `json:"product,omitzero"`
	ChassisType Fact[int]    `json:"chassis_type,omitzero"` // SMBIOS type 3 code
	BMC         Fact[bool]   `json:"bmc,omitzero"`          // a BMC display or IPMI device was seen
}

// Boot is how the machine was started.
type Boot struct {
	UEFI       Fact[bool] `json:"uefi,omitzero"`
	SecureBoot Fact[bool] `json:"secure_boot,omitzero"`
}

// CPU is the processors of the host.
type CPU struct {
	Model      Fact[string]  `json:"model,omitzero"`
	Sockets    Fact[int]     `json:"sockets,omitzero"`
	Cores      Fact[int]     `json:"cores,omitzero"` // physical cores of all sockets
	Threads    Fact[int]     `json:"threads,omitzero"`
	Nodes      Fact[int]     `json:"numa_nodes,omitzero"`             // online NUMA nodes
	LimitWatts Fact[float64] `json:"package_limit,omitzero" unit:"W"` // RAPL PL2 (else PL1) of one package
	EmptyCount Fact[int]     `json:"empty_sockets,omitzero"`          // SMBIOS type 4 Unpopulated
	NUMA       []NUMANode    `json:"nodes,omitempty"`
}

// NUMANode is one online node of devices/system/node. Socket is the physical package of its processors, -1 unknown.
type NUMANode struct {
	ID       int    `json:"id"`
	CPUs     string `json:"cpus"`       // list as the kernel prints it, "0-15,32-47"; "" for a node without processors
	MemMiB   int64  `json:"memory_mib"` // -1 unknown
	Distance []int  `json:"distance,omitempty"`
	Socket   int    `json:"socket"`
	Source   string `json:"source"`
}

// Memory is the RAM of the host.
type Memory struct {
	TotalMiB     Fact[int64] `json:"total,omitzero" unit:"MiB"`     // MemTotal: less than what is installed
	InstalledMiB Fact[int64] `json:"installed,omitzero" unit:"MiB"` // sum of SMBIOS type 17
	OnlineMiB    Fact[int64] `json:"online,omitzero" unit:"MiB"`    // online memory blocks
	DIMMs        []DIMM      `json:"dimms"`
	ECC          Fact[bool]  `json:"ecc,omitzero"`      // SMBIOS type 16 claims error correction
	Filtered     Fact[bool]  `json:"filtered,omitzero"` // meminfo is a container's view
}

// DIMM is one SMBIOS type 17 record; SizeMiB is 0 for an empty socket.
type DIMM struct {
	Locator string `json:"locator"`
	Bank    string `json:"bank"`
	SizeMiB int64  `json:"size_mib"`
	MTs     int    `json:"mt_s"`
	Kind    string `json:"kind"` // DDR4, DDR5 …
	Source  string `json:"source"`
}

// Driver is the state of the NVIDIA kernel driver and its user side.
type Driver struct {
	Loaded      Fact[bool]   `json:"loaded,omitzero"`
	Version     Fact[string] `json:"version,omitzero"`
	Open        Fact[bool]   `json:"open_module,omitzero"`
	CUDA        Fact[string] `json:"cuda,omitzero"` // highest CUDA that the driver supports
	Nouveau     Fact[bool]   `json:"nouveau,omitzero"`
	Attached    Fact[int]    `json:"attached_gpus,omitzero"` // what nvidia-smi enumerates
	Nodes       Fact[int]    `json:"proc_gpus,omitzero"`     // entries of proc/driver/nvidia/gpus
	SMIExit     Fact[int]    `json:"smi_exit,omitzero"`
	SMIError    Fact[string] `json:"smi_error,omitzero"` // first line of a failed nvidia-smi
	SMIHung     Fact[bool]   `json:"smi_hung,omitzero"`  // nvidia-smi ran past its deadline
	EnableReBAR Fact[int]    `json:"nvreg_enable_resizable_bar,omitzero"`
	Persistd    Fact[bool]   `json:"persistenced,omitzero"` // nvidia-persistenced is running
}

// Card is one NVIDIA GPU: its PCI function, joined with what the driver says of it.
type Card struct {
	Device                  // the PCI function
	Index     Fact[int]     `json:"index,omitzero"`
	Name      Fact[string]  `json:"name,omitzero"` // without the "NVIDIA " prefix
	Arch      Fact[string]  `json:"arch,omitzero"`
	ID        Fact[string]  `json:"id,omitzero"` // first 12 hex digits of SHA-256(UUID)
	Part      Fact[string]  `json:"gpu_part_number,omitzero"`
	VBIOS     Fact[string]  `json:"vbios,omitzero"`
	Slug      Fact[string]  `json:"slug,omitzero"` // the catalogue's name for the model
	MemoryMiB Fact[int64]   `json:"memory,omitzero" unit:"MiB"`
	UsedMiB   Fact[int64]   `json:"memory_used,omitzero" unit:"MiB"`
	BAR1MiB   Fact[int64]   `json:"bar1,omitzero" unit:"MiB"`        // from resource, else nvidia-smi
	ReBARMiB  Fact[[]int64] `json:"rebar_sizes,omitzero" unit:"MiB"` // sizes offered for BAR1; empty: capability absent

	PState       Fact[string]  `json:"pstate,omitzero"`
	Utilization  Fact[int]     `json:"utilization,omitzero" unit:"%"`
	MinUtil      Fact[int]     `json:"utilization_min,omitzero" unit:"%"` // lowest of the samples
	PowerDraw    Fact[float64] `json:"power_draw,omitzero" unit:"W"`
	PowerLimit   Fact[float64] `json:"power_limit,omitzero" unit:"W"` // in force now
	PowerDefault Fact[float64] `json:"power_default,omitzero" unit:"W"`
	PowerMin     Fact[float64] `json:"power_min,omitzero" unit:"W"`
	PowerMax     Fact[float64] `json:"power_max,omitzero" unit:"W"`
	Temperature  Fact[int]     `json:"temperature,omitzero" unit:"C"`
	Persistence  Fact[bool]    `json:"persistence,omitzero"`
	Display      Fact[bool]    `json:"display_active,omitzero"`
	VirtMode     Fact[string]  `json:"virtualization_mode,omitzero"`
	ComputeMode  Fact[string]  `json:"compute_mode,omitzero"`
	MIG          Fact[bool]    `json:"mig,omitzero"`
	Gen          SMILink       `json:"smi_link"`
	Processes    Fact[int]     `json:"compute_processes,omitzero"` // of type C or C+G
	Sick         Fact[string]  `json:"sick,omitzero"`              // "ERR!", "GPU is lost", Unknown Error …
	Excluded     Fact[bool]    `json:"excluded,omitzero"`

	BoardPart      Fact[string]           `json:"board_part_number,omitzero"`
	Reasons        Fact[[]string]         `json:"clocks_event_reasons,omitzero"` // active ones, as "hw_thermal_slowdown"
	ReasonUS       Fact[map[string]int64] `json:"clocks_event_time,omitzero" unit:"us"`
	ClockSM        Fact[int]              `json:"clock_sm,omitzero" unit:"MHz"`
	ClockSMMax     Fact[int]              `json:"clock_sm_max,omitzero" unit:"MHz"`
	TempMemory     Fact[int]              `json:"temperature_memory,omitzero" unit:"C"`
	TempSlowdown   Fact[int]              `json:"temperature_slowdown,omitzero" unit:"C"`
	TempTarget     Fact[int]              `json:"temperature_target,omitzero" unit:"C"`
	ECC            Fact[bool]             `json:"ecc,omitzero"`
	ECCVolatile    Fact[int64]            `json:"ecc_uncorrected_volatile,omitzero"`  // since the driver was loaded
	ECCAggregate   Fact[int64]            `json:"ecc_uncorrected_aggregate,omitzero"` // of the card's life
	RetiredPending Fact[bool]             `json:"retired_pages_pending,omitzero"`
	RemapPending   Fact[bool]             `json:"row_remap_pending,omitzero"`
	RemapFailure   Fact[bool]             `json:"row_remap_failure,omitzero"`
	Remapped       Fact[int64]            `json:"rows_remapped_uncorrectable,omitzero"`
	Recovery       Fact[string]           `json:"recovery_action,omitzero"` // None, Reset, Reboot, Drain P2P …
	Replays        Fact[int64]            `json:"replays,omitzero"`         // PCIe replays since the driver was loaded
	SMIDevice      Fact[string]           `json:"smi_device,omitzero"`      // "2684", as the driver sees the card
	Fabric         Fact[string]           `json:"fabric_state,omitzero"`    // NVSwitch machines: Completed, In Progress …
}

// SMILink is nvidia-smi's view of the card's own link; generations are 1…6, widths are lanes.
type SMILink struct {
	Current   Fact[int] `json:"gen_current,omitzero"`
	Max       Fact[int] `json:"gen_max,omitzero"`
	DeviceMax Fact[int] `json:"gen_device_max,omitzero"`
	HostMax   Fact[int] `json:"gen_host_max,omitzero"`
	Width     Fact[int] `json:"width_current,omitzero"`
	WidthMax  Fact[int] `json:"width_max,omitzero"`
}

// Window is an address window of a PCI root bus.
type Window struct {
	Bus    string `json:"bus"` // "0000:40"
	Start  uint64 `json:"start"`
	End    uint64 `json:"end"`
	Source string `json:"source"`
}

// Slot is SMBIOS type 9.
type Slot struct {
	Designation string  `json:"designation"`
	Width       int     `json:"width"` // lanes of the connector's data bus; 0 unknown
	InUse       *bool   `json:"in_use,omitempty"`
	ID          int     `json:"id"`
	BDF         string  `json:"bdf,omitempty"` // "" when the record carries no usable address
	PitchMM     float64 `json:"pitch_mm,omitempty"`
	Source      string  `json:"source"`
}

// PSU is SMBIOS type 39 with a usable capacity.
type PSU struct {
	Name    string `json:"name"`
	Watts   int    `json:"watts"`
	Present bool   `json:"present"`
	Source  string `json:"source"`
}

// Disk is one whole block device.
type Disk struct {
	Name       string `json:"name"`
	Bytes      int64  `json:"bytes"`
	NVMe       bool   `json:"nvme"`
	Rotational bool   `json:"rotational"`
	Removable  bool   `json:"removable"`
	Model      string `json:"model,omitempty"`
	Source     string `json:"source"`
}

// IOMMU says whether DMA is translated.
type IOMMU struct {
	On    Fact[bool]     `json:"on,omitzero"`
	Types map[string]int `json:"group_types,omitempty"` // type -> number of groups

	Cards   map[string]string `json:"card_types,omitempty"`         // card -> type of its group: DMA, DMA-FQ, identity …
	Default Fact[string]      `json:"default_domain_type,omitzero"` // Translated, Passthrough: as the kernel logs it
}

// TopoPair is one cell of nvidia-smi topo -m, cards by BDF when known, else by "GPU0".
type TopoPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Level  string `json:"level"` // SYS NODE PHB PXB PIX NV#
	Source string `json:"source"`
}

// P2PPair is one cell of nvidia-smi topo -p2p.
type P2PPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Op     string `json:"op"`   // r w n a p
	Code   string `json:"code"` // OK CNS GNS TNS DR NS U
	Source string `json:"source"`
}

// KernelLog is what dmesg or the journal said of the last boot that it holds.
type KernelLog struct {
	Read    Fact[bool]  `json:"read,omitzero"`
	Since   Fact[int64] `json:"since,omitzero" unit:"s"` // the kernel's clock at its first line: what was before has been overwritten
	Events  []LogEvent  `json:"events"`
	Earlier []LogEvent  `json:"earlier_boots,omitempty"` // Xids and lost cards of the boots before that, one of a kind and card
}

// LogEvent is one line that matters.
type LogEvent struct {
	Kind   string `json:"kind"` // xid, bar, aer, nvrm, nouveau, acs …
	BDF    string `json:"bdf,omitempty"`
	Code   int    `json:"code,omitempty"` // Xid number, BAR number
	Text   string `json:"text"`
	Source string `json:"source"`
}

// LinkSample is the best link that one hop showed while a probe kept the cards busy.
type LinkSample struct {
	BDF    string  `json:"bdf"`
	Width  int     `json:"width"`
	Speed  float64 `json:"speed_gts"`
	Worst  int     `json:"width_min"`
	Count  int     `json:"samples"`
	Loaded bool    `json:"loaded"` // the card was in P0–P2 or busy when it was sampled
	Source string  `json:"source"`
}
