package checks

import (
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

func width(bdf string, w int) func(*rg, *ho) {
	return func(_ *rg, h *ho) { setDevice(h, bdf, func(d *facts.Device) { d.Link.Width = of(w) }) }
}

// x8board turns two cards into functions of one AM5 device, both at x8.
func x8board(_ *rg, h *ho) {
	for i, port := range []string{"0000:00:01.1", "0000:00:01.3"} {
		old := h.Cards[i].Chain[0]
		setDevice(h, old, func(d *facts.Device) { d.BDF, d.RootBus, d.Link.Width = port, "0000:00", of(8) })
		setDevice(h, h.Cards[i].BDF, func(d *facts.Device) { d.Chain, d.RootBus, d.Link.Width = []string{port}, "0000:00", of(8) })
	}
}

func TestPCIeWidth(t *testing.T) {
	runRows(t, "pcie.width", []row{
		{"all x16", 8, nil, Pass, ""},
		{"ROMED8-2T, riser at x8", 4, width("0000:21:00.0", 8), Fail, "pcie.width/slot-fault"},
		{"two cards, riser at x8 is a fault too", 2, width("0000:21:00.0", 8), Fail, "pcie.width/slot-fault"},
		{"AM5 board splits x8/x8", 2, x8board, Warn, "pcie.width/slot-limit"},
		{"slot wired x8, two cards", 2, func(_ *rg, h *ho) {
			setDevice(h, "0000:20:01.1", func(d *facts.Device) { d.Link.Width, d.Link.MaxWidth = of(8), of(8) })
			setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Link.Width = of(8) })
		}, Warn, "pcie.width/slot-limit"},
		{"slot wired x8, four cards", 4, func(_ *rg, h *ho) {
			setDevice(h, "0000:20:01.1", func(d *facts.Device) { d.Link.Width, d.Link.MaxWidth = of(8), of(8) })
			setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Link.Width = of(8) })
		}, Fail, "pcie.width/slot-limit"},
		{"declared x8 slot, allow_x8", 4, func(r *rg, h *ho) {
			yes := true
			r.Profile = &inventory.Profile{AllowX8: &yes}
			r.Chassis.Slots[1].Width = 8
			width("0000:21:00.0", 8)(r, h)
		}, Pass, ""},
		{"Gen5 x8 moves as much as Gen4 x16", 4, func(_ *rg, h *ho) {
			for _, bdf := range []string{"0000:20:01.1", "0000:21:00.0"} {
				setDevice(h, bdf, func(d *facts.Device) { d.Link.MaxSpeed, d.Link.Width = of(32.0), of(8) })
			}
			setDevice(h, "0000:20:01.1", func(d *facts.Device) { d.Link.MaxWidth = of(8) })
		}, Pass, ""},
		{"a card that has only x8", 2, func(_ *rg, h *ho) {
			setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Product, d.Link.Width, d.Link.MaxWidth = "2803", of(8), of(8) })
			h.Cards[1].MemoryMiB = of(int64(16380))
		}, Pass, ""},
		{"left the bus", 4, func(_ *rg, h *ho) {
			setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Link = facts.Link{Broken: of(true)} })
		}, Fail, "pcie.width/off-bus"},
		{"nvidia-smi alone, x8 of x16", 2, func(_ *rg, h *ho) {
			h.PCI = nil
			for i := range h.Cards {
				h.Cards[i].Chain, h.Cards[i].Link, h.Cards[i].Gen.Width = nil, facts.Link{}, of(8)
			}
		}, Warn, "pcie.width/slot-limit"},
		{"no link known", 2, func(_ *rg, h *ho) {
			h.PCI = nil
			for i := range h.Cards {
				h.Cards[i].Chain, h.Cards[i].Link, h.Cards[i].Gen = nil, facts.Link{}, facts.SMILink{}
			}
		}, Unknown, ""},
	})
}

func TestPCIeSpeed(t *testing.T) {
	load := func(speed float64) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			for _, c := range h.Cards {
				h.Load = append(h.Load, facts.LinkSample{BDF: c.BDF, Width: 16, Speed: speed, Loaded: true, Source: "sample"})
			}
		}
	}
	runRows(t, "pcie.speed", []row{
		{"idle at Gen1 is normal", 4, nil, Pass, ""},
		{"Gen4 under load", 4, load(16), Pass, ""},
		{"Gen3 under load, Gen4 possible", 4, load(8), Fail, "pcie.speed/under-load"},
		{"Gen3 slot", 4, func(_ *rg, h *ho) {
			setDevice(h, "0000:20:01.1", func(d *facts.Device) { d.Link.MaxSpeed = of(8.0) })
		}, Warn, "pcie.speed/slot-gen"},
		{"forced slot lowers the card's LnkCap", 4, func(_ *rg, h *ho) {
			setDevice(h, "0000:21:00.0", func(d *facts.Device) { d.Link.MaxSpeed = of(8.0) })
		}, Warn, "pcie.speed/slot-gen"},
		{"Gen3 slot runs Gen3 under load: no second fault", 4, func(r *rg, h *ho) {
			for _, c := range h.Cards {
				setDevice(h, c.Chain[0], func(d *facts.Device) { d.Link.MaxSpeed = of(8.0) })
			}
			load(8)(r, h)
		}, Warn, "pcie.speed/slot-gen"},
		{"nothing but the card", 2, func(_ *rg, h *ho) {
			h.PCI = nil
			for i := range h.Cards {
				h.Cards[i].Chain, h.Cards[i].Link, h.Cards[i].Gen = nil, facts.Link{}, facts.SMILink{}
			}
		}, Unknown, ""},
	})
}

// switched puts the cards below one switch whose uplink has the given width and speed.
func switched(up int, speed float64) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		root := facts.Device{BDF: "0000:00:03.1", Class: "060400", Vendor: "1022", Product: "1483", Link: facts.Link{Width: of(up), MaxWidth: of(up), Speed: of(speed), MaxSpeed: of(speed)}}
		upstream := root
		upstream.BDF, upstream.Vendor, upstream.Product = "0000:05:00.0", "10b5", "8796"
		h.PCI = append(h.PCI, root, upstream)
		for _, c := range h.Cards {
			down := c.Chain[0]
			setDevice(h, c.BDF, func(d *facts.Device) { d.Chain = []string{root.BDF, upstream.BDF, down} })
		}
	}
}

func TestPCIeUplink(t *testing.T) {
	runRows(t, "pcie.uplink", []row{
		{"direct", 8, nil, Pass, ""},
		{"four cards on Gen4 x16: 4 : 1", 4, switched(16, 16), Warn, "pcie.uplink/shared"},
		{"eight cards on one Gen4 x16", 8, switched(16, 16), Fail, "pcie.uplink/shared"},
		{"four cards on Gen4 x4", 4, switched(4, 16), Fail, "pcie.uplink/shared"},
		{"two cards on Gen5 x16", 2, switched(16, 32), Pass, ""},
		{"behind the PCH", 2, func(_ *rg, h *ho) {
			old := h.Cards[1].Chain[0]
			setDevice(h, old, func(d *facts.Device) { d.BDF, d.Vendor, d.Product = "0000:00:1d.4", "8086", "7a34" })
			setDevice(h, h.Cards[1].BDF, func(d *facts.Device) { d.Chain = []string{"0000:00:1d.4"} })
		}, Fail, "pcie.uplink/chipset"},
		{"Thunderbolt", 2, func(_ *rg, h *ho) { setDevice(h, h.Cards[1].Chain[0], func(d *facts.Device) { d.Removed = true }) }, Warn, "pcie.uplink/external"},
		{"bridges unknown", 2, func(_ *rg, h *ho) {
			for i := range h.Cards {
				h.Cards[i].Chain = nil
			}
		}, Unknown, ""},
	})
}

func TestTopologyP2P(t *testing.T) {
	codes := func(h *ho, code string) {
		for i := range h.P2P {
			h.P2P[i].Code = code
		}
	}
	pro := func(h *ho) {
		for i := range h.Cards {
			h.Cards[i].Product, h.Cards[i].MemoryMiB, h.Cards[i].Slug = "26b1", of(int64(49140)), of("rtx-6000-ada")
		}
	}
	runRows(t, "topology.p2p", []row{
		{"4090 without P2P is normal", 8, nil, Pass, ""},
		{"4090 that claims P2P", 4, func(_ *rg, h *ho) { codes(h, "OK") }, Warn, "topology.p2p/unproven"},
		{"profile wants P2P", 4, func(r *rg, _ *ho) { yes := true; r.Profile = &inventory.Profile{RequireP2P: &yes} }, Fail, "topology.p2p/required"},
		{"workstation cards, OK", 4, func(r *rg, h *ho) { r.GPU = ""; pro(h); codes(h, "OK") }, Pass, ""},
		{"workstation cards, chipset not supported", 4, func(r *rg, h *ho) { r.GPU = ""; pro(h) }, Warn, "topology.p2p/required"},
		{"OK in a guest proves nothing", 4, func(r *rg, h *ho) { r.GPU = ""; pro(h); codes(h, "OK"); h.Kind = of("vm") }, Unknown, ""},
		{"NVLink on every pair", 2, func(_ *rg, h *ho) {
			h.Topo = []facts.TopoPair{{A: "GPU0", B: "GPU1", Level: "NV4", Source: src}}
		}, Pass, ""},
		{"no matrix", 4, func(_ *rg, h *ho) { h.P2P = nil }, Unknown, ""},
		{"one card", 1, nil, Skip, ""},
	})
}
