package checks

import (
	"strings"
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

func cpu(model string, sockets, cores int) func(*rg, *ho) {
	return func(_ *rg, h *ho) { h.CPU.Model, h.CPU.Sockets, h.CPU.Cores = of(model), of(sockets), of(cores) }
}

func TestCPULanes(t *testing.T) {
	narrow := func(_ *rg, h *ho) {
		for _, c := range h.Cards {
			setDevice(h, c.BDF, func(d *facts.Device) { d.Link.Width = of(8) })
		}
	}
	both := func(fs ...func(*rg, *ho)) func(*rg, *ho) {
		return func(r *rg, h *ho) {
			for _, f := range fs {
				f(r, h)
			}
		}
	}
	runRows(t, "cpu.lanes", []row{
		{"measured beats table", 2, cpu("AMD Ryzen 9 7950X 16-Core Processor", 1, 16), Pass, ""},
		{"consumer CPU, two cards at x8", 2, both(cpu("AMD Ryzen 9 7950X 16-Core Processor", 1, 16), narrow), Warn, "cpu.lanes/short"},
		{"consumer CPU, four cards", 4, both(cpu("Intel(R) Core(TM) i9-10900K CPU @ 3.70GHz", 1, 10), narrow), Fail, "cpu.lanes/short"},
		{"a recalled figure fails nobody alone", 4, both(cpu("AMD Ryzen 9 7950X 16-Core Processor", 1, 16), narrow), Warn, "cpu.lanes/short"},
		{"EPYC, narrow for another reason", 8, narrow, Pass, ""},
		{"unknown processor", 4, both(cpu("Some CPU", 1, 16), narrow), Unknown, ""},
	})
}

func TestCPUCores(t *testing.T) {
	runRows(t, "cpu.cores", []row{
		{"64 for eight cards", 8, nil, Pass, ""},
		{"24 for eight cards", 8, cpu("x", 2, 24), Warn, "cpu.cores/short"},
		{"12 for eight cards", 8, cpu("x", 2, 12), Fail, "cpu.cores/short"},
		{"no cpuinfo", 2, func(_ *rg, h *ho) { h.Gaps[facts.KindCPU] = "no /proc/cpuinfo in the input" }, Unknown, ""},
	})
}

func TestRAM(t *testing.T) {
	memory := func(installed, total int64) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			h.Memory = facts.Memory{}
			if installed > 0 {
				h.Memory.InstalledMiB = of(installed << 10)
			}
			if total > 0 {
				h.Memory.TotalMiB = of(total << 10)
			}
		}
	}
	runRows(t, "ram.per-card", []row{
		{"exactly 8 × 32 installed, MemTotal 251", 8, memory(256, 251), Pass, ""},
		{"half", 8, memory(128, 125), Fail, "ram.per-card/short"},
		{"without root, 251 of 256", 8, memory(0, 251), Pass, ""},
		{"without root, 234 of 256", 8, memory(0, 234), Warn, "ram.per-card/short"},
		{"without root, 190 of 256", 8, memory(0, 190), Fail, "ram.per-card/short"},
		{"a module is mapped out", 4, memory(256, 190), Warn, "ram.per-card/lost-dimm"},
		{"a container", 4, func(_ *rg, h *ho) { h.Kind = of("container") }, Unknown, ""},
		{"nothing read", 4, memory(0, 0), Unknown, ""},
	})
}

func TestStorage(t *testing.T) {
	disk := func(bytes int64, nvme bool) func(*rg, *ho) {
		return func(_ *rg, h *ho) { h.Disks = []facts.Disk{{Name: "d", Bytes: bytes, NVMe: nvme, Source: src}} }
	}
	runRows(t, "storage.capacity", []row{
		{"2 TB drive of 1.92", 2, disk(1_920_383_410_176, true), Pass, ""},
		{"2 TB for four cards", 4, disk(2_000_398_934_016, true), Warn, "storage.capacity/short"},
		{"500 GB", 2, disk(500_107_862_016, true), Fail, "storage.capacity/short"},
		{"SATA does not count", 2, disk(4_000_787_030_016, false), Fail, "storage.capacity/short"},
		{"not read", 2, func(_ *rg, h *ho) { h.Gaps[facts.KindDisks] = "none" }, Unknown, ""},
	})
}

func psu(watts, count, spare int) func(*rg, *ho) {
	return func(r *rg, _ *ho) { r.PSUs = []inventory.PSU{{Watts: watts, Count: count, Spare: spare}} }
}

func TestPSU(t *testing.T) {
	runRows(t, "power.psu", []row{
		{"8 × 450 on 4 × 2000", 8, nil, Pass, ""},
		{"8 × 450 on 2 + 1 × 2000", 8, psu(2000, 3, 1), Fail, "power.psu/short"},
		{"2 cards on 1600", 2, psu(1600, 1, 0), Fail, "power.psu/short"},
		{"2 cards on 1700, little left", 2, psu(1900, 1, 0), Pass, ""},
		{"passes thanks to a cap that is lost at boot", 8, func(r *rg, h *ho) {
			psu(2000, 3, 1)(r, h)
			for i := range h.Cards {
				h.Cards[i].PowerLimit = of(320.0)
			}
		}, Warn, "power.psu/cap-not-permanent"},
		{"the cap is set by a unit at boot", 8, func(r *rg, h *ho) {
			psu(2000, 3, 1)(r, h)
			h.CapUnits = of([]string{"/etc/systemd/system/power-cap.service"})
			for i := range h.Cards {
				h.Cards[i].PowerLimit = of(320.0)
			}
		}, Pass, ""},
		{"nothing declared", 4, func(r *rg, _ *ho) { r.PSUs = nil }, Unknown, ""},
		{"the board lists four", 8, func(r *rg, h *ho) {
			r.PSUs = nil
			for range 4 {
				h.PSUs = append(h.PSUs, facts.PSU{Name: "PWS-3K", Watts: 3000, Present: true, Source: src})
			}
		}, Pass, ""},
		{"the board lists four, two of them needed", 8, func(r *rg, h *ho) {
			r.PSUs = nil
			for range 4 {
				h.PSUs = append(h.PSUs, facts.PSU{Name: "PWS-2K", Watts: 2000, Present: true, Source: src})
			}
		}, Unknown, ""},
		{"2000 W unit at 120 V", 2, func(r *rg, h *ho) { psu(2000, 1, 0)(r, h); r.Mains.Volts = 120 }, Unknown, ""},
		{"limits unknown", 2, func(_ *rg, h *ho) {
			for i := range h.Cards {
				h.Cards[i].Product = "ffff"
				h.Cards[i].PowerLimit, h.Cards[i].PowerMax = facts.Fact[float64]{}, facts.Fact[float64]{}
			}
		}, Unknown, ""},
	})
}

func TestPSUNamesTheCapThatWouldPass(t *testing.T) {
	rig, h := goodRig(8), goodHost(8)
	psu(2000, 3, 1)(rig, h)
	_, f := verdictOf(judge(rig, h), "power.psu")
	limit := f.Args["cap"]
	if limit == "" {
		t.Fatalf("no cap in %+v", f)
	}
	for i := range h.Cards {
		v := 0.0
		for _, r := range limit {
			v = v*10 + float64(r-'0')
		}
		h.Cards[i].PowerLimit, h.Cards[i].PowerDefault = of(v), of(v)
	}
	if v, f := verdictOf(judge(rig, h), "power.psu"); v != Pass {
		t.Errorf("capped at the %s W that it named, it still says %s: %s", limit, v, f.Summary)
	}
}

func TestPSUCountsCardsThatAreMissing(t *testing.T) {
	rig, h := goodRig(8), goodHost(8)
	psu(2000, 2, 0)(rig, h)
	h.Cards, h.PCI = h.Cards[:4], h.PCI[:8]
	if v, f := verdictOf(judge(rig, h), "power.psu"); v != Fail || !strings.Contains(f.Note, "not seen") {
		t.Errorf("half of the cards are missing, the budget must hold for all: %s %s / %s", v, f.Summary, f.Note)
	}
}

func TestMains(t *testing.T) {
	runRows(t, "power.mains", []row{
		{"two circuits", 8, nil, Pass, ""},
		{"one household circuit", 4, func(r *rg, _ *ho) { r.Mains = &inventory.Mains{Volts: 230, Amps: 10, Circuits: 1} }, Fail, "power.mains/short"},
		{"not declared", 4, func(r *rg, _ *ho) { r.Mains = nil }, Unknown, ""},
	})
}

func TestSlotSpacing(t *testing.T) {
	step := func(pitches int) func(*rg, *ho) {
		return func(r *rg, _ *ho) {
			for i := range r.Chassis.Slots {
				r.Chassis.Slots[i].Position = 1 + pitches*i
			}
		}
	}
	runRows(t, "chassis.slot-spacing", []row{
		{"one free slot", 8, nil, Pass, ""},
		{"touching, four cards", 4, step(3), Warn, "chassis.slot-spacing/tight"},
		{"touching, eight cards", 8, step(3), Fail, "chassis.slot-spacing/tight"},
		{"blowers may touch", 8, func(r *rg, h *ho) { step(3)(r, h); r.Chassis.Cooling = "blower" }, Pass, ""},
		{"overlap", 4, step(2), Fail, "chassis.slot-spacing/impossible"},
		{"water", 8, func(r *rg, h *ho) { step(3)(r, h); r.Chassis.Cooling = "water" }, Skip, ""},
		{"risers", 8, func(r *rg, h *ho) { step(3)(r, h); r.Chassis.Mount = "riser" }, Skip, ""},
		{"bus numbers moved", 4, func(r *rg, _ *ho) { r.Chassis.Slots[2].Card = "0000:99:00.0" }, Unknown, ""},
		{"not declared", 4, func(r *rg, _ *ho) { r.Chassis = nil }, Unknown, ""},
	})
}
