package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// expectation is the bus bandwidth (GB/s) of a large all-reduce that a rig should reach, and why.
type expectation struct {
	busbw float64
	why   string
	path  string // P2P, SHM, NVLink, NET
}

// nvlinkBus is the measured bus bandwidth of all-reduce over NVLink by family of card, GB/s: GA102 pairs 47 (A40),
// A100 SXM 219–238, A100 PCIe bridge 208, H100 SXM 466–471 with NVLink SHARP, H100 PCIe bridge 115, H200 475.
var nvlinkBus = []struct {
	prefix string
	busbw  float64
}{
	{"a100-40gb-pcie", 208},
	{"a100-80gb-pcie", 208},
	{"a800-80gb-pcie", 208},
	{"a100", 230},
	{"a800", 150},
	{"h100-80gb-pcie", 115},
	{"h100-nvl", 115},
	{"h800-80gb-pcie", 115},
	{"h200-nvl", 115},
	{"h200", 460},
	{"h100", 460},
	{"h800", 200},
	{"rtx-3090", 47},
	{"rtx-a6000", 47},
	{"a40", 47},
	{"rtx-a5000", 47},
	{"rtx-2080-ti", 35},
	{"titan-rtx", 35},
	{"v100", 130},
}

// Shares of the link's data rate that a ring keeps, fitted to published runs: SHM moves each byte through host
// memory twice, P2P once.
const (
	shareSHM       = 0.60
	shareSHMWide   = 0.55 // more than four cards, or a ring across sockets
	shareP2P       = 0.90
	shareP2PSocket = 0.75
)

// expect computes what the links allow. With ideal, links are taken as cards and slots could run at their best.
func expect(s Subject, run facts.NCCLRun, ideal bool) (expectation, bool) {
	n := run.Ranks
	path := transportOf(s, run)
	if path == "NVLink" {
		slug := s.Rig.GPU
		if len(s.Cards) > 0 {
			slug = s.Cards[0].Slug.Value
		}
		for _, row := range nvlinkBus {
			if strings.HasPrefix(slug, row.prefix) {
				return expectation{row.busbw, "measured on such NVLink machines", path}, true
			}
		}
		return expectation{}, false
	}
	rate, what, ok := slowestLink(s, path, ideal)
	if !ok || path == "NET" {
		return expectation{}, false
	}
	share := shareSHM
	switch wide := n > 4 || crossesSockets(s); {
	case path == "P2P" && crossesSockets(s):
		share = shareP2PSocket
	case path == "P2P":
		share = shareP2P
	case wide:
		share = shareSHMWide
	}
	return expectation{share * rate, fmt.Sprintf("%.2f × %.1f GB/s (%s, %s)", share, rate, what, path), path}, true
}

// transportOf is the path of the slowest edge: as NCCL logged it, else as the cards allow.
func transportOf(s Subject, run facts.NCCLRun) string {
	nv := nvlinkAll(s) || sxmCards(s)
	switch {
	case run.Transport == "P2P" && (nv || (run.Ranks == 2 && bridgedPair(s, run))):
		return "NVLink"
	case run.Transport != "":
		return run.Transport
	case nv:
		return "NVLink"
	case driverDisables(s) && !p2pClaimed(s):
		return "SHM"
	case p2pClaimed(s):
		return "P2P"
	}
	return "SHM"
}

// bridgedPair: two cards of a model that can carry an NVLink bridge, talking P2P faster than their PCIe link could.
func bridgedPair(s Subject, run facts.NCCLRun) bool {
	slug := s.Rig.GPU
	if len(s.Cards) > 0 {
		slug = s.Cards[0].Slug.Value
	}
	for _, g := range s.Cat.BySlug(slug) {
		if row, ok := run.Plateau(); ok && g.NVLink == "bridge" && row.BusBW > rawGBs(g.Gen, g.Width) {
			return true
		}
	}
	return false
}

func sxmCards(s Subject) bool {
	slug := s.Rig.GPU
	if len(s.Cards) > 0 {
		slug = s.Cards[0].Slug.Value
	}
	for _, g := range s.Cat.BySlug(slug) {
		return g.Form == "sxm"
	}
	return false
}

func p2pClaimed(s Subject) bool {
	codes, _ := p2pCodes(s)
	return codes["OK"] > 0
}

// slowestLink is the data rate (GB/s, one direction) of the slowest card: its own link, and its share of an uplink
// that all cards cross when they go through host memory.
func slowestLink(s Subject, path string, ideal bool) (rate float64, what string, ok bool) {
	sharers := map[string]int{}
	for _, c := range s.Cards {
		if len(c.Chain) >= 3 {
			sharers[c.Chain[0]]++
		}
	}
	for _, c := range s.Cards {
		g, w := linkNow(s, c)
		if ideal {
			g, w = linkBest(s, c)
		}
		if g == 0 || w == 0 {
			return 0, "", false
		}
		r, name := planShare*rawGBs(g, w), fmt.Sprintf("Gen%d x%d", g, w)
		if m := together(s, c.BDF); m > 0 && !ideal { // what was measured beats what was computed
			r, name = min(m, r), "measured while all cards copy"
		}
		if n := sharers[firstLink(c)]; n > 1 && path == "SHM" {
			hs := s.hops(c)
			if up := planShare * linkGBs(s, hs[0]) / float64(n); up > 0 && up < r {
				r, name = up, fmt.Sprintf("%d cards on one uplink", n)
			}
		}
		if rate == 0 || r < rate {
			rate, what = r, name
		}
	}
	return rate, what, rate > 0
}

func firstLink(c facts.Card) string {
	if len(c.Chain) == 0 {
		return ""
	}
	return c.Chain[0]
}

// linkNow is a card's link as it runs under load, else as it could: idle generations mean nothing.
func linkNow(s Subject, c facts.Card) (generation, lanes int) {
	hs := s.hops(c)
	w := cardWidth(s, c, hs[len(hs)-1])
	if loaded, at := loadedGen(s, c); loaded {
		return at.Value, w.Value
	}
	return reachableGen(s, c).Value, w.Value
}

// linkBest is what the card could do in a better slot: its own generation and width. A narrower link that pcie.width
// passes (allow_x8, or Gen5 x8) is accepted here too, or a warning would have no cause.
func linkBest(s Subject, c facts.Card) (generation, lanes int) {
	hs := s.hops(c)
	last := hs[len(hs)-1]
	if linkWidth(s, c, last).Verdict == Pass {
		return ownGen(s, c).Value, cardWidth(s, c, last).Value
	}
	return ownGen(s, c).Value, ownWidth(s, c).Value
}

// crossesSockets says whether the cards hang on more than one socket. The socket of each card decides; NUMA nodes and
// the driver's SYS are asked only where it is not known, since one socket can show several nodes.
func crossesSockets(s Subject) bool {
	if s.Host.CPU.Sockets.Or(1) < 2 {
		return false
	}
	sockets, nodes := map[int]bool{}, map[int]bool{}
	for _, c := range s.Cards {
		if n, ok := c.Socket.Get(); ok {
			sockets[n] = true
		}
		if n, ok := c.NUMA.Get(); ok && n >= 0 {
			nodes[n] = true
		}
	}
	if len(sockets) > 0 {
		return len(sockets) > 1
	}
	for _, p := range s.Host.Topo {
		if p.Level == "SYS" {
			return true
		}
	}
	return len(nodes) > 1
}
