package checks

import (
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

// peers makes the cards of a host ones that reach each other over PCIe (RTX A6000).
func peers(_ *rg, h *ho) {
	for i := range h.Cards {
		h.Cards[i].Product = "2230"
	}
	for i := range h.P2P {
		h.P2P[i].Code = "OK"
	}
}

func TestIOMMU(t *testing.T) {
	translated := func(_ *rg, h *ho) {
		h.IOMMU.Types = map[string]int{"DMA-FQ": 40}
		for bdf := range h.IOMMU.Cards {
			h.IOMMU.Cards[bdf] = "DMA-FQ"
		}
	}
	only := func(m facts.IOMMU) func(*rg, *ho) { return func(_ *rg, h *ho) { h.IOMMU = m } }
	runRows(t, "firmware.iommu", []row{
		{"passed through", 2, nil, Pass, ""},
		{"off", 2, only(facts.IOMMU{On: of(false)}), Pass, ""},
		{"translated, 4090 without P2P", 2, translated, Pass, ""},
		{"translated, 4090 that claims P2P", 2, inTurn(translated, func(_ *rg, h *ho) { h.P2P[0].Code = "OK" }), Warn, "firmware.iommu/translated"},
		{"translated, 4090 without P2P, log not read", 2, inTurn(translated, func(_ *rg, h *ho) { h.Log.Read = facts.Fact[bool]{} }), Unknown, ""},
		{"amd_iommu=pt is no option, and passes nothing", 2, inTurn(peers, only(facts.IOMMU{On: of(true)}), func(_ *rg, h *ho) { h.OS.Cmdline = of("ro amd_iommu=pt") }), Unknown, ""},
		{"translated, A6000", 2, inTurn(translated, peers), Warn, "firmware.iommu/translated"},
		{"translated, one of eight A6000 in the input", 1, inTurn(translated, peers, func(r *rg, h *ho) { r.Cards, h.Driver.Attached = nil, of(8) }), Warn, "firmware.iommu/translated"},
		{"translated, and no card known", 2, inTurn(onlyLog, func(_ *rg, h *ho) { h.IOMMU = facts.IOMMU{On: of(true), Default: of("Translated")} }), Warn, "firmware.iommu/translated"},
		{"translated, one A6000", 1, inTurn(translated, peers), Pass, ""},
		{"other devices are translated, the cards are not", 2, inTurn(peers, func(_ *rg, h *ho) { h.IOMMU.Types = map[string]int{"DMA": 3, "identity": 40} }), Pass, ""},
		{"the kernel's default, A6000", 2, inTurn(peers, only(facts.IOMMU{On: of(true), Default: of("Translated")})), Warn, "firmware.iommu/translated"},
		{"iommu=pt, by the command line", 2, inTurn(peers, only(facts.IOMMU{On: of(true)}), func(_ *rg, h *ho) { h.OS.Cmdline = of("ro quiet iommu=pt") }), Pass, ""},
		{"at work, mode not known", 2, inTurn(peers, only(facts.IOMMU{On: of(true)})), Unknown, ""},
		{"a card's access was refused", 2, logLine("iommu-fault", first, 0, "nvidia 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003]"), Fail, "firmware.iommu/faults"},
		{"another device's access was refused", 2, logLine("iommu-fault", "0000:c1:00.0", 0, "xhci_hcd 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]"), Pass, ""},
		{"refused, and only the log is given", 2, inTurn(onlyLog, logLine("iommu-fault", "0000:07:00.0", 0, "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]")), Fail, "firmware.iommu/faults"},
		{"not read", 2, only(facts.IOMMU{}), Unknown, ""},
		{"a guest", 2, func(_ *rg, h *ho) { h.Kind = of("vm") }, Unknown, ""},
	})
}

func TestBootMode(t *testing.T) {
	runRows(t, "firmware.boot-mode", []row{
		{"UEFI", 2, nil, Pass, ""},
		{"UEFI with Secure Boot", 2, func(_ *rg, h *ho) { h.Boot.SecureBoot = of(true) }, Pass, ""},
		{"legacy", 2, func(_ *rg, h *ho) { h.Boot.UEFI = of(false) }, Warn, "firmware.boot-mode/legacy"},
		{"an ARM board without UEFI", 2, func(_ *rg, h *ho) { h.Boot.UEFI, h.OS.Arch = of(false), of("aarch64") }, Skip, ""},
		{"an ARM server by UEFI", 2, func(_ *rg, h *ho) { h.OS.Arch = of("aarch64") }, Pass, ""},
		{"noefi", 2, func(_ *rg, h *ho) { h.Boot.UEFI, h.OS.Cmdline = of(false), of("ro noefi") }, Unknown, ""},
		{"not read", 2, func(_ *rg, h *ho) { h.Boot = facts.Boot{} }, Unknown, ""},
	})
}

func TestACS(t *testing.T) {
	const port = "0000:00:01.1"
	control := func(word int) func(*rg, *ho) {
		return func(_ *rg, h *ho) { setDevice(h, port, func(d *facts.Device) { d.ACS = of(word) }) }
	}
	runRows(t, "pcie.acs", []row{
		{"clear", 2, nil, Pass, ""},
		{"SrcValid redirects nothing", 2, inTurn(peers, control(0x1)), Pass, ""},
		{"0x1d above an A6000", 2, inTurn(peers, control(0x1d)), Warn, "pcie.acs/redirect"},
		{"0x1d above a 4090 without P2P", 2, control(0x1d), Pass, ""},
		{"a bridge that leads to no card", 2, inTurn(peers, func(_ *rg, h *ho) {
			h.PCI = append(h.PCI, facts.Device{BDF: "0000:f0:01.1", Class: "060400", ACS: of(0x1d)})
		}), Pass, ""},
		{"a port without the capability", 2, inTurn(peers, func(_ *rg, h *ho) { setDevice(h, port, func(d *facts.Device) { d.ACS = facts.Fact[int]{} }) }), Pass, ""},
		{"non-root: 64 bytes of config", 2, inTurn(peers, func(_ *rg, h *ho) {
			setDevice(h, port, func(d *facts.Device) { d.ACS, d.Extended, d.AER = facts.Fact[int]{}, facts.Fact[bool]{}, facts.AER{} })
		}), Unknown, ""},
		{"one card", 1, nil, Skip, ""},
		{"one card beside a display card", 1, func(r *rg, h *ho) { r.Cards, h.Driver.Attached = nil, of(1) }, Skip, ""},
		{"one of eight in the input, bridges not", 1, func(r *rg, h *ho) { r.Cards, h.Driver.Attached, h.PCI, h.Cards[0].Chain = nil, of(8), nil, nil }, Unknown, ""},
		{"NVLink on every pair", 2, func(_ *rg, h *ho) { h.Topo = []facts.TopoPair{{A: "0", B: "1", Level: "NV12", Source: src}} }, Skip, ""},
		{"no bridges in the input", 2, inTurn(peers, func(_ *rg, h *ho) {
			h.PCI = nil
			for i := range h.Cards {
				h.Cards[i].Chain = nil
			}
		}), Unknown, ""},
	})
}

func TestPCIeErrors(t *testing.T) {
	const port = "0000:00:01.1"
	aer := func(bdf string, change func(*facts.AER)) func(*rg, *ho) {
		return func(_ *rg, h *ho) { setDevice(h, bdf, func(d *facts.Device) { change(&d.AER) }) }
	}
	corr := func(bdf string, n int64) func(*rg, *ho) {
		return aer(bdf, func(a *facts.AER) { a.CountCorr = of(n) })
	}
	owner := func(f facts.Fact[bool]) func(*rg, *ho) { return func(_ *rg, h *ho) { h.AEROwned = f } }
	nobody := owner(facts.Fact[bool]{})
	bus := "PCIe Bus Error: severity=Correctable, type=Data Link Layer"
	runRows(t, "pcie.errors", []row{
		{"none since boot", 2, nil, Pass, ""},
		{"three at the port", 2, corr(port, 3), Warn, "pcie.errors/link"},
		{"5000 in six days", 2, corr(first, 5000), Fail, "pcie.errors/link"},
		{"300 within the first hour", 2, inTurn(corr(first, 300), func(_ *rg, h *ho) { h.OS.UptimeS = of(int64(3600)) }), Fail, "pcie.errors/link"},
		{"5000, since nobody knows when", 2, inTurn(corr(first, 5000), func(_ *rg, h *ho) { h.OS.UptimeS = facts.Fact[int64]{} }), Warn, "pcie.errors/link"},
		{"one card of two without counters at either end", 2, inTurn(aer(first, func(a *facts.AER) { *a = facts.AER{} }), aer(port, func(a *facts.AER) { *a = facts.AER{} })), Unknown, ""},
		{"the card has no counters, the port above it does", 2, aer(first, func(a *facts.AER) { *a = facts.AER{} }), Pass, ""},
		{"pci=noaer", 2, func(_ *rg, h *ho) { h.OS.Cmdline = of("ro pci=noaer") }, Unknown, ""},
		{"one fatal", 2, aer(port, func(a *facts.AER) { a.CountFatal = of(int64(1)) }), Fail, "pcie.errors/uncorrected"},
		{"one non-fatal", 2, aer(first, func(a *facts.AER) { a.CountNonFatal = of(int64(1)) }), Fail, "pcie.errors/uncorrected"},
		{"errors of a drive", 2, func(_ *rg, h *ho) {
			h.PCI = append(h.PCI, facts.Device{BDF: "0000:f1:00.0", Class: "010802", AER: facts.AER{CountCorr: of(int64(900))}})
		}, Pass, ""},
		{"replays", 2, card(1, func(c *facts.Card) { c.Replays = of(int64(7)) }), Warn, "pcie.errors/link"},
		{"the firmware keeps AER", 2, owner(of(false)), Unknown, ""},
		{"the firmware keeps AER, and the register remembers", 2, inTurn(owner(of(false)), aer(first, func(a *facts.AER) { a.Correctable = of(1<<6 | 1<<12) })), Warn, "pcie.errors/link"},
		{"RxErr alone is left by training", 2, inTurn(owner(of(false)), aer(first, func(a *facts.AER) { a.Correctable = of(1) })), Unknown, ""},
		{"UnsupReq alone is left by probing", 2, inTurn(owner(of(false)), aer(first, func(a *facts.AER) { a.Uncorrectable = of(1 << 20) })), Unknown, ""},
		{"surprise down is remembered", 2, inTurn(nobody, aer(port, func(a *facts.AER) { a.Uncorrectable = of(1 << 5) })), Warn, "pcie.errors/uncorrected"},
		{"owner not known", 2, nobody, Unknown, ""},
		{"no counters", 2, inTurn(nobody, aer(first, func(a *facts.AER) { *a = facts.AER{} }), aer(other, func(a *facts.AER) { *a = facts.AER{} }), aer(port, func(a *facts.AER) { *a = facts.AER{} }), aer("0000:20:01.1", func(a *facts.AER) { *a = facts.AER{} })), Unknown, ""},
		{"the kernel logged some", 2, logLine("aer", port, 0, "pcieport 0000:00:01.1: "+bus), Warn, "pcie.errors/link"},
		{"the kernel logged a drive's", 2, logLine("aer", "0000:f1:00.0", 0, "nvme 0000:f1:00.0: "+bus), Pass, ""},
		{"only a log: a port", 2, inTurn(onlyLog, logLine("aer", "0000:00:03.1", 0, "pcieport 0000:00:03.1: "+bus)), Warn, "pcie.errors/link"},
		{"only a log: fatal", 2, inTurn(onlyLog, logLine("aer-fatal", "0000:00:02.0", 0, "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal)")), Fail, "pcie.errors/uncorrected"},
		{"only a log: a drive", 2, inTurn(onlyLog, logLine("aer", "0000:f1:00.0", 0, "nvme 0000:f1:00.0: "+bus)), Unknown, ""},
	})
}

// What explains one card's finding must not be about another card.
func TestCausesAreOfTheSameCard(t *testing.T) {
	hot := card(0, func(c *facts.Card) { c.Reasons, c.Temperature = of([]string{"hw_thermal_slowdown"}), of(92) })
	for _, row := range []struct {
		name string
		a, b int // cards that stand wall to wall
		want bool
	}{{"its own neighbour", 0, 1, true}, {"two others", 2, 3, false}} {
		t.Run(row.name, func(t *testing.T) {
			rig, h := goodRig(4), goodHost(4)
			hot(rig, h)
			rig.Chassis = &inventory.Chassis{Cooling: "air", Mount: "slot"}
			at := 1
			for i, c := range h.Cards {
				rig.Chassis.Slots = append(rig.Chassis.Slots, inventory.Slot{Position: at, Card: c.BDF, Thickness: 3, Width: 16})
				at += 4
				if i == row.a {
					at--
				}
			}
			fs := judge(rig, h)
			if v, _ := verdictOf(fs, "chassis.slot-spacing"); v == Pass {
				t.Fatal("the cards are not tight")
			}
			if _, f := verdictOf(fs, "gpu.throttle"); (f.Cause != nil) != row.want {
				t.Errorf("cause %v of %s", f.Cause, f.Summary)
			}
		})
	}
}

// A card that left the bus because its link broke is one fault, not four.
func TestCausesOfALostCard(t *testing.T) {
	rig, h := goodRig(2), goodHost(2)
	inTurn(xid(first, 79, "NVRM: Xid (PCI:0000:01:00): 79"), logLine("aer-fatal", "0000:00:01.1", 0, "pcieport 0000:00:01.1: PCIe Bus Error: severity=Uncorrected (Fatal)"))(rig, h)
	fs := judge(rig, h)
	if _, f := verdictOf(fs, "gpu.health"); f.Cause == nil || *f.Cause != "pcie.errors@"+first {
		t.Errorf("cause %v", f.Cause)
	}
	if v, f := verdictOf(fs, "driver.loaded"); v == Fail {
		t.Errorf("a lost card is no fault of the driver: %s", f.Summary)
	}
}
