package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// topology.p2p: can the cards reach each other's memory, and is that what such cards normally do?
//
//	one card                                            skip
//	copies were made: one arrived wrong, or never       fail, that pair
//	copies were made over every path that is claimed    pass: proved, whatever the driver says
//	every pair over NVLink                              pass
//	GeForce of 20-series and later, no P2P over PCIe    pass with a note (the driver disables it; NCCL uses SHM)
//	such a GeForce, but the driver says OK              warn: a patched or faulty driver; only verified copies prove it
//	other cards, OK on every pair                       pass; in a guest unknown (the mapping may be private)
//	other cards, not OK only across sockets             pass with a note; unknown without the topology
//	other cards, not OK                                 warn; fail when the profile requires P2P
//	no P2P matrix                                       unknown
//
// Trap: OK is a claim and no proof; early 4090 drivers said it and corrupted data.
var topologyP2P = Check{ID: "topology.p2p", Title: "peer to peer", Decide: decideP2P}

func decideP2P(s Subject) []Finding {
	if n := cardCount(s); n == 1 || len(s.Cards) == 1 {
		return []Finding{skip(rigSubject, "one card has no peer")}
	}
	if fs := measuredP2P(s); fs != nil {
		return fs
	}
	if nvlinkAll(s) {
		return []Finding{pass(rigSubject, "every pair of cards is joined by NVLink (%s)", s.Host.Topo[0].Level).saw(s.Host.Topo[0].Level, "").because(evs(s.Host.Topo[0].Source, s.Host.Topo[0].Level))}
	}
	codes, src := p2pCodes(s)
	if len(codes) == 0 {
		return []Finding{unknown(rigSubject, "whether the cards can reach each other is not in the input").knownBy(howToKnow[facts.KindP2P])}
	}
	evidence := evs(src, describeCodes(codes))
	ok, total := codes["OK"], 0
	for _, n := range codes {
		total += n
	}
	seen := describeCodes(codes)
	switch disabled := driverDisables(s); {
	case disabled && ok == 0 && s.Policy.RequireP2P:
		return []Finding{fail(rigSubject, "the profile requires P2P; the driver disables it on these cards").saw(seen, "OK").because(evidence).fix("topology.p2p/required")}
	case disabled && ok < total && hasNVLink(s):
		return []Finding{pass(rigSubject, "P2P over NVLink pairs only").saw(seen, "").because(evidence).noting("other pairs talk through host memory; normal for this card")}
	case disabled && ok == 0:
		return []Finding{pass(rigSubject, "no P2P over PCIe, which is normal for %s", firstOf(modelOf(s), "this card")).saw(seen, "").because(evidence).noting("NCCL goes through host memory (SHM)")}
	case disabled:
		return []Finding{warn(rigSubject, "the driver claims P2P on cards that normally have none").saw(seen, "CNS, GNS or NS").because(evidence).fix("topology.p2p/unproven")}
	case ok == total && (s.Host.Kind.Value == "vm" || s.Host.Kind.Value == "container"):
		return []Finding{unknown(rigSubject, "the driver says OK, which proves nothing in a guest").saw(seen, "").because(evidence).knownBy("run a verified copy between the cards (p2pBandwidthLatencyTest)")}
	case ok == total:
		return []Finding{pass(rigSubject, "P2P on every pair").saw(seen, "OK").because(evidence)}
	case ok > 0 && !s.Policy.RequireP2P && !sockets(s):
		return []Finding{unknown(rigSubject, "%d of %d pairs have P2P; whether the others cross sockets is not in the input", ok, total).saw(seen, "").
			because(evidence).knownBy("give nvidia-smi topo -m")}
	case ok > 0 && !s.Policy.RequireP2P && acrossOnly(s):
		return []Finding{pass(rigSubject, "P2P on every pair within a socket").saw(seen, "").because(evidence).noting("pairs across sockets talk through host memory, which is normal")}
	case s.Policy.RequireP2P:
		return []Finding{fail(rigSubject, "the profile requires P2P; %d of %d pairs have it", ok, total).saw(seen, "OK").because(evidence).fix("topology.p2p/required")}
	}
	return []Finding{warn(rigSubject, "these cards support P2P over PCIe, but %d of %d pairs have none", total-ok, total).saw(seen, "OK").because(evidence).
		noting("%s", meaning(codes)).fix("topology.p2p/required")}
}

// p2pCodes counts the codes of the read matrix, else of another, each pair in both directions.
func p2pCodes(s Subject) (codes map[string]int, source string) {
	for _, op := range []string{"r", "p", "w", "n"} {
		codes = map[string]int{}
		for _, p := range s.Host.P2P {
			// The NVLink matrix says NS on every machine without NVLink, whatever PCIe does.
			if p.Op == op && (op != "n" || p.Code == "OK") {
				codes[p.Code]++
				source = p.Source
			}
		}
		if len(codes) > 0 {
			return codes, source
		}
	}
	return nil, ""
}

// sockets says whether the input tells which pairs of cards lie on different sockets.
func sockets(s Subject) bool { return len(s.Host.Topo) > 0 || s.Host.CPU.Sockets.Value == 1 }

// acrossOnly says whether all pairs without P2P lie on different sockets.
func acrossOnly(s Subject) bool {
	level := map[[2]string]string{}
	for _, t := range s.Host.Topo {
		level[[2]string{t.A, t.B}], level[[2]string{t.B, t.A}] = t.Level, t.Level
	}
	for _, p := range s.Host.P2P {
		if p.Code != "OK" && p.Op != "n" && level[[2]string{p.A, p.B}] != "SYS" {
			return false
		}
	}
	return true
}

func describeCodes(codes map[string]int) string {
	var out []string
	for _, c := range []string{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"} {
		if codes[c] > 0 {
			out = append(out, fmt.Sprintf("%s ×%d", c, codes[c]))
		}
	}
	return strings.Join(out, ", ")
}

func meaning(codes map[string]int) string {
	words := map[string]string{
		"CNS": "CNS: the chipset is not on the driver's list, or a guest", "GNS": "GNS: the card does not support it", "TNS": "TNS: the topology does not allow it",
		"NS": "NS: not supported", "DR": "DR: disabled by a registry key", "U": "U: unknown",
	}
	for _, c := range []string{"CNS", "GNS", "TNS", "DR", "NS", "U"} {
		if codes[c] > 0 {
			return words[c]
		}
	}
	return ""
}

// driverDisables: the catalogue marks models whose P2P over PCIe the stock driver switches off.
func driverDisables(s Subject) bool {
	for _, c := range s.Cards {
		if g, ok := s.model(c); ok && g.P2P == "driver-disabled" {
			return true
		}
	}
	for _, g := range s.Cat.BySlug(s.Rig.GPU) {
		if len(s.Cards) == 0 && g.P2P == "driver-disabled" {
			return true
		}
	}
	return false
}

func modelOf(s Subject) string {
	if len(s.Cards) > 0 {
		return modelName(s.Cards[0])
	}
	for _, g := range s.Cat.BySlug(s.Rig.GPU) {
		return g.Name
	}
	return ""
}

func hasNVLink(s Subject) bool {
	for _, p := range s.Host.Topo {
		if strings.HasPrefix(p.Level, "NV") {
			return true
		}
	}
	return false
}

func nvlinkAll(s Subject) bool {
	for _, p := range s.Host.Topo {
		if !strings.HasPrefix(p.Level, "NV") {
			return false
		}
	}
	return len(s.Host.Topo) > 0
}
