package checks

import (
	"fmt"
	"testing"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

const src = "test"

func of[T any](v T) facts.Fact[T] { return facts.Of(v, src) }

// goodHost is a healthy metal host: n RTX 4090, each directly below its own root port at Gen4 x16, Resizable BAR on,
// idle at Gen1, two EPYC 7542.
func goodHost(n int) *facts.Host {
	h := &facts.Host{Kind: of("metal"), Gaps: map[facts.Kind]string{}}
	h.CPU = facts.CPU{Model: of("AMD EPYC 7542 32-Core Processor"), Sockets: of(2), Cores: of(64), Threads: of(128)}
	h.Memory = facts.Memory{InstalledMiB: of(int64(512 << 10)), TotalMiB: of(int64(504 << 10))}
	h.Driver = facts.Driver{Loaded: of(true), Version: of("550.90.07"), Attached: of(n), SMIExit: of(0)}
	h.Disks = []facts.Disk{{Name: "nvme0n1", Bytes: 4_000_787_030_016, NVMe: true, Source: src}}
	for i := range n {
		port := facts.Device{BDF: fmt.Sprintf("0000:%02x:01.1", 0x20*i), Class: "060400", Vendor: "1022", Product: "1483", RootBus: fmt.Sprintf("0000:%02x", 0x20*i), Link: link16()}
		card := facts.Device{
			BDF: fmt.Sprintf("0000:%02x:00.0", 0x20*i+1), Class: "030000", Vendor: "10de", Product: "2684", Chain: []string{port.BDF}, RootBus: port.RootBus,
			Driver: of("nvidia"), Link: link16(), BARs: []facts.BAR{
				{Index: 0, Start: 0xf0000000, Size: 16 << 20, Mem: true, Source: src},
				{Index: 1, Start: 0x20000000000 + uint64(i)<<36, Size: 32 << 30, Mem: true, Mem64: true, Prefetch: true, Source: src},
			},
		}
		h.PCI = append(h.PCI, port, card)
		h.Cards = append(h.Cards, facts.Card{
			Device: card, Index: of(i), Name: of("GeForce RTX 4090"), Slug: of("rtx-4090"), MemoryMiB: of(int64(24564)), BAR1MiB: of(int64(32768)),
			ReBARMiB: of([]int64{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}), PState: of("P8"), Utilization: of(0),
			PowerLimit: of(450.0), PowerDefault: of(450.0), PowerMin: of(150.0), PowerMax: of(600.0),
			Gen: facts.SMILink{Current: of(1), Max: of(4), DeviceMax: of(4), HostMax: of(4), Width: of(16), WidthMax: of(16)},
		})
		for j := range n {
			if i != j {
				h.P2P = append(h.P2P, facts.P2PPair{A: fmt.Sprint(i), B: fmt.Sprint(j), Op: "r", Code: "CNS", Source: src})
			}
		}
	}
	h.NCCL = []facts.NCCLRun{goodRun(n, 14.2)}
	h.Rates = goodRates(h.Cards, 24.6)
	goodHealth(h)
	addSoftware(h, n)
	return h
}

// goodRates are copies between the host and each card, alone and all at once.
func goodRates(cards []facts.Card, gbs float64) []facts.CardRate {
	var out []facts.CardRate
	for _, c := range cards {
		for _, together := range []int{1, len(cards)} {
			for _, direction := range []string{"h2d", "d2h"} {
				out = append(out, facts.CardRate{BDF: c.BDF, Direction: direction, Cards: together, Bytes: 64 << 20, Best: gbs, Median: gbs, Source: src})
			}
		}
	}
	return out
}

func link16() facts.Link {
	return facts.Link{Width: of(16), MaxWidth: of(16), Speed: of(2.5), MaxSpeed: of(16.0)}
}

func goodRun(n int, busbw float64) facts.NCCLRun {
	return facts.NCCLRun{Engine: "nccl-tests", Ranks: n, Wrong: 0, Transport: "SHM", Source: src, Rows: []facts.NCCLRow{
		{Bytes: 64 << 20, BusBW: busbw * 0.96}, {Bytes: 256 << 20, BusBW: busbw},
	}}
}

// goodRig declares what goodHost is.
func goodRig(n int) *inventory.Rig {
	return &inventory.Rig{
		Name: "node-a", Cards: &n, GPU: "rtx-4090", PSUs: []inventory.PSU{{Watts: 2000, Count: 4, Spare: 0}},
		Mains:   &inventory.Mains{Volts: 230, Amps: 32, Circuits: 2},
		Chassis: &inventory.Chassis{Cooling: "air", Mount: "slot", Slots: goodSlots(n)},
	}
}

func goodSlots(n int) []inventory.Slot {
	var out []inventory.Slot
	for i := range n {
		out = append(out, inventory.Slot{Position: 1 + 4*i, Card: fmt.Sprintf("0000:%02x:00.0", 0x20*i+1), Thickness: 3})
	}
	return out
}

func judge(rig *inventory.Rig, h *facts.Host) []Finding {
	var p *inventory.Profile
	n := len(h.Cards)
	if rig != nil {
		p = rig.Profile
		if rig.Cards != nil {
			n = *rig.Cards
		}
	}
	return Run(rig, h, PolicyFor(p, n), catalog.MustLoad())
}

// verdictOf is the worst finding of a check.
func verdictOf(fs []Finding, check string) (Verdict, Finding) {
	var worst Finding
	v := Verdict("absent")
	for _, f := range fs {
		if f.Check == check && (v == "absent" || order[f.Verdict] < order[v]) {
			v, worst = f.Verdict, f
		}
	}
	return v, worst
}

func TestHealthyRigsHaveNoFindingToMend(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		rig, h := goodRig(n), goodHost(n)
		burn(fullBurn, nil)(rig, h)
		trained(600, 620, 604, nil)(rig, h)
		fs := judge(rig, h)
		for _, f := range fs {
			if f.Verdict != Pass && f.Verdict != Skip {
				t.Errorf("%d cards: %s is %s: %s (%s)", n, f.ID, f.Verdict, f.Summary, f.Known)
			}
		}
	}
}

func TestEveryCheckAlwaysSpeaks(t *testing.T) {
	for name, h := range map[string]*facts.Host{
		"nothing was read": {Gaps: map[facts.Kind]string{facts.KindPCI: "no PCI devices in the input", facts.KindCPU: "none", facts.KindDisks: "none"}},
		"a guest":          func() *facts.Host { h := goodHost(2); h.Kind = of("vm"); return h }(),
		"healthy":          goodHost(4),
	} {
		fs := judge(nil, h)
		for _, id := range IDs() {
			v, f := verdictOf(fs, id)
			if v == "absent" {
				t.Errorf("%s: %s has no finding", name, id)
			}
			if name == "nothing was read" && v != Unknown && id != "cluster.consistency" {
				t.Errorf("%s: %s is %s, want unknown: %s", name, id, v, f.Summary)
			}
			if v == Unknown && f.Known == "" {
				t.Errorf("%s: %s is unknown and does not say what would make it known", name, id)
			}
		}
		for _, f := range fs {
			if (f.Verdict == Warn || f.Verdict == Fail) && f.Remedy == "" {
				t.Errorf("%s: %s has no remedy", name, f.ID)
			}
		}
	}
}
