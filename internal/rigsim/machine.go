package rigsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"
)

// machine is a rig worked out: every function with its address and links, and what the tools will say. Faults change
// it before anything is written.
type machine struct {
	Spec
	Board   board
	CPU     cpuModel
	Cores   int // of one socket
	Devs    []*device
	Cards   []*card
	Windows []window
	At      time.Time // when the files are written
	Kernel  string
	Log     []string // further lines of the kernel log

	Low4G      bool   // no address space above 4 GiB
	Module     string // kernel driver of the cards: nvidia, nouveau
	SMIError   string // what nvidia-smi prints instead of an answer
	SMIExit    int
	SMIHang    bool
	hotCard    int    // the card that throttles under load; 0 none
	ddp        string // how a training over several cards goes: slow, hang
	dies       bool   // the rig switches itself off under load
	P2P        string
	NCCL       ncclPlan
	DeclaredW  int // watts of one declared supply
	Amps       int
	Circuits   int
	Cooling    string
	Mount      string
	SlotStep   int // slot positions from one card to the next
	Declared   int // cards that the inventory declares
	DIMMsUsed  int
	DIMMGiB    int
	CapAtBoot  bool
	DeclareCap bool
	Legacy     bool   // started without UEFI
	IOMMUType  string // of every group; "" is identity
	Soft       softPlan
}

// ncclPlan is how the all-reduce benchmark behaves.
type ncclPlan struct {
	BusBW   float64 // GB/s at the largest sizes
	Mode    string  // ok, wrong, hang, error
	Library string  // fault of the simulated libraries, where it is another than the mode's
}

// device is one PCI function.
type device struct {
	BDF, Vendor, Device, SubVendor, SubDevice string
	Class                                     string // six hex digits
	Driver                                    string
	Parent                                    *device
	RootBus, Socket                           int
	Kind                                      byte // PCIe port type: 0 endpoint, 4 root, 5 upstream, 6 downstream; 0xff none
	Second, Subord                            int
	Width, MaxWidth                           int
	Gen, MaxGen                               int
	LoadGen                                   int  // generation while a benchmark runs
	Present                                   bool // a port's slot is occupied
	HasSlot                                   bool
	Dead                                      bool // config reads answer all ones
	ACS                                       int  // ACS control word
	LinkErrors                                int  // corrected errors of the link since boot
	BARs                                      []bar
	ROM                                       bool
	ReBAR                                     []int // sizes offered for BAR1, MiB
	Physfn                                    *device
	Net, Block                                string
	IsVGABoot                                 bool
}

// bar is a base address register; Start 0 with Unset is one that got no address.
type bar struct {
	Index       int
	Start, Size uint64
	Flags       uint64
	Unset       bool
}

// window is an address window of a root bus.
type window struct {
	Bus        int
	Start, End uint64
}

// card is a GPU with its function 0.
type card struct {
	*device
	Model   gpuModel
	Index   int
	UUID    string
	Serial  string
	Slot    string
	Port    *device // the port right above
	Root    *device // the root port above
	LimitW  float64
	BAR1MiB int
	Missing bool // not on the bus
	Lost    bool // on the bus, but not in the driver
	Health  cardHealth
}

func (d *device) path() string {
	if d.Parent == nil {
		return fmt.Sprintf("sys/devices/pci0000:%02x/%s", d.RootBus, d.BDF)
	}
	return path.Join(d.Parent.path(), d.BDF)
}

func bdf(bus, dev, fn int) string { return fmt.Sprintf("0000:%02x:%02x.%d", bus, dev, fn) }

// newMachine works a description out and plants its faults.
func newMachine(s Spec) (*machine, error) {
	s.fill()
	if err := s.check(); err != nil {
		return nil, err
	}
	b := boards[s.Board]
	m := &machine{
		Spec: s, Board: b, CPU: cpuModels[b.CPU], At: time.Now().UTC().Truncate(time.Second), Kernel: "6.8.0-60-generic", Module: "nvidia",
		Amps: 16, Circuits: 1, Cooling: "air", Mount: "slot", SlotStep: 4, Declared: s.Cards, DeclaredW: s.Watts,
	}
	m.Cores, m.Soft = m.CPU.Cores, softDefaults()
	m.DIMMsUsed = min(b.DIMMs, 8*b.Sockets)
	m.DIMMGiB = max(1, s.RAMGiB/m.DIMMsUsed)
	m.P2P = gpuModels[s.GPU].P2P
	if s.Cards > 2 {
		m.Circuits, m.Mount = 2, "riser"
	}
	if s.Cards > 4 {
		m.Circuits, m.Amps, m.Mount, m.Cooling, m.SlotStep = 2, 32, "slot", "blower", 2
	}
	if m.BootedAt.IsZero() {
		m.BootedAt = m.At.Add(-6 * 24 * time.Hour)
	}
	faults := make([]Fault, 0, len(s.Faults))
	for _, k := range s.Faults {
		f, _ := faultByKind(k)
		faults = append(faults, f)
		if f.shape != nil {
			f.shape(m) // before addresses are given out
		}
	}
	m.layout()
	for _, f := range faults {
		if f.plant != nil {
			f.plant(m)
		}
	}
	m.assign()
	m.settle()
	if m.NCCL.Mode == "" {
		m.NCCL.Mode = "ok"
	}
	if m.NCCL.BusBW == 0 {
		m.NCCL.BusBW = m.busBandwidth()
	}
	for _, f := range faults {
		if f.finish != nil {
			f.finish(m)
		}
	}
	return m, nil
}

// identity is a stable made-up identifier of a thing in this rig.
func (m *machine) identity(what string, digits int) string {
	sum := sha256.Sum256([]byte("preflight rigsim " + m.Name + " " + what))
	return hex.EncodeToString(sum[:])[:digits]
}

func (m *machine) uuid(what string) string {
	h := m.identity(what, 32)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// onBus are the cards that the bus shows; answering those that nvidia-smi lists.
func (m *machine) onBus() []*card {
	var out []*card
	for _, c := range m.Cards {
		if !c.Missing {
			out = append(out, c)
		}
	}
	return out
}

func (m *machine) answering() []*card {
	var out []*card
	for _, c := range m.onBus() {
		if !c.Lost {
			out = append(out, c)
		}
	}
	return out
}

// laneGBs is the raw rate of a lane by generation, GB/s.
var laneGBs = []float64{0, 0.25, 0.5, 0.985, 1.969, 3.938}

// busBandwidth is what such links gave in published runs: through host memory 0.60 of the data rate, 0.55 for more
// than four cards or two sockets, and 0.90 peer to peer (0.75 across sockets); cards below one uplink share it.
func (m *machine) busBandwidth() float64 {
	sharers := map[*device]int{}
	sockets := map[int]bool{}
	for _, c := range m.onBus() {
		sharers[c.Root]++
		sockets[c.Socket] = true
	}
	rate := 1e9
	for _, c := range m.onBus() {
		rate = min(rate, 0.8*laneGBs[c.LoadGen]*float64(c.Width))
		if n := sharers[c.Root]; n > 1 {
			rate = min(rate, 0.8*laneGBs[c.Root.LoadGen]*float64(c.Root.Width)/float64(n))
		}
	}
	share := 0.60
	switch wide := len(m.Cards) > 4 || len(sockets) > 1; {
	case m.P2P == "OK" && len(sockets) > 1:
		share = 0.75
	case m.P2P == "OK":
		share = 0.90
	case wide:
		share = 0.55
	}
	return share * rate * 1.04
}
