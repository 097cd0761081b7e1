package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// link.bandwidth: does each card copy to and from the host at the rate of its link as it runs?
//
//	plan: 0.80 of the raw rate of the narrowest link to the host: generation and width as seen under load (else as
//	reachable)
//	slower direction of the best of several copies, the card alone:
//	  ≥ 0.75 of the plan                    pass
//	  0.50–0.75                             warn: the host holds it back (memory, NUMA, IOMMU), or the link errs
//	  less                                  fail
//	right for its link, but 20 % under the best of equal cards on equal links     warn
//	the link's own generation and width are pcie.speed's and pcie.width's matter, and not judged again
//	all cards at once under 0.75 of what each had alone, no shared uplink         warn: the host's memory is the limit
//	nothing measured                        unknown
//
// Source: copies of pinned memory by the copy engines, 64 MiB each; the share of 0.75 is the line between a link that
// errs or waits and the spread of healthy ones (25.5–26 of 25.2 GB/s planned at Gen4 x16, 12–13 of 12.6 at Gen3 x16).
var linkBandwidth = Check{ID: "link.bandwidth", Title: "host-to-card bandwidth", Metal: true, Decide: decideLinkBandwidth}

const (
	linkPass  = 0.75 // of the plan
	linkWarn  = 0.50
	linkPeers = 0.80 // of the best of equal cards
	linkCrowd = 0.75 // of a card alone, when all copy
)

func decideLinkBandwidth(s Subject) []Finding {
	if len(s.Host.Rates) == 0 {
		return []Finding{unmeasured(s)}
	}
	var out []Finding
	best := bestAlone(s)
	for _, c := range s.Cards {
		out = append(out, cardBandwidth(s, c, best))
	}
	if len(out) == 0 {
		return []Finding{unknown(rigSubject, "no card of the rig was measured").knownBy("measure the host: preflight probe links")}
	}
	for _, f := range out {
		if f.Verdict != Pass || f.Note != "" {
			return out
		}
	}
	one := out[0]
	if len(out) > 1 {
		one.Subject, one.Summary = rigSubject, fmt.Sprintf("all %d cards copy at the rate of their links, the slowest at %.1f GB/s", len(out), slowestAlone(s))
	}
	return []Finding{one}
}

// unmeasured says why there are no figures: the helper did not run, and why not.
func unmeasured(s Subject) Finding {
	h := s.Host.Helper
	if f, ok := hindered(h.Key.Value, ev(h.Reason), ev(h.Phase)); ok {
		return f
	}
	switch {
	case h.Key.Value == "hang" || h.Key.Value == "wedged":
		return unknown(rigSubject, "the driver does not come back from %s", firstOf(phaseWords[h.Phase.Value], h.Phase.Value)).because(ev(h.Reason), ev(h.Phase)).
			knownBy("read what the driver says (dmesg | grep -E 'NVRM|Xid'), reboot, and run the check again")
	case h.Reason.Known() && h.Ended.Value != "never":
		return unknown(rigSubject, "the helper could not measure: %s", h.Reason.Value).because(ev(h.Reason), ev(h.Phase)).knownBy("mend what it says, and run the check again")
	case h.Reason.Known():
		return unknown(rigSubject, "the helper did not run: %s", h.Reason.Value).because(ev(h.Reason)).knownBy("mend what it says, and run the check again")
	}
	for _, run := range s.Host.NCCL {
		if run.Missing != "" && strings.HasPrefix(run.Missing, "the driver ") {
			return unknown(rigSubject, "%s", run.Missing).because(evs(run.Source, run.Missing)).knownBy("mend driver.loaded first")
		}
		if run.Busy != "" {
			return unknown(rigSubject, "the cards are busy: %s", run.Busy).because(evs(run.Source, run.Busy)).knownBy("run again when they are idle, or with --force")
		}
	}
	return unknown(rigSubject, "no copy between host and cards was measured").knownBy("measure the host: preflight probe links")
}

// alone is the slower direction of a card that copied by itself: its largest copies, best of several. 0: not measured.
func alone(s Subject, bdf string) (rate float64, from facts.CardRate) {
	for _, r := range s.Host.Rates {
		if r.BDF != bdf || r.Cards != 1 || r.Direction == "both" || r.Bytes < from.Bytes {
			continue
		}
		if r.Bytes > from.Bytes || r.Best < rate {
			rate, from = r.Best, r
		}
	}
	return rate, from
}

// together is the slower direction of a card while all copied.
func together(s Subject, bdf string) float64 {
	rate := 0.0
	for _, r := range s.Host.Rates {
		if r.BDF == bdf && r.Cards > 1 && r.Direction != "both" && (rate == 0 || r.Best < rate) {
			rate = r.Best
		}
	}
	return rate
}

func bestAlone(s Subject) float64 {
	best := 0.0
	for _, c := range s.Cards {
		if r, _ := alone(s, c.BDF); r > best {
			best = r
		}
	}
	return best
}

func slowestAlone(s Subject) float64 {
	least := 0.0
	for _, c := range s.Cards {
		if r, _ := alone(s, c.BDF); r > 0 && (least == 0 || r < least) {
			least = r
		}
	}
	return least
}

func cardBandwidth(s Subject, c facts.Card, best float64) Finding {
	rate, from := alone(s, c.BDF)
	if rate == 0 {
		return unknown(c.BDF, "%s was not measured", c.BDF).knownBy("run the check again")
	}
	seen := fmt.Sprintf("%.1f GB/s", rate)
	evidence := evs(from.Source, fmt.Sprintf("%s %.2f GB/s at %d bytes", from.Direction, from.Best, from.Bytes))
	raw, link := pathNow(s, c)
	if raw == 0 {
		return unknown(c.BDF, "%s copies at %.1f GB/s; what its link allows is not known", c.BDF, rate).saw(seen, "").because(evidence).knownBy("give a snapshot of the host")
	}
	plan := planShare * raw
	expected := fmt.Sprintf("≥ %.1f GB/s", linkPass*plan)
	slow := func(v Verdict) Finding {
		if c.Processes.Value > 0 {
			return unknown(c.BDF, "%s copies at %.1f GB/s, with other processes at work on it", c.BDF, rate).saw(seen, expected).because(evidence, ev(c.Processes)).
				knownBy("run again when the cards are idle")
		}
		return finding(v, c.BDF, "%s copies at %.1f GB/s, %s should give %.1f", c.BDF, rate, link, plan).saw(seen, expected).because(evidence).
			fix("link.bandwidth/slow", "bdf", c.BDF, "rate", seen, "expected", fmt.Sprintf("%.1f GB/s", plan), "link", link)
	}
	switch {
	case rate < linkWarn*plan:
		return slow(Fail)
	case rate < linkPass*plan:
		return slow(Warn)
	case rate < linkPeers*best && equalPaths(s, raw):
		return warn(c.BDF, "%s copies at %.1f GB/s, an equal card at %.1f", c.BDF, rate, best).saw(seen, fmt.Sprintf("≥ %.1f GB/s", linkPeers*best)).because(evidence).
			fix("link.bandwidth/slow", "bdf", c.BDF, "rate", seen, "expected", fmt.Sprintf("%.1f GB/s", best), "link", link)
	}
	f := pass(c.BDF, "%s copies at %.1f GB/s over %s", c.BDF, rate, link).saw(seen, expected).because(evidence)
	all := together(s, c.BDF)
	if all > 0 && all < linkCrowd*rate {
		if sharesUplink(s, c) {
			return f.noting("%.1f GB/s while all cards copy, over a shared uplink", all)
		}
		return warn(c.BDF, "%s copies at %.1f GB/s alone, and at %.1f while all cards copy", c.BDF, rate, all).saw(fmt.Sprintf("%.1f GB/s", all), fmt.Sprintf("≥ %.1f GB/s", linkCrowd*rate)).
			because(evidence).fix("link.bandwidth/crowded", "bdf", c.BDF, "rate", fmt.Sprintf("%.1f GB/s", all), "expected", seen)
	}
	return f
}

// pathNow is the raw rate of the narrowest link between a card and the host, GB/s, and that link in words: an uplink
// below the card's own is pcie.uplink's matter, and no fault of the card. 0 when the card's own link is not known.
func pathNow(s Subject, c facts.Card) (raw float64, link string) {
	gen, lanes := linkNow(s, c)
	raw, link = rawGBs(gen, lanes), fmt.Sprintf("Gen%d x%d", gen, lanes)
	hs := s.hops(c)
	for _, h := range hs[:len(hs)-1] {
		sp, w := h.capSpeed(), h.width(s) // a speed below that is nobody else's matter, and shows as slow copies
		if up := rawGBs(generation(sp.Value), w.Value); up > 0 && up < raw {
			raw, link = up, fmt.Sprintf("Gen%d x%d", generation(sp.Value), w.Value)
		}
	}
	return raw, link
}

// equalPaths says whether every card reaches the host at the same rate: only then are their copies comparable.
func equalPaths(s Subject, raw float64) bool {
	for _, c := range s.Cards {
		if r, _ := pathNow(s, c); r != raw {
			return false
		}
	}
	return true
}

// sharesUplink says whether another card hangs below the same root port.
func sharesUplink(s Subject, c facts.Card) bool {
	for _, other := range s.Cards {
		if other.BDF != c.BDF && firstLink(c) != "" && firstLink(other) == firstLink(c) {
			return true
		}
	}
	return false
}
