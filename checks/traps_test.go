package checks

import (
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

// Each row is a way in which a plausible rule passes what it did not see, or blames what is in order.
func TestTraps(t *testing.T) {
	rows := map[string]struct {
		check string
		want  Verdict
		set   func(*inventory.Rig, *facts.Host)
	}{
		"a supply feeds a card that is gone: 2000 W over 0 W is no pass": {"power.psu", Unknown, func(r *inventory.Rig, _ *facts.Host) {
			r.PSUs = []inventory.PSU{{Watts: 1600, Count: 2, Cards: []string{"0000:01:00.0", "0000:21:00.0"}}, {Watts: 2000, Count: 1, Cards: []string{"0000:fe:00.0"}}}
		}},
		"one card hangs on none of the declared supplies": {"power.psu", Unknown, func(r *inventory.Rig, _ *facts.Host) {
			r.PSUs = []inventory.PSU{{Watts: 3000, Count: 1, Cards: []string{"0000:01:00.0"}}}
		}},
		"supplies of SMBIOS are short only by a recalled figure": {"power.psu", Warn, func(r *inventory.Rig, h *facts.Host) {
			r.PSUs = nil
			h.PSUs = []facts.PSU{{Watts: 1000, Present: true, Source: src}}
			h.CPU.Model = of("Intel(R) Core(TM) i9-14900K")
		}},
		"only one of two cards has a declared slot": {"chassis.slot-spacing", Unknown, func(r *inventory.Rig, _ *facts.Host) {
			r.Chassis.Slots = r.Chassis.Slots[:1]
		}},
		"slots are declared, cards in them are not": {"chassis.slot-spacing", Unknown, func(r *inventory.Rig, _ *facts.Host) {
			for i := range r.Chassis.Slots {
				r.Chassis.Slots[i].Card = ""
			}
		}},
		"the boot log was cut: a low window of another root bus proves nothing": {"firmware.above-4g", Unknown, func(_ *inventory.Rig, h *facts.Host) {
			smallBARs(h)
			h.Windows = []facts.Window{{Bus: "0000:e0", Start: 0xf0000000, End: 0xf7ffffff, Source: "cmd:dmesg.txt"}}
		}},
		"root buses of all cards are known and end below 4 GiB": {"firmware.above-4g", Warn, func(_ *inventory.Rig, h *facts.Host) {
			smallBARs(h)
			for _, bus := range []string{"0000:00", "0000:20"} {
				h.Windows = append(h.Windows, facts.Window{Bus: bus, Start: 0xc0000000, End: 0xf7ffffff, Source: "cmd:dmesg.txt"})
			}
		}},
		"nvidia-smi printed nothing and ended with 15": {"gpu.health", Fail, func(_ *inventory.Rig, h *facts.Host) {
			h.Driver.SMIExit = of(15)
			h.Gaps[facts.KindSMI] = "cmd/nvidia-smi-q.xml failed"
		}},
		"a card fell off the bus and is no longer listed; nobody declared how many there were": {"gpu.health", Fail, func(r *inventory.Rig, h *facts.Host) {
			r.Cards = nil
			h.Log.Events = []facts.LogEvent{{Kind: "xid", Code: 79, BDF: "0000:a1:00.0", Text: "NVRM: Xid (PCI:0000:a1:00): 79", Source: src}}
		}},
		"nvidia-smi was ended by a signal: that says nothing of the driver": {"driver.loaded", Unknown, func(_ *inventory.Rig, h *facts.Host) {
			h.Driver.SMIExit = of(153)
			h.Gaps[facts.KindSMI] = "cmd/nvidia-smi-q.xml was cut at its size limit"
		}},
		"a sibling card that is x8 by nature excuses no x8 link": {"pcie.width", Fail, func(_ *inventory.Rig, h *facts.Host) {
			sameDevice(h)
			narrow(h, 0, 8)
			narrow(h, 1, 8)
			h.Cards[1].Link.MaxWidth = of(8)
		}},
		"siblings of one CPU at the same half width share lanes": {"pcie.width", Warn, func(_ *inventory.Rig, h *facts.Host) {
			sameDevice(h)
			narrow(h, 0, 8)
			narrow(h, 1, 8)
		}},
		"the way to one card is not known": {"pcie.uplink", Unknown, func(_ *inventory.Rig, h *facts.Host) {
			h.Cards[1].Chain = nil
		}},
		"the run broke off after its small sizes": {"nccl.all-reduce", Fail, func(_ *inventory.Rig, h *facts.Host) {
			h.NCCL[0].Error = "Test NCCL failure all_reduce.cu:44 'unhandled cuda error'"
		}},
		"sizes too small for a plateau say nothing of the links": {"nccl.all-reduce", Unknown, func(_ *inventory.Rig, h *facts.Host) {
			h.NCCL[0].Rows = []facts.NCCLRow{{Bytes: 1 << 20, BusBW: 1.2}}
		}},
		"the profile allows x8, and the run is right for x8": {"nccl.all-reduce", Pass, func(r *inventory.Rig, h *facts.Host) {
			allow := true
			r.Profile = &inventory.Profile{AllowX8: &allow}
			sameDevice(h)
			narrow(h, 0, 8)
			narrow(h, 1, 8)
			h.NCCL = []facts.NCCLRun{goodRun(2, 7.1)}
		}},
		"small sizes that already reach the links pass": {"nccl.all-reduce", Pass, func(_ *inventory.Rig, h *facts.Host) {
			h.NCCL[0].Rows = []facts.NCCLRow{{Bytes: 8 << 20, BusBW: 14}}
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			rig, host := goodRig(2), goodHost(2)
			row.set(rig, host)
			for i := range host.Cards { // a card is also a function of the bus
				for k := range host.PCI {
					if host.PCI[k].BDF == host.Cards[i].BDF {
						host.PCI[k] = host.Cards[i].Device
					}
				}
			}
			if v, f := verdictOf(judge(rig, host), row.check); v != row.want {
				t.Errorf("%s is %s, want %s: %s (%s)", row.check, v, row.want, f.Summary, f.Note)
			}
		})
	}
}

func smallBARs(h *facts.Host) {
	for i := range h.Cards {
		h.Cards[i].BARs = []facts.BAR{
			{Index: 0, Start: 0xf0000000, Size: 16 << 20, Mem: true, Source: src},
			{Index: 1, Start: 0xc0000000, Size: 256 << 20, Mem: true, Mem64: true, Source: src},
		}
		h.Cards[i].BAR1MiB = of(int64(256))
	}
}

// sameDevice puts both cards below functions of one root device.
func sameDevice(h *facts.Host) {
	for i := range h.Cards {
		port := "0000:00:01." + string(rune('1'+i))
		for k := range h.PCI {
			if h.PCI[k].BDF == h.Cards[i].Chain[0] {
				h.PCI[k].BDF, h.PCI[k].RootBus = port, "0000:00"
			}
		}
		h.Cards[i].Chain, h.Cards[i].RootBus = []string{port}, "0000:00"
	}
}

func narrow(h *facts.Host, i, lanes int) {
	h.Cards[i].Link.Width = of(lanes)
	h.Cards[i].Gen.Width = of(lanes)
	for k := range h.PCI {
		if h.PCI[k].BDF == h.Cards[i].Chain[0] {
			h.PCI[k].Link.Width = of(lanes)
		}
	}
}
