package checks

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// pcie.uplink: how much of its own link does a card keep when all cards talk at once?
//
//	every card directly below a CPU root port            pass
//	below the chipset                                    fail: a link shared with disks and network
//	below Thunderbolt or USB4                            warn
//	several cards below one uplink, oversubscription:
//	  up to 1 : 1                                        pass
//	  up to 4 : 1                                        warn (usual for 8-card switch boards)
//	  more, or 4 and more cards on less than Gen3 x16    fail
//
// Oversubscription is the sum of the cards' link rates over the uplink's rate; widths as they run, generations as
// they could run. Traps: nvidia-smi shows only the card's own link; a chipset is itself a switch. Source: the
// resolved sysfs path, bridge ids of the catalogue.
var pcieUplink = Check{ID: "pcie.uplink", Title: "shared uplinks", Metal: true, Needs: []facts.Kind{facts.KindPCI}, Decide: decideUplink}

// uplinkWarnRatio and uplinkFloorGBs are policy: what a switch board may share, and the least uplink for four cards
// (Gen3 x16, raw).
const (
	uplinkWarnRatio = 4.0
	uplinkFloorGBs  = 15.7
)

func decideUplink(s Subject) []Finding {
	var out []Finding
	groups := map[string][]facts.Card{}
	chained := 0
	for _, c := range s.Cards {
		if len(c.Chain) == 0 {
			out = append(out, unknown(c.BDF, "%s: the bridges above it are not known", c.BDF).knownBy("give a snapshot of the host, or lspci -tv"))
			continue
		}
		chained++
		switch {
		case external(s, c):
			out = append(out, warn(c.BDF, "%s hangs on Thunderbolt or USB4", c.BDF).saw("external", "a CPU root port").fix("pcie.uplink/external", "bdf", c.BDF))
		case chipsetPort(s, c) != "":
			port := chipsetPort(s, c)
			out = append(out, fail(c.BDF, "%s hangs on the chipset, not on the CPU", c.BDF).saw("chipset port "+port, "a CPU root port").
				because(evs("pci:"+port, s.portName(port))).fix("pcie.uplink/chipset", "bdf", c.BDF, "port", port))
		case len(c.Chain) >= 3:
			groups[c.Chain[0]] = append(groups[c.Chain[0]], c)
		}
	}
	if chained == 0 {
		return []Finding{unknown(rigSubject, "the bridges above the cards are not known").knownBy("give a snapshot of the host, or lspci -tv")}
	}
	ports := make([]string, 0, len(groups))
	for p := range groups {
		ports = append(ports, p)
	}
	sort.Strings(ports)
	for _, p := range ports {
		out = append(out, sharedUplink(s, p, groups[p]))
	}
	if len(out) == 0 {
		return []Finding{pass(rigSubject, "every card hangs directly on a CPU root port").saw("direct", "direct or a switch with enough uplink")}
	}
	return out
}

func (s Subject) portName(bdf string) string {
	d, ok := s.device(bdf)
	if !ok {
		return bdf
	}
	return firstOf(d.Label, d.Vendor+":"+d.Product)
}

// external follows the `removable` attribute of any bridge above the card.
func external(s Subject, c facts.Card) bool {
	for _, bdf := range c.Chain {
		if d, ok := s.device(bdf); ok && d.Removed {
			return true
		}
	}
	return c.Removed
}

// chipsetPort is the bridge that shows a card to sit below the chipset, or "". Intel: a root port of the PCH, by id,
// or device 1b to 1d on bus 0. AMD: the chipset's own switch ports.
func chipsetPort(s Subject, c facts.Card) string {
	for i, bdf := range c.Chain {
		d, ok := s.device(bdf)
		if !ok {
			continue
		}
		if b, known := s.Cat.Bridge(d.Vendor, d.Product); known {
			if b.Kind == "pch-root-port" || b.Kind == "chipset-port" {
				return bdf
			}
			continue
		}
		intelPCH := i == 0 && d.Vendor == "8086" && strings.HasPrefix(bdf, "0000:00:") && (strings.HasPrefix(bdf[8:], "1b") || strings.HasPrefix(bdf[8:], "1c") || strings.HasPrefix(bdf[8:], "1d"))
		if intelPCH {
			return bdf
		}
	}
	return ""
}

// sharedUplink judges the cards below one root port.
func sharedUplink(s Subject, port string, cards []facts.Card) Finding {
	hs := s.hops(cards[0])
	up := hs[0]
	upGBs := linkGBs(s, up)
	var sum float64
	for _, c := range cards {
		own := s.hops(c)
		sum += linkGBs(s, own[len(own)-1])
	}
	if upGBs == 0 || sum == 0 {
		return unknown(port, "%s below %s: the rate of the uplink is not known", plural(len(cards), "card"), port).knownBy("give a snapshot of the host")
	}
	ratio := sum / upGBs
	text := fmt.Sprintf("%s share %s at %.1f GB/s, %.1f : 1", plural(len(cards), "card"), port, upGBs, math.Round(ratio*10)/10)
	f := Finding{Subject: port, Summary: text, Observed: fmt.Sprintf("%.1f : 1", ratio), Expected: "1 : 1"}.because(evs("pci:"+port, bdfs(cards)), ev(up.width(s)), ev(up.capSpeed())).
		noting("%.1f GB/s for each card when all talk", upGBs/float64(len(cards)))
	remedy := func(f Finding) Finding {
		return f.fix("pcie.uplink/shared", "port", port, "cards", bdfs(cards))
	}
	switch {
	case ratio > uplinkWarnRatio*1.01 || (len(cards) >= 4 && upGBs < uplinkFloorGBs):
		f.Verdict = Fail
		return remedy(f)
	case ratio > 1.01:
		f.Verdict = Warn
		return remedy(f)
	}
	f.Verdict = Pass
	return f
}

// linkGBs is the raw rate of a link: lanes in use, generation that both ends can do.
func linkGBs(s Subject, h hop) float64 {
	w, sp := h.width(s), h.capSpeed()
	if !w.Known() || !sp.Known() {
		return 0
	}
	return rawGBs(generation(sp.Value), w.Value)
}
