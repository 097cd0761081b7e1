package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// copyVerdicts is what the result of a copy from card to card means; results not listed decide nothing.
var copyVerdicts = map[string]struct {
	verdict Verdict
	text    string // of both cards' addresses
	code    string
}{
	"corrupt": {Fail, "%s → %s: the driver claims P2P, and data arrives wrong", "topology.p2p/corrupt"},
	"hang":    {Fail, "%s → %s: the driver claims P2P, and a copy never ends", "topology.p2p/corrupt"},
	"error":   {Fail, "%s → %s: the driver claims P2P, and refuses to use it", "topology.p2p/corrupt"},
	"slow":    {Warn, "%s → %s: P2P carries data, far slower than the link", "topology.p2p/slow"},
}

// measuredP2P judges copies that were made and compared; nil when none were, or when the driver claims no P2P at all,
// which the matrix explains better.
func measuredP2P(s Subject) []Finding {
	var out []Finding
	good, tried, source := 0, 0, ""
	for _, c := range s.Host.Copies {
		if c.Path != "p2p" {
			continue
		}
		if c.Result == "ok" {
			good, source = good+1, c.Source
		}
		if c.Result != "not-tried" {
			tried++
		}
		row, bad := copyVerdicts[c.Result]
		if !bad {
			continue
		}
		seen := c.Result
		if c.Wrong > 0 {
			seen = fmt.Sprintf("%d words wrong at %d bytes", c.Wrong, c.Bytes)
		}
		out = append(out, finding(row.verdict, c.From+"+"+c.To, row.text, c.From, c.To).saw(seen, "every byte").
			because(evs(c.Source, copyWords(c))).fix(row.code, "a", c.From, "b", c.To))
	}
	switch {
	case len(out) > 0:
		return out
	case good == 0:
		return nil
	}
	if all := len(s.Cards) * (len(s.Cards) - 1); tried < all { // the copies were broken off, or not every card was visible
		return []Finding{unknown(rigSubject, "P2P was tried on %d of %d paths", tried, all).because(evs(source, fmt.Sprintf("%d copies compared", good))).knownBy("run the check again")}
	}
	f := pass(rigSubject, "P2P carries data on all %d paths that the driver claims, every byte compared", good).saw("proved", "").because(evs(source, fmt.Sprintf("%d copies compared", good)))
	if driverDisables(s) && !nvlinkAll(s) && !hasNVLink(s) {
		f = f.noting("NVIDIA's own driver has no P2P on %s: this is a patched one", firstOf(modelOf(s), "this card"))
	}
	if s.Policy.RequireP2P && good < len(s.Cards)*(len(s.Cards)-1) {
		return []Finding{fail(rigSubject, "the profile requires P2P; %d of %d paths have it", good, len(s.Cards)*(len(s.Cards)-1)).saw(fmt.Sprint(good), "all").
			because(evs(source, fmt.Sprintf("%d copies compared", good))).fix("topology.p2p/required")}
	}
	return []Finding{f}
}

func copyWords(c facts.PeerCopy) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s → %s: %s %.1f GB/s", c.Path, c.From, c.To, c.Result, c.Best))
}
