package checks

import (
	"fmt"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// Bus is the bus bandwidth of a large all-reduce over so many cards, GB/s (10^9 bytes): measured on the rig, or expected of
// its links. GBs is 0 where neither can be said, and Why tells why.
type Bus struct {
	Cards    int
	GBs      float64
	Measured bool
	Why      string
}

// Joined is how the cards of a rig are joined, and what an all-reduce over them carries.
type Joined struct {
	Cards  []facts.Card // that train
	P2P    bool         // they reach each other's memory
	NVLink bool
	Bus    []Bus // by number of cards, ascending; empty for one card
}

// JoinedOf tells it of a host. What the probe measured beats what the links should give; a run that hung or came out wrong
// gives no figure, unless the same run without P2P did.
func JoinedOf(rig *inventory.Rig, host *facts.Host, policy Policy, cat *catalog.Catalog) Joined {
	s := newSubject(rig, host, policy, cat)
	n := len(s.Cards)
	out := Joined{Cards: s.Cards, P2P: p2pClaimed(s), NVLink: n > 1 && (nvlinkAll(s) || sxmCards(s))}
	if n < 2 {
		return out
	}
	measured, why := measuredBus(s)
	if measured.GBs > 0 {
		out.Bus = []Bus{measured}
		return out
	}
	if why != "" {
		out.Bus = []Bus{{Cards: n, Why: why}}
		return out
	}
	for _, k := range []int{min(n, 4), n} { // more than four share host memory's bandwidth among more rings
		if e, ok := expect(s, facts.NCCLRun{Ranks: k}, false); ok {
			out.Bus = append(out.Bus, Bus{Cards: k, GBs: e.busbw, Why: e.why})
		}
		if k == n {
			break
		}
	}
	return out
}

// measuredBus is the best whole run over all cards; why is set when an all-reduce was tried and does not work.
func measuredBus(s Subject) (best Bus, why string) {
	for _, r := range s.Host.NCCL {
		row, ok := r.Plateau()
		broken := r.Hung || r.Wedged || r.Error != "" || r.Wrong > 0
		if broken {
			why = "the all-reduce does not work on this rig: mend nccl.all-reduce first"
		}
		if broken || !ok || r.SingleRanks || r.Ranks < len(s.Cards) || row.Bytes < plateauBytes || row.BusBW <= best.GBs {
			continue
		}
		best = Bus{Cards: r.Ranks, GBs: row.BusBW, Measured: true, Why: fmt.Sprintf("measured on this rig (%s, %d cards)", r.Engine, r.Ranks)}
		if r.NoP2P {
			best.Why = fmt.Sprintf("measured on this rig without P2P (%s, %d cards)", r.Engine, r.Ranks)
		}
	}
	return best, why
}

// CatalogueBus is what n cards of a model should reach, each on a full link of its own in one socket. NVLink is counted
// where the baseboard brings it (SXM); a bridge is not known to be fitted.
func CatalogueBus(g catalog.GPU, n int) (Bus, bool) {
	if g.Form == "sxm" {
		for _, row := range nvlinkBus {
			if strings.HasPrefix(g.Slug, row.prefix) {
				return Bus{Cards: n, GBs: row.busbw, Why: "measured on such NVLink machines"}, true
			}
		}
		return Bus{}, false
	}
	rate := planShare * rawGBs(g.Gen, g.Width)
	if rate <= 0 {
		return Bus{}, false
	}
	share, path := shareP2P, "P2P"
	if g.P2P != "yes" {
		if share, path = shareSHM, "SHM"; n > 4 {
			share = shareSHMWide
		}
	}
	return Bus{Cards: n, GBs: share * rate, Why: fmt.Sprintf("%.2f × %.1f GB/s (Gen%d x%d, %s), from the catalogue", share, rate, g.Gen, g.Width, path)}, true
}

// NCCLNeeds are the variables that this rig's findings call for, with the reason of each.
func NCCLNeeds(rig *inventory.Rig, host *facts.Host, findings []Finding, policy Policy, cat *catalog.Catalog) [][3]string {
	s := newSubject(rig, host, policy, cat)
	var out [][3]string
	broken, without, throughHost := false, false, false
	for _, f := range findings {
		broken = broken || f.Verdict == Fail && f.Remedy == "topology.p2p/corrupt"
	}
	for _, r := range s.Host.NCCL {
		if _, ok := r.Plateau(); r.NoP2P && ok && !r.Hung && r.Error == "" && r.Wrong <= 0 {
			without = true
		}
		throughHost = throughHost || r.Transport == "SHM" && !r.NoP2P && r.Error == "" && !r.Hung
	}
	for _, r := range s.Host.NCCL {
		broken = broken || without && !r.NoP2P && (r.Hung || r.Error != "" || r.Wrong > 0)
	}
	switch {
	case broken:
		out = append(out, [3]string{"NCCL_P2P_DISABLE", "1", "P2P is the broken path on this rig; without it the all-reduce goes through host memory"})
	case p2pClaimed(s) && throughHost && len(s.Cards) > 2:
		out = append(out, [3]string{"NCCL_P2P_LEVEL", "SYS", "the cards reach each other, and NCCL went through host memory: from 2.23 on it takes P2P across bridges only when told to"})
	}
	return out
}
