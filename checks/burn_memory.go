package checks

import (
	"fmt"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// burn-in.memory: do the cards keep what is written, and compute the same each time, under load?
//
//	words that came back other than they were written     fail: how many, the first address, the bits
//	results that differ from those of the same kernel     fail
//	uncorrected ECC errors that came under load           fail
//	an Xid under load, other than 79                      as severe as the catalogue has it
//	nothing was compared on a card                        unknown
//	it did not last                                       unknown
//	none of these                                         pass: what was compared, how often
//
// The pattern of each pass has another seed, every second one is inverted, so that each bit is held in both states. Wrong data
// of both kinds point at the card, its memory, or its power. Source: the helper's kernels, nvidia-smi, the kernel's log.
var burnMemory = Check{ID: "burn-in.memory", Title: "data under load", Decide: decideBurnMemory}

func decideBurnMemory(s Subject) []Finding {
	if f, none := unburnt(s); none {
		return []Finding{f}
	}
	b := s.Host.BurnIn
	var out []Finding
	least, passes := 0.0, int64(-1)
	for _, c := range b.Cards {
		if _, here := cardOf(s, c.BDF); !here && len(s.Host.Cards) > 0 {
			continue // the file of another rig
		}
		if f, bad := wrongBits(b, c); bad {
			out = append(out, f)
		}
		if passes < 0 || c.Passes < passes {
			passes, least = c.Passes, float64(c.Bytes)/(1<<30)
		}
	}
	out = append(out, eccUnderLoad(s, b)...)
	out = append(out, xidsUnderLoad(s, b)...)
	if f, cut := cutShort(b); cut {
		return orWhole(out, f)
	}
	if passes <= 0 {
		return orWhole(out, unknown(rigSubject, "nothing was compared on some card").because(evs(b.Source, b.Ended)).knownBy("run it longer"))
	}
	return orWhole(out, pass(rigSubject, "%.1f GiB of each card kept what was written, %d times over; every result was the same", least, passes).
		saw("0 wrong", "0 wrong").because(evs(b.Source, fmt.Sprintf("%s of load", loadTime(b)))))
}

// wrongBits judges what one card's kernels found.
func wrongBits(b *facts.BurnIn, c facts.BurnInCard) (Finding, bool) {
	switch {
	case c.Wrong > 0:
		return fail(c.BDF, "%s: %d words of memory came back wrong, the first at byte 0x%x, bits 0x%08x", c.BDF, c.Wrong, c.First, c.Bits).saw(fmt.Sprintf("%d wrong", c.Wrong), "0 wrong").
			because(evs(b.Source, fmt.Sprintf("%d passes over %.1f GiB", c.Passes, float64(c.Bytes)/(1<<30)))).fix("burn-in.memory/wrong-bits", "bdf", c.BDF), true
	case c.Different > 0:
		return fail(c.BDF, "%s: %d results differ from those of the same kernel before", c.BDF, c.Different).saw(fmt.Sprintf("%d differ", c.Different), "0 differ").
			because(evs(b.Source, fmt.Sprintf("%d kernels (%s)", c.Rounds, c.Kernel))).fix("burn-in.memory/wrong-bits", "bdf", c.BDF), true
	case c.Key == "ecc":
		return fail(c.BDF, "%s: an ECC error ended the load: %s", c.BDF, c.Error).saw("uncorrected ECC error", "none").because(evs(b.Source, c.Error)).fix("burn-in.memory/ecc", "bdf", c.BDF), true
	}
	return Finding{}, false
}

// eccUnderLoad are the cards whose counter of uncorrected errors rose.
func eccUnderLoad(s Subject, b *facts.BurnIn) []Finding {
	var out []Finding
	for _, t := range burnTracks(s, b) {
		first, last, known := 0.0, 0.0, false
		for _, v := range t.values {
			if n, ok := v.Get(sample.ECC); ok {
				if !known {
					first = n
				}
				last, known = n, true
			}
		}
		if known && last > first {
			out = append(out, fail(t.bdf, "%s: %.0f uncorrected ECC errors came under load", t.bdf, last-first).saw(fmt.Sprintf("%.0f", last-first), "0").
				because(evs(b.Source, fmt.Sprintf("%.0f, later %.0f", first, last))).fix("burn-in.memory/ecc", "bdf", t.bdf))
		}
	}
	return out
}

// xidsUnderLoad are the kernel's own words about cards, each number of a card once.
func xidsUnderLoad(s Subject, b *facts.BurnIn) []Finding {
	if b.Series == nil {
		return nil
	}
	var out []Finding
	said := map[string]bool{}
	for _, e := range b.Series.Events {
		key := fmt.Sprintf("%s %d", e.BDF, e.Xid)
		if e.Kind != "xid" || e.Xid == 79 || said[key] { // 79 is burn-in.power's
			continue
		}
		said[key] = true
		x, _ := s.Cat.Xid(e.Xid)
		if x.Severity == "info" || x.Echoes(0) { // says nothing, or only that something else ended the program
			continue
		}
		v := Warn
		if x.Severity == "fail" {
			v = Fail
		}
		f := finding(v, firstOf(e.BDF, rigSubject), "Xid %d on %s under load", e.Xid, firstOf(e.BDF, "a card")).saw(fmt.Sprintf("Xid %d", e.Xid), "none").
			because(evs(b.Source, e.Text)).fix("burn-in.memory/xid", "bdf", firstOf(e.BDF, "the card"), "xid", fmt.Sprint(e.Xid))
		if x.Name != "" {
			f = f.noting("%s", x.Name)
		}
		out = append(out, f)
	}
	return out
}
