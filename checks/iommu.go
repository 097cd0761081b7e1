package checks

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// firmware.iommu: does the IOMMU stand between cards that copy to each other?
//
//	a card's DMA was refused (IO_PAGE_FAULT, DMAR fault)               fail
//	no IOMMU at work                                                   pass
//	passed through (identity, iommu=pt)                                pass
//	translated (DMA, DMA-FQ), several cards that reach each other      warn
//	translated, one card, NVLink only, or cards without P2P over PCIe  pass with a note; log not read: unknown
//	at work, its mode not known                                        unknown
//	no IOMMU fact                                                      unknown
//
// Groups prove an IOMMU at work; the mode is each card's own group's type, else the kernel's default as it logs it, else
// iommu=pt on its command line. That line about the default is printed on machines without an IOMMU as well. Virtual
// machines with cards passed through need translation: there the warning is the price.
var firmwareIOMMU = Check{ID: "firmware.iommu", Title: "IOMMU", Metal: true, Decide: decideIOMMU}

func decideIOMMU(s Subject) []Finding {
	if out := refusedDMA(s); len(out) > 0 {
		return out
	}
	m := s.Host.IOMMU
	on, known := m.On.Get()
	if !known {
		return []Finding{unknown(rigSubject, "whether an IOMMU is at work is not in the input").knownBy("give the dmesg of a boot, or a snapshot of the host")}
	}
	if !on {
		return []Finding{pass(rigSubject, "no IOMMU at work").saw("off", "off or identity").because(ev(m.On))}
	}
	mode, source := iommuMode(s)
	switch {
	case mode == "":
		return []Finding{unknown(rigSubject, "an IOMMU is at work; whether it translates is not in the input").because(ev(m.On)).
			knownBy("give /sys/kernel/iommu_groups/*/type, or a snapshot of the host")}
	case mode == "identity":
		return []Finding{pass(rigSubject, "the IOMMU passes the cards' DMA through").saw(mode, "off or identity").because(source)}
	}
	f := warn(rigSubject, "the IOMMU translates what the cards send to each other").saw(mode, "off or identity").because(source, ev(m.On)).fix("firmware.iommu/translated")
	why := noPeers(s)
	if why != "" && !s.Host.Log.Read.Value {
		return []Finding{unknown(rigSubject, "the IOMMU translates; whether it refused accesses is in the kernel's log, which was not read").saw(mode, "").because(source).
			noting("%s", why).knownBy(readTheLog)}
	}
	if why != "" {
		f = pass(rigSubject, "the IOMMU translates").saw(mode, "").because(source).noting("%s", why)
	}
	return []Finding{f}
}

// refusedDMA are cards whose accesses the IOMMU logged as faults.
func refusedDMA(s Subject) []Finding {
	var out []Finding
	said := map[string]bool{}
	for _, e := range s.Host.Log.Events {
		if e.Kind != "iommu-fault" || said[e.BDF] || !s.isCardLine(e) {
			continue
		}
		said[e.BDF] = true
		out = append(out, fail(e.BDF, "the IOMMU refused accesses of %s", e.BDF).saw("faults", "none").because(evs(e.Source, e.Text)).fix("firmware.iommu/faults", "bdf", e.BDF))
	}
	return out
}

// isCardLine says whether a line of the log is about a card: one of the host's, or one that names the driver.
func (s Subject) isCardLine(e facts.LogEvent) bool {
	for _, c := range s.Host.Cards {
		if c.BDF == e.BDF {
			return true
		}
	}
	return saidBy(e, "nvidia")
}

// saidBy says whether a line names a driver in front of the function that it is about: "nvidia 0000:01:00.0: …".
func saidBy(e facts.LogEvent, driver string) bool {
	return e.BDF != "" && strings.Contains(e.Text, driver+" "+e.BDF)
}

// iommuMode is "identity", or the way of translation; "" when it is not known.
func iommuMode(s Subject) (string, Evidence) {
	m := s.Host.IOMMU
	types := map[string]bool{}
	for _, c := range s.Cards {
		if t := m.Cards[c.BDF]; t != "" {
			types[t] = true
		}
	}
	if len(types) == 0 {
		for t := range m.Types {
			types[t] = true
		}
	}
	var names []string
	for t := range types {
		names = append(names, t)
	}
	sort.Strings(names)
	for _, t := range names {
		if strings.HasPrefix(t, "DMA") {
			return t, evs("sysfs:sys/kernel/iommu_groups", strings.Join(names, ", "))
		}
	}
	if types["identity"] {
		return "identity", evs("sysfs:sys/kernel/iommu_groups", "identity")
	}
	cmdline := s.Host.OS.Cmdline
	passed := slices.ContainsFunc(strings.Fields(cmdline.Value), func(word string) bool { return word == "iommu=pt" || word == "iommu.passthrough=1" })
	switch {
	case m.Default.Value == "Passthrough", passed:
		if m.Default.Value == "Passthrough" {
			return "identity", ev(m.Default)
		}
		return "identity", ev(cmdline)
	case m.Default.Value == "Translated":
		return "Translated", ev(m.Default)
	}
	return "", Evidence{}
}

// noPeers says why redirected or translated traffic between cards harms nobody here; "" when it may.
func noPeers(s Subject) string {
	switch {
	case peerCount(s) == 1:
		return "one card has no peer"
	case nvlinkAll(s):
		return "the cards talk over NVLink, past the IOMMU and the bridges"
	case driverDisables(s) && !claimsP2P(s):
		return fmt.Sprintf("%s has no P2P over PCIe that it could slow", firstOf(modelOf(s), "this card"))
	}
	return ""
}

// claimsP2P: the driver says OK for some pair, as a patched one does.
func claimsP2P(s Subject) bool {
	codes, _ := p2pCodes(s)
	return codes["OK"] > 0
}
