package checks

import (
	"testing"

	"preflight/internal/facts"
)

// goodHealth gives a host what the checks of health, errors and firmware want to see.
func goodHealth(h *facts.Host) {
	h.OS.UptimeS = of(int64(6 * 86400))
	h.Boot.UEFI = of(true)
	h.Log.Read, h.AEROwned = of(true), of(true)
	h.IOMMU = facts.IOMMU{On: of(true), Types: map[string]int{"identity": 40}, Cards: map[string]string{}}
	for i := range h.PCI {
		goodFunction(&h.PCI[i])
	}
	for i := range h.Cards {
		c := &h.Cards[i]
		goodFunction(&c.Device)
		c.Name.Source = "nvidia-smi:product_name"
		c.SubVend, c.SubDev = "1458", "40bf"
		c.Part, c.VBIOS, c.SMIDevice = of("2684-300-A1"), of("95.02.3C.00.40"), of("2684")
		c.Reasons, c.Temperature = of([]string{"gpu_idle"}), of(34+i)
		c.ReasonUS = of(map[string]int64{"sw_power_cap": 31637000000, "hw_therm_slowdown": 0, "hw_power_brake": 0})
		c.Persistence, c.Display, c.Replays, c.Recovery = of(true), of(false), of(int64(0)), of("None")
		h.IOMMU.Cards[c.BDF] = "identity"
	}
}

func goodFunction(d *facts.Device) {
	d.AER = facts.AER{Uncorrectable: of(0), Correctable: of(0), CountCorr: of(int64(0)), CountNonFatal: of(int64(0)), CountFatal: of(int64(0))}
	d.Extended = of(true)
	if d.Class == "060400" {
		d.PortType, d.ACS = of("root"), of(0)
	}
}

// logLine adds one event to the kernel's log.
func logLine(kind, bdf string, code int, text string) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		h.Log.Read = of(true)
		h.Log.Events = append(h.Log.Events, facts.LogEvent{Kind: kind, BDF: bdf, Code: code, Text: text, Source: "cmd:dmesg.txt:1"})
	}
}

func xid(bdf string, code int, text string) func(*rg, *ho) { return logLine("xid", bdf, code, text) }

// card changes one card of a host.
func card(i int, change func(*facts.Card)) func(*rg, *ho) {
	return func(_ *rg, h *ho) { change(&h.Cards[i]) }
}

func everyCard(change func(*facts.Card)) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		for i := range h.Cards {
			change(&h.Cards[i])
		}
	}
}

func inTurn(changes ...func(*rg, *ho)) func(*rg, *ho) {
	return func(r *rg, h *ho) {
		for _, c := range changes {
			c(r, h)
		}
	}
}

// onlyLog leaves a host of which nothing but a kernel log was given.
func onlyLog(r *rg, h *ho) {
	*r = rg{}
	*h = facts.Host{Gaps: map[facts.Kind]string{facts.KindSMI: "no nvidia-smi -q -x in the input", facts.KindPCI: "no PCI devices in the input"}}
	h.Log.Read = of(true)
}

func summaryOf(t *testing.T, check string, n int, change func(*rg, *ho)) Finding {
	t.Helper()
	rig, h := goodRig(n), goodHost(n)
	change(rig, h)
	_, f := verdictOf(judge(rig, h), check)
	return f
}
