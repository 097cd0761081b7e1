package rigsim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names a fault that can be planted.
type Kind string

// The kinds of faults.
const (
	MissingCard    Kind = "missing-card"
	WrongModel     Kind = "wrong-model"
	Nouveau        Kind = "nouveau"
	DriverMismatch Kind = "driver-mismatch"
	SMIHang        Kind = "smi-hang"
	CardLost       Kind = "card-lost"
	Above4GOff     Kind = "above-4g-off"
	ReBAROff       Kind = "rebar-off"
	BIOSReset      Kind = "bios-reset"
	ReBARVBIOS     Kind = "rebar-vbios"
	NarrowSlot     Kind = "narrow-slot"
	Gen3Slot       Kind = "gen3-slot"
	SlowUnderLoad  Kind = "slow-under-load"
	SharedUplink   Kind = "shared-uplink"
	FewCores       Kind = "few-cores"
	LowRAM         Kind = "low-ram"
	SmallDisk      Kind = "small-disk"
	PSUShort       Kind = "psu-short"
	PSUCapped      Kind = "psu-capped"
	MainsShort     Kind = "mains-short"
	SlotsTight     Kind = "slots-tight"
	P2PLying       Kind = "p2p-lying"
	P2PHang        Kind = "p2p-hang"
	NCCLHang       Kind = "nccl-hang"
	NCCLWrong      Kind = "nccl-wrong"
	NCCLSlow       Kind = "nccl-slow"
	NCCLError      Kind = "nccl-error"
)

// Fault is something wrong that a rig can be given.
type Fault struct {
	Kind   Kind
	Words  string   // what was done to the rig, for people
	Checks []string // ids of the checks that must find it
	Traces []string // ids of further checks that may see traces of it, as a consequence or by themselves
	Probe  bool     // shows only while the all-reduce probe runs
	Burn   bool     // shows only under a burn-in

	shape  func(*machine) // before addresses are given out
	plant  func(*machine) // on the laid-out machine
	finish func(*machine) // after links and addresses are known
}

// Faults lists every kind, in the order in which they are shown.
func Faults() []Fault {
	return slices.Concat(driverFaults(), linkFaults(), hostFaults(), cardFaults(), softwareFaults())
}

// newerBIOS is what an update leaves behind: a version as the board's maker counts them.
func newerBIOS(m *machine) {
	next := map[string]string{"1106": "1203", "P3.50": "P3.80", "2.4": "2.8", "2204": "2402"}
	m.Board.BIOS, m.Board.BIOSDate = next[m.Board.BIOS], "11/17/2026"
}

// smallBARs is what the cards have without Re-Size BAR.
func smallBARs(m *machine) {
	for _, c := range m.Cards {
		c.BAR1MiB = 256
	}
}

func faultByKind(k Kind) (Fault, bool) {
	for _, f := range append(Faults(), BurnFaults()...) {
		if f.Kind == k {
			return f, true
		}
	}
	return Fault{}, false
}

// last is the card that faults of one card pick: its address sorts last, so that the others keep theirs.
func (m *machine) last() *card { return m.Cards[len(m.Cards)-1] }

const (
	smiNoDriver = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
	smiMismatch = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.172\n"
)

func driverFaults() []Fault {
	return []Fault{
		{Kind: MissingCard, Words: "the last card does not come up on the bus, though its slot reports one", Checks: []string{"gpu.count"}, plant: func(m *machine) { m.remove(m.last()) }},
		{Kind: WrongModel, Words: "the last card is a 3090", Checks: []string{"gpu.model"}, plant: func(m *machine) {
			c := m.last()
			c.setModel(gpuModels["rtx-3090"])
			c.LimitW, c.MaxGen = c.Model.DefaultW, c.Model.Gen
		}},
		{Kind: Nouveau, Words: "nouveau took the cards before the NVIDIA driver could", Checks: []string{"driver.loaded"}, plant: func(m *machine) {
			m.Module, m.SMIError, m.SMIExit, m.NCCL.Mode = "nouveau", smiNoDriver, 9, "no-driver"
			for _, c := range m.Cards {
				c.Driver = "nouveau"
				m.Log = append(m.Log, fmt.Sprintf("nouveau %s: unknown chipset (192000a1)", c.BDF))
			}
		}},
		{Kind: DriverMismatch, Words: "the driver's library was upgraded, the module of before is still loaded", Checks: []string{"driver.loaded"}, Traces: []string{"driver.version"}, plant: func(m *machine) {
			m.SMIError, m.SMIExit, m.NCCL.Mode = smiMismatch, 18, "no-driver"
			m.Log = append(m.Log, "NVRM: API mismatch: the client has the version 570.172, but", "NVRM: this kernel module has the version "+m.Driver+".  Please", "NVRM: make sure that this kernel module and all NVIDIA driver", "NVRM: components have the same version.")
		}},
		{Kind: SMIHang, Words: "nvidia-smi never answers", Checks: []string{"driver.loaded"}, plant: func(m *machine) { m.SMIHang = true; m.NCCL.Mode = "hang" }},
		{Kind: CardLost, Words: "the last card fell off the bus (Xid 79)", Checks: []string{"gpu.health"}, plant: func(m *machine) {
			c := m.last()
			c.Dead, c.Lost = true, true
			m.NCCL.Mode = "no-device"
			short := strings.TrimSuffix(c.BDF, ".0")
			m.SMIError, m.SMIExit = fmt.Sprintf("Unable to determine the device handle for GPU%s: Unknown Error\n", strings.ToUpper(c.BDF)), 255
			m.Log = append(m.Log, fmt.Sprintf("NVRM: Xid (PCI:%s): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", short), fmt.Sprintf("NVRM: GPU %s: GPU has fallen off the bus.", c.BDF))
		}},
		{Kind: P2PHang, Words: "the driver claims P2P, and NCCL hangs over it", Checks: []string{"topology.p2p"}, Probe: true, plant: func(m *machine) {
			m.P2P, m.NCCL.Mode, m.NCCL.Library = "OK", "hang", "nccl-p2p-hang"
		}},
		{Kind: P2PLying, Words: "the driver claims P2P on cards that have none", Checks: []string{"topology.p2p"}, plant: func(m *machine) { m.P2P = "OK" }},
	}
}

func linkFaults() []Fault {
	return []Fault{
		{Kind: Above4GOff, Words: "Above 4G Decoding is off: half of the cards got no address", Checks: []string{"firmware.above-4g"}, Traces: []string{"firmware.resizable-bar"}, plant: func(m *machine) {
			m.Low4G = true
			for _, c := range m.Cards {
				c.BAR1MiB = 256
				if m.starved(c.device) {
					c.Lost, c.Driver = true, ""
				}
			}
			m.NCCL.Mode = "no-device"
		}, finish: logUnassigned},
		{Kind: ReBAROff, Words: "Re-Size BAR is off in the BIOS", Checks: []string{"firmware.resizable-bar"}, plant: smallBARs},
		{Kind: BIOSReset, Words: "a BIOS update set everything back: Re-Size BAR is off again", Checks: []string{"firmware.resizable-bar"}, shape: newerBIOS, plant: smallBARs},
		{Kind: ReBARVBIOS, Words: "the cards' VBIOS offers no BAR1 above 256 MiB", Checks: []string{"firmware.resizable-bar"}, plant: func(m *machine) {
			for _, c := range m.Cards {
				c.BAR1MiB, c.ReBAR = 256, sizesTo(256)
			}
		}},
		{Kind: NarrowSlot, Words: "the last card trained only 8 of 16 lanes", Checks: []string{"pcie.width"}, plant: func(m *machine) { m.last().Width = 8 }},
		{Kind: Gen3Slot, Words: "the slot of the last card is set to Gen3", Checks: []string{"pcie.speed"}, plant: func(m *machine) { m.last().Port.MaxGen = 3 }},
		{Kind: SlowUnderLoad, Words: "the last card stays at Gen1 under load", Checks: []string{"pcie.speed"}, Probe: true, plant: func(m *machine) { m.last().LoadGen = 1 }},
		{Kind: SharedUplink, Words: "all cards hang below one switch with an x4 uplink", Checks: []string{"pcie.uplink"}, shape: func(m *machine) { m.Switches = 1 }, plant: func(m *machine) {
			m.Cards[0].Root.MaxWidth = 4
		}},
		{Kind: NCCLHang, Words: "the all-reduce never gets past its header", Checks: []string{"nccl.all-reduce"}, Probe: true, plant: func(m *machine) { m.NCCL.Mode = "hang" }},
		{Kind: NCCLWrong, Words: "the all-reduce computes wrong values", Checks: []string{"nccl.all-reduce"}, Probe: true, plant: func(m *machine) { m.NCCL.Mode = "wrong" }},
		{Kind: NCCLSlow, Words: "the all-reduce is five times too slow", Checks: []string{"nccl.all-reduce"}, Probe: true, finish: func(m *machine) { m.NCCL.BusBW /= 5 }},
		{Kind: NCCLError, Words: "the all-reduce ends with an error of NCCL", Checks: []string{"nccl.all-reduce"}, Probe: true, plant: func(m *machine) { m.NCCL.Mode = "error" }},
	}
}

// logUnassigned writes what kernel and driver say of BARs without an address.
func logUnassigned(m *machine) {
	for _, c := range m.Cards {
		for _, b := range c.BARs {
			if b.Unset {
				m.Log = append(m.Log,
					fmt.Sprintf("pci %s: BAR %d [mem size 0x%08x 64bit pref]: can't assign; no space", c.BDF, b.Index, b.Size),
					fmt.Sprintf("pci %s: BAR %d [mem size 0x%08x 64bit pref]: failed to assign", c.BDF, b.Index, b.Size))
			}
		}
		if c.Lost {
			m.Log = append(m.Log, "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", fmt.Sprintf("NVRM: BAR1 is 0M @ 0x0 (PCI:%s)", c.BDF), fmt.Sprintf("nvidia %s: probe with driver nvidia failed with error -1", c.BDF))
		}
	}
}

// coresWanted and the like are the policy's figures by number of cards; a fault goes to half of them.
func (m *machine) coresWanted() int {
	switch n := m.Spec.Cards; {
	case n <= 2:
		return 8
	case n <= 4:
		return 16
	}
	return 32
}

func hostFaults() []Fault {
	return []Fault{
		{Kind: FewCores, Words: "the BIOS has most cores switched off", Checks: []string{"cpu.cores"}, shape: func(m *machine) { m.Cores = m.coresWanted() / 2 / m.Board.Sockets }},
		{Kind: LowRAM, Words: "most memory modules are missing", Checks: []string{"ram.per-card"}, Traces: []string{"ram.channels", "topology.numa"}, shape: func(m *machine) {
			m.DIMMGiB, m.DIMMsUsed = 16, max(1, m.Spec.Cards/2)
		}},
		{Kind: SmallDisk, Words: "there is one disk of 500 GB", Checks: []string{"storage.capacity"}, shape: func(m *machine) { m.DisksGB = []int{500} }},
		{Kind: PSUShort, Words: "the declared supplies are too small", Checks: []string{"power.psu"}, finish: func(m *machine) {
			m.DeclaredW = m.draw() * 105 / 100 / (m.PSUs - m.Spare) / 50 * 50 // supplies are sold in round watts
		}},
		{Kind: PSUCapped, Words: "the supplies suffice only thanks to a power cap that is lost at a reboot", Checks: []string{"power.psu"}, plant: func(m *machine) {
			full := m.draw()
			m.DeclaredW = full * 110 / 100 / (m.PSUs - m.Spare) / 50 * 50
			for _, c := range m.Cards {
				c.LimitW = 300
			}
		}},
		{Kind: MainsShort, Words: "everything hangs on one small circuit", Checks: []string{"power.mains"}, shape: func(m *machine) { m.Circuits, m.Amps = 1, 5*max(1, m.Spec.Cards/4) }},
		{Kind: SlotsTight, Words: "the cards stand wall to wall", Checks: []string{"chassis.slot-spacing"}, shape: func(m *machine) { m.Mount, m.Cooling, m.SlotStep = "slot", "air", 3 }},
	}
}

// draw is roughly what cards, processors and the rest take, watts: for supplies that are to be just too small.
func (m *machine) draw() int {
	w := 280*m.Board.Sockets + 130
	if m.CPU.Socket == "sTR5" {
		w = 350 + 130
	}
	for _, c := range m.Cards {
		w += int(c.LimitW)
	}
	return w
}
