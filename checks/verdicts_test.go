package checks

import (
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

// row is one named host: a healthy rig of n cards, changed, and what a check must say of it.
type row struct {
	name   string
	n      int
	change func(*inventory.Rig, *facts.Host)
	want   Verdict
	remedy string // "" where none is wanted
}

func runRows(t *testing.T, check string, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			rig, h := goodRig(r.n), goodHost(r.n)
			if r.change != nil {
				r.change(rig, h)
			}
			v, f := verdictOf(judge(rig, h), check)
			if v != r.want || f.Remedy != r.remedy {
				t.Errorf("%s: got %s %q, want %s %q: %s / %s", check, v, f.Remedy, r.want, r.remedy, f.Summary, f.Note)
			}
		})
	}
}

type (
	rg = inventory.Rig
	ho = facts.Host
)

// drop removes the last card from bus and driver.
func drop(h *ho) {
	h.Cards = h.Cards[:len(h.Cards)-1]
	h.PCI = h.PCI[:len(h.PCI)-1]
	h.Driver.Attached = of(len(h.Cards))
}

// setDevice changes a PCI function wherever it is kept.
func setDevice(h *ho, bdf string, change func(*facts.Device)) {
	for i := range h.PCI {
		if h.PCI[i].BDF == bdf {
			change(&h.PCI[i])
		}
	}
	for i := range h.Cards {
		if h.Cards[i].BDF == bdf {
			change(&h.Cards[i].Device)
		}
	}
}

func TestGPUCount(t *testing.T) {
	runRows(t, "gpu.count", []row{
		{"all there", 8, nil, Pass, ""},
		{"one not enumerated", 8, func(_ *rg, h *ho) { drop(h) }, Fail, "gpu.count/missing-card"},
		{"one lost by the driver", 4, func(_ *rg, h *ho) { h.Cards[2].Index = facts.Fact[int]{}; h.Driver.Attached = of(3) }, Fail, "gpu.count/driver-lost"},
		{"one more than declared", 4, func(r *rg, _ *ho) { n := 3; r.Cards = &n }, Warn, "gpu.count/too-many"},
		{"none declared", 4, func(r *rg, _ *ho) { r.Cards = nil }, Unknown, ""},
		{"an AMD card is not supported, and not none", 1, func(r *rg, h *ho) {
			r.Cards, h.Cards, h.Driver = nil, nil, facts.Driver{}
			h.PCI = []facts.Device{{BDF: "0000:03:00.0", Vendor: "1002", Class: "030000", Product: "744c"}}
		}, Unknown, ""},
		{"four declared, none on the bus", 4, func(_ *rg, h *ho) { h.Cards, h.PCI, h.Driver = nil, h.PCI[:1], facts.Driver{} }, Fail, "gpu.count/missing-card"},
		{"a display card beside them", 2, func(_ *rg, h *ho) {
			h.Cards = append(h.Cards, facts.Card{Device: facts.Device{BDF: "0000:62:00.0", Vendor: "10de", Product: "1d01", Class: "030000"}, Index: of(2), MemoryMiB: of(int64(2048)), Name: of("GeForce GT 1030")})
		}, Pass, ""},
		{"nvidia-smi fails as a whole: the bus counts", 4, func(_ *rg, h *ho) {
			h.Driver.SMIError, h.Driver.Attached = of("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."), facts.Fact[int]{}
			for i := range h.Cards {
				h.Cards[i].Index = facts.Fact[int]{}
			}
		}, Pass, ""},
	})
}

func TestGPUModel(t *testing.T) {
	runRows(t, "gpu.model", []row{
		{"as declared", 4, nil, Pass, ""},
		{"another model in one slot", 4, func(_ *rg, h *ho) {
			h.Cards[1].Product, h.Cards[1].Slug, h.Cards[1].Name = "2704", of("rtx-4080"), of("GeForce RTX 4080")
			h.Cards[1].MemoryMiB = of(int64(16376))
		}, Fail, "gpu.model/mismatch"},
		{"mixed, none declared", 2, func(r *rg, h *ho) {
			r.GPU = ""
			h.Cards[1].Product, h.Cards[1].Slug = "2204", of("rtx-3090")
		}, Warn, "gpu.model/mixed"},
		{"48 GB conversion keeps the id", 2, func(_ *rg, h *ho) { h.Cards[0].Slug, h.Cards[0].MemoryMiB = of("rtx-4090-48gb-mod"), of(int64(49140)) }, Pass, ""},
		{"no card known", 2, func(_ *rg, h *ho) { h.Cards = nil }, Unknown, ""},
	})
}

func TestDriverLoaded(t *testing.T) {
	runRows(t, "driver.loaded", []row{
		{"answers", 8, nil, Pass, ""},
		{"hung", 8, func(_ *rg, h *ho) { h.Driver.SMIHung = of(true) }, Fail, "driver.loaded/hung"},
		{"nouveau", 2, func(_ *rg, h *ho) { h.Cards[0].Driver = of("nouveau") }, Fail, "driver.loaded/nouveau"},
		{"vfio", 2, func(_ *rg, h *ho) { h.Cards[0].Driver = of("vfio-pci") }, Fail, "driver.loaded/vfio"},
		{"off the bus: gpu.health says so", 4, func(_ *rg, h *ho) { setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Link.Broken = of(true) }) }, Pass, ""},
		{"xid 79 since boot: gpu.health says so", 4, func(_ *rg, h *ho) {
			h.Log.Events = []facts.LogEvent{{Kind: "xid", BDF: "0000:21:00.0", Code: 79, Text: "NVRM: Xid (PCI:0000:21:00): 79, GPU has fallen off the bus.", Source: src}}
		}, Pass, ""},
		{"xid 13 is an application's", 4, func(_ *rg, h *ho) {
			h.Log.Events = []facts.LogEvent{{Kind: "xid", BDF: "0000:21:00.0", Code: 13, Text: "x", Source: src}}
		}, Pass, ""},
		{"library mismatch", 2, func(_ *rg, h *ho) {
			h.Driver.SMIError = of("Failed to initialize NVML: Driver/library version mismatch")
		}, Fail, "driver.loaded/version-mismatch"},
		{"no module, no nvidia-smi", 2, func(_ *rg, h *ho) {
			h.Driver = facts.Driver{Loaded: of(false), SMIExit: of(127)}
			for i := range h.Cards {
				h.Cards[i].Driver = of("")
			}
		}, Fail, "driver.loaded/not-installed"},
		{"open module needed", 2, func(_ *rg, h *ho) {
			h.Cards[0].Driver = of("")
			h.Log.Events = []facts.LogEvent{{Kind: "open-needed", Text: "requires use of the NVIDIA open kernel modules", Source: src}}
		}, Fail, "driver.loaded/open-module"},
		{"module loaded, the stream ended before nvidia-smi", 2, func(_ *rg, h *ho) {
			h.Gaps[facts.KindSMI] = "no nvidia-smi -q -x in the input"
			h.Driver = facts.Driver{Loaded: of(true), Version: of("550.90.07")}
		}, Unknown, ""},
		{"a kernel log alone says that none came up", 2, func(_ *rg, h *ho) {
			h.Driver, h.Cards, h.PCI = facts.Driver{}, nil, nil
			h.Log.Events = []facts.LogEvent{{Kind: "none-initialized", Text: "NVRM: None of the NVIDIA devices were initialized.", Source: src}}
		}, Fail, "driver.loaded/unbound"},
		{"nobody was asked", 2, func(_ *rg, h *ho) {
			h.Driver = facts.Driver{}
			for i := range h.Cards {
				h.Cards[i].Driver = facts.Fact[string]{}
			}
		}, Unknown, ""},
	})
}

// lowBARs puts every card's small BARs below 4 GiB.
func lowBARs(h *ho) {
	for i := range h.Cards {
		h.Cards[i].BAR1MiB = of(int64(256))
		h.Cards[i].BARs = []facts.BAR{{Index: 0, Start: 0xf0000000, Size: 16 << 20, Mem: true, Source: src}, {Index: 1, Start: 0xc0000000, Size: 256 << 20, Mem: true, Mem64: true, Source: src}}
	}
}

func TestAbove4G(t *testing.T) {
	lowWindow := []facts.Window{{Bus: "0000:00", Start: 0xc0000000, End: 0xfebfffff, Source: src}}
	runRows(t, "firmware.above-4g", []row{
		{"large BARs high", 8, nil, Pass, ""},
		{"BAR1 without an address", 4, func(_ *rg, h *ho) { h.Cards[1].BARs[1] = facts.BAR{Index: 1, Source: src} }, Fail, "firmware.above-4g/unassigned"},
		{"64-bit BAR0: the aperture is BAR2", 2, func(_ *rg, h *ho) {
			for i := range h.Cards {
				h.Cards[i].BARs = []facts.BAR{{Index: 0, Start: 0x100000000, Size: 16 << 20, Mem: true, Mem64: true, Source: src}, {Index: 1, Source: src}, {Index: 2, Start: 0x2000000000, Size: 128 << 30, Mem: true, Mem64: true, Source: src}}
			}
		}, Pass, ""},
		{"small and low, windows unknown", 2, func(_ *rg, h *ho) { lowBARs(h) }, Unknown, ""},
		{"small and low, high window", 2, func(_ *rg, h *ho) {
			lowBARs(h)
			h.Windows = append(lowWindow[:1:1], facts.Window{Bus: "0000:40", Start: 0x10000000000, End: 0x1ffffffffff, Source: src})
		}, Pass, ""},
		{"no high window, all cards there", 2, func(_ *rg, h *ho) { lowBARs(h); h.Windows = lowWindow }, Warn, "firmware.above-4g/off"},
		{"no high window, cards missing", 8, func(_ *rg, h *ho) { lowBARs(h); h.Windows = lowWindow; drop(h) }, Fail, "firmware.above-4g/off"},
		{"a guest", 2, func(_ *rg, h *ho) { h.Kind = of("vm") }, Unknown, ""},
		{"no high window, but nobody looked for cards", 1, func(_ *rg, h *ho) {
			h.Windows, h.Cards, h.PCI, h.Driver = lowWindow, nil, nil, facts.Driver{}
		}, Unknown, ""},
		{"a kernel log alone names the card", 1, func(_ *rg, h *ho) {
			h.Cards, h.PCI = nil, nil
			h.Log.Events = []facts.LogEvent{{Kind: "bar-invalid", BDF: "0000:06:00.0", Text: "NVRM: BAR0 is 0M @ 0x0", Source: src}}
		}, Fail, "firmware.above-4g/unassigned"},
	})
}

func TestResizableBAR(t *testing.T) {
	all := func(change func(*facts.Card)) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			for i := range h.Cards {
				change(&h.Cards[i])
			}
		}
	}
	small := func(c *facts.Card) { c.BAR1MiB = of(int64(256)) }
	runRows(t, "firmware.resizable-bar", []row{
		{"on", 4, nil, Pass, ""},
		{"off, card can", 4, all(small), Fail, "firmware.resizable-bar/enable"},
		{"off, sizes unread, model known", 4, all(func(c *facts.Card) { small(c); c.ReBARMiB = facts.Fact[[]int64]{} }), Fail, "firmware.resizable-bar/enable"},
		{"launch VBIOS offers 256 MB at most", 2, all(func(c *facts.Card) { small(c); c.ReBARMiB = of([]int64{64, 128, 256}) }), Warn, "firmware.resizable-bar/vbios"},
		{"partial on one", 4, func(_ *rg, h *ho) { h.Cards[3].BAR1MiB = of(int64(8192)) }, Warn, "firmware.resizable-bar/partial"},
		{"48 GB conversion", 2, all(func(c *facts.Card) { c.MemoryMiB = of(int64(49140)) }), Warn, "firmware.resizable-bar/vbios"},
		{"Turing", 2, all(func(c *facts.Card) {
			small(c)
			c.Product, c.ReBARMiB = "1e07", facts.Fact[[]int64]{}
			c.MemoryMiB = of(int64(11264))
		}), Skip, ""},
		{"off, in a guest", 2, func(r *rg, h *ho) { all(small)(r, h); h.Kind = of("vm") }, Unknown, ""},
		{"on, in a guest", 2, func(_ *rg, h *ho) { h.Kind = of("vm") }, Pass, ""},
		{"no aperture known", 2, all(func(c *facts.Card) { c.BAR1MiB = facts.Fact[int64]{} }), Unknown, ""},
		{"unknown model, sizes unread", 2, all(func(c *facts.Card) { small(c); c.Product, c.ReBARMiB = "ffff", facts.Fact[[]int64]{} }), Unknown, ""},
	})
}
