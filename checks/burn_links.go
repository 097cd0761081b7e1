package checks

import (
	"fmt"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// lessUnderLoad says whether a card's link lost lanes or generations while the card was at work: the most that it had shown
// under load, and what it fell to, in two samples running at least. The first seconds do not count: links wake up.
func lessUnderLoad(s Subject, c facts.Card, m sample.Metric) (had, fell int, f facts.Fact[int], bad bool) {
	b := s.Host.BurnIn
	if b == nil || !b.Ran() {
		return 0, 0, f, false
	}
	for _, t := range burnTracks(s, b) {
		if t.bdf != c.BDF {
			continue
		}
		run := 0
		for _, v := range t.steady().values {
			n, ok := v.Get(m)
			util, known := v.Get(sample.Utilization)
			if !ok || known && util < 50 {
				continue
			}
			switch {
			case int(n) > had:
				had, run = int(n), 0
			case int(n) < had:
				if run++; run >= 2 {
					fell, bad = int(n), true
				}
			default:
				run = 0
			}
		}
	}
	return had, fell, facts.Of(fell, b.Source), bad
}

// narrowed judges a link that lost lanes under load.
func narrowed(s Subject, c facts.Card, h hop) (Finding, bool) {
	had, fell, at, bad := lessUnderLoad(s, c, sample.LinkWidth)
	if !bad {
		return Finding{}, false
	}
	return fail(c.BDF, "%s falls from x%d to x%d under load", c.BDF, had, fell).saw(lanes(fell), lanes(had)).because(ev(at)).
		noting("a fault of seat, riser or contacts that heat brings out; the hop is %s", hopName(h)).
		fix("pcie.width/slot-fault", "bdf", c.BDF, "width", lanes(fell), "expected", lanes(had), "hop", hopName(h)), true
}

// slowed judges a link that lost generations under load.
func slowed(s Subject, c facts.Card) (Finding, bool) {
	had, fell, at, bad := lessUnderLoad(s, c, sample.LinkGen)
	if !bad {
		return Finding{}, false
	}
	return fail(c.BDF, "%s falls from Gen%d to Gen%d under load", c.BDF, had, fell).saw(gen(fell), gen(had)).because(ev(at)).
		noting("%s", fmt.Sprintf("the link was at Gen%d while the card computed, and then could not hold it", had)).
		fix("pcie.speed/under-load", "bdf", c.BDF, "gen", gen(fell), "expected", gen(had)), true
}
