package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// pcie.acs: do the bridges above the cards send what cards say to each other on a detour?
//
//	one card, or nothing but NVLink between them                    skip
//	a port above a card redirects (ReqRedir, CmpltRedir, UpFwd)     warn
//	the same, on cards without P2P over PCIe                        pass with a note
//	every port above the cards read, none redirects                 pass
//	ACS of a port above a card not read (no root)                   unknown
//
// Only the three redirect bits count; SrcValid and TransBlk redirect nothing, and ACSCap says what a port could do and
// not what it does. Ports that lead to no card (above NVSwitches, network cards) are left alone. Source: PCIe Base 7.7.8,
// NCCL's chapter on PCI Access Control Services.
var pcieACS = Check{ID: "pcie.acs", Title: "PCIe access control", Metal: true, Decide: decideACS}

// redirects are the bits of the ACS control word that send peer traffic up to the root complex.
var redirects = []struct {
	bit  int
	name string
}{{0x4, "ReqRedir"}, {0x8, "CmpltRedir"}, {0x10, "UpstreamFwd"}}

func decideACS(s Subject) []Finding {
	if peerCount(s) == 1 {
		return []Finding{skip(rigSubject, "one card has no peer")}
	}
	if len(s.Cards) > 0 && nvlinkAll(s) {
		return []Finding{skip(rigSubject, "the cards talk over NVLink, past the bridges")}
	}
	ports, unread := portsAbove(s)
	var out []Finding
	var names []string
	for _, p := range ports {
		if bits := redirecting(p.ACS); bits != "" {
			names = append(names, p.BDF)
			out = append(out, warn(p.BDF, "%s sends traffic between cards on a detour: %s", p.BDF, bits).saw(bits, "none").
				because(evs(p.ACS.Source, fmt.Sprintf("0x%04x", p.ACS.Value))).fix("pcie.acs/redirect", "bdf", p.BDF))
		}
	}
	switch {
	case len(out) > 0 && noPeers(s) != "":
		return []Finding{pass(rigSubject, "%s redirect, which harms nothing here", plural(len(out), "port")).saw(strings.Join(names, ", "), "").
			because(out[0].Evidence...).noting("%s", noPeers(s))}
	case len(out) > 0:
		return out
	case len(ports) == 0 || unread > 0:
		how := howToKnow[facts.KindConfig]
		if len(s.Host.PCI) == 0 {
			how = "give lspci -vvv of root, or a snapshot of the host"
		}
		return []Finding{unknown(rigSubject, "the ACS control of the ports above the cards was not read").knownBy(how)}
	}
	return []Finding{pass(rigSubject, "none of the %s above the cards redirects", plural(len(ports), "port")).because(ev(ports[0].ACS))}
}

// redirecting names the redirect bits that are set.
func redirecting(control facts.Fact[int]) string {
	var set []string
	for _, r := range redirects {
		if control.Value&r.bit != 0 {
			set = append(set, r.name)
		}
	}
	return strings.Join(set, " ")
}

// portsAbove are the root and downstream ports above the cards, each once. Unread counts those of which nobody knows
// whether they redirect: no control word, and extended space was not read either; a card whose bridges are not known
// counts as one.
func portsAbove(s Subject) (ports []facts.Device, unread int) {
	seen := map[string]bool{}
	for _, c := range s.Cards {
		if len(c.Chain) == 0 {
			unread++
		}
		for _, bdf := range c.Chain {
			d, ok := s.device(bdf)
			if seen[bdf] {
				continue
			}
			seen[bdf] = true
			switch {
			case !ok || !d.ACS.Known() && !d.Extended.Value && !d.AER.Correctable.Known():
				unread++
			case d.PortType.Value != "upstream":
				ports = append(ports, d)
			}
		}
	}
	return ports, unread
}
