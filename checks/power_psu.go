package checks

import (
	"fmt"
	"math"

	"preflight/internal/facts"
	"preflight/inventory"
)

// power.psu: can the supplies carry everything at full draw, with a margin for load steps?
//
//	draw    = Σ card limits + processors at PL2 or PPT + platform
//	usable  = watts × (count − spare)
//	usable ÷ draw < psu_margin (1.2)        fail; the highest cap that would pass is named
//	              < 1.3                     pass with a note
//	              above                     pass
//	passes only thanks to a power cap that nothing sets at boot      warn
//	fails only on recalled figures for cards or processors           warn
//	a supply's card is gone, or a card has no supply                 unknown
//	nothing declared, SMBIOS 39 lists supplies: enough even with half of them spare: pass; short with all: fail;
//	else unknown (how many are spare is not written anywhere)
//	no declaration and no SMBIOS 39         unknown
//
// Limits in force count, since the driver enforces them, but `nvidia-smi -pl` is lost at a reboot. ATX supplies are
// invisible to Linux. Cards of one job spike together, so nothing is discounted.
var powerPSU = Check{ID: "power.psu", Title: "power supplies", Metal: true, Decide: decidePSU}

func decidePSU(s Subject) []Finding {
	cards, ok := cardDraw(s, s.Cards, false)
	if !ok {
		return []Finding{unknown(rigSubject, "the power limits of the cards are not known").knownBy("give nvidia-smi -q -x, or a snapshot of the host")}
	}
	cpu, ok := cpuDraw(s)
	if !ok {
		if len(s.Rig.PSUs) == 0 {
			return []Finding{undeclaredPSU()}
		}
		return []Finding{unknown(rigSubject, "the power of the processor is not known").knownBy("give /proc/cpuinfo, or add the processor to the catalogue")}
	}
	base := draw{cpu, platformDraw(s)}
	if len(s.Rig.PSUs) == 0 {
		return []Finding{smbiosPSU(s, cards, base)}
	}
	if loose := unfed(s); len(loose) > 0 {
		return loose
	}
	var out []Finding
	for i, r := range rails(s) {
		out = append(out, judgeRail(s, r, base, i))
	}
	return out
}

func undeclaredPSU() Finding {
	return unknown(rigSubject, "no power supply is declared, and the board lists none").knownBy("declare psu { watts = …, count = …, spare = … } in rigs.hcl")
}

// rail is supplies that work as one, and what they feed.
type rail struct {
	name   string
	usable float64
	rating string
	cards  []facts.Card
	base   bool // feeds board and processors too
	unit   int
}

// rails parts the cards among the psu blocks. Blocks that name no cards are one pool for everything left; without
// such a pool the first block feeds the board.
func rails(s Subject) []rail {
	var out []rail
	pool := rail{name: rigSubject, base: true}
	named := map[string]bool{}
	for i, p := range s.Rig.PSUs {
		if len(p.Cards) == 0 {
			pool.usable += usable(p)
			pool.rating = joinRating(pool.rating, p)
			pool.unit = max(pool.unit, p.Watts)
			continue
		}
		r := rail{name: fmt.Sprintf("psu-%d", i+1), usable: usable(p), rating: joinRating("", p), unit: p.Watts}
		for _, c := range s.Cards {
			for _, want := range p.Cards {
				if matchesCard(want, c) {
					r.cards = append(r.cards, c)
					named[c.BDF] = true
				}
			}
		}
		out = append(out, r)
	}
	if pool.usable == 0 {
		if len(out) > 0 {
			out[0].base = true
		}
		return out
	}
	for _, c := range s.Cards {
		if !named[c.BDF] {
			pool.cards = append(pool.cards, c)
		}
	}
	return append([]rail{pool}, out...)
}

// unfed are the places where the declared wiring and the cards do not meet: a supply for a card that is not there, and
// a card that no supply feeds. Either makes a sum that leaves somebody's watts out.
func unfed(s Subject) []Finding {
	fed, pool := map[string]bool{}, false
	var out []Finding
	for i, p := range s.Rig.PSUs {
		pool = pool || len(p.Cards) == 0
		for _, want := range p.Cards {
			c, ok := cardOf(s, want)
			fed[c.BDF] = ok
			if !ok {
				out = append(out, unknown(fmt.Sprintf("psu-%d", i+1), "no card at %s: bus numbers moved, or the card is missing", want).saw("absent", want).
					knownBy("`preflight init --refresh` rewrites the map"))
			}
		}
	}
	for _, c := range s.Cards {
		if !pool && !fed[c.BDF] {
			out = append(out, unknown(c.BDF, "none of the declared supplies feeds %s", c.BDF).knownBy("name it in `cards` of a psu block, or declare a psu block without `cards` for the rest"))
		}
	}
	return out
}

func usable(p inventory.PSU) float64 { return float64(p.Watts * (max(p.Count, 1) - p.Spare)) }

func joinRating(before string, p inventory.PSU) string {
	r := fmt.Sprintf("%d W × %d", p.Watts, max(p.Count, 1)-p.Spare)
	if before != "" {
		r = before + " + " + r
	}
	return r
}

func judgeRail(s Subject, r rail, base draw, index int) Finding {
	now, _ := cardDraw(s, r.cards, false)
	boot, _ := cardDraw(s, r.cards, true)
	all := now
	if r.base {
		all = append(append(draw{}, now...), base...)
	}
	if index == 0 {
		all = append(all, missingDraw(s, now)...)
		boot = append(boot, missingDraw(s, boot)...)
	}
	rest := all.total() - now.total()
	ratio := r.usable / all.total()
	text := fmt.Sprintf("%.0f W ÷ %.0f W = %.2f", r.usable, all.total(), ratio)
	f := Finding{Subject: r.name, Observed: fmt.Sprintf("%.2f", ratio), Expected: fmt.Sprintf("≥ %.2f", s.Policy.PSUMargin)}.
		because(evs("rigs.hcl:psu", r.rating)).because(all.evidence()...).noting("%s", shortWords(now, all))
	n := max(len(r.cards), 1)
	limit := math.Floor((r.usable/s.Policy.PSUMargin - rest) / float64(n))
	switch bootRatio := r.usable / (boot.total() + all.total() - now.total()); {
	case ratio < s.Policy.PSUMargin:
		f.Verdict, f.Summary = Fail, fmt.Sprintf("%s, below %.2g", text, s.Policy.PSUMargin)
		if all.recalled() {
			f.Verdict = Warn
			f = f.noting("the draw rests on recalled figures")
		}
		f = f.noting("%s", capWords(r.cards, limit))
		return f.fix("power.psu/short", "usable", fmt.Sprintf("%.0f W", r.usable), "draw", fmt.Sprintf("%.0f W", all.total()), "cap", capText(r.cards, limit), "cap_watts", capText(r.cards, limit))
	case bootRatio < s.Policy.PSUMargin && !capPermanent(s):
		f.Verdict, f.Summary = Warn, fmt.Sprintf("%s only thanks to a power cap that nothing sets at boot", text)
		return f.noting("without the cap %.2f", bootRatio).fix("power.psu/cap-not-permanent", "cap", fmt.Sprintf("%.0f", now[0].watts))
	case lowMains(s, r):
		f.Verdict, f.Summary = Unknown, fmt.Sprintf("%s at the supplies' rating, which units of %d W do not reach at %g V", text, r.unit, s.Rig.Mains.Volts)
		return f.knownBy("declare the watts that the supply delivers at this voltage")
	case ratio < s.Policy.PSUNote:
		f.Verdict, f.Summary = Pass, text
		return f.noting("below %.2g: little is left for load steps", s.Policy.PSUNote)
	}
	f.Verdict, f.Summary = Pass, text
	return f
}

// lowMains: big server supplies deliver only part of their rating (1000 to 1200 W of 2000) at 100 to 127 V.
func lowMains(s Subject, r rail) bool {
	return s.Rig.Mains != nil && s.Rig.Mains.Volts > 0 && s.Rig.Mains.Volts <= 127 && r.unit > 1600
}

func capPermanent(s Subject) bool { return len(s.Host.CapUnits.Value) > 0 }

// shortWords is the sum with equal cards written as one term.
func shortWords(cards, all draw) string {
	if len(cards) == 0 {
		return all.words()
	}
	for _, c := range cards {
		if c.watts != cards[0].watts {
			return all.words()
		}
	}
	short := append(draw{{what: fmt.Sprintf("%d cards × %.0f W =", len(cards), cards[0].watts), watts: cards.total()}}, all[len(cards):]...)
	return short.words()
}

// capText is the highest cap that would pass and that the cards accept, or "" when there is none.
func capText(cards []facts.Card, limit float64) string {
	for _, c := range cards {
		if lowest, ok := c.PowerMin.Get(); ok && limit < lowest {
			return ""
		}
	}
	if limit <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", limit)
}

func capWords(cards []facts.Card, limit float64) string {
	if capText(cards, limit) == "" {
		return "no power cap that the cards accept would pass"
	}
	return fmt.Sprintf("cards capped at %.0f W would pass", limit)
}

// smbiosPSU judges what the board itself lists.
func smbiosPSU(s Subject, cards, base draw) Finding {
	var sum float64
	var evidence []Evidence
	n := 0
	for _, p := range s.Host.PSUs {
		if p.Present {
			sum += float64(p.Watts)
			n++
			evidence = append(evidence, evs(p.Source, fmt.Sprintf("%s %d W", p.Name, p.Watts)))
		}
	}
	if n == 0 {
		return undeclaredPSU()
	}
	all := append(append(draw{}, cards...), base...)
	all = append(all, missingDraw(s, cards)...)
	most, least := sum/all.total(), sum*float64((n+1)/2)/float64(n)/all.total()
	f := Finding{Subject: rigSubject, Observed: fmt.Sprintf("%.2f", most), Expected: fmt.Sprintf("≥ %.2f", s.Policy.PSUMargin)}.because(evidence...).because(all.evidence()...).noting("%s", shortWords(cards, all))
	switch {
	case most < s.Policy.PSUMargin:
		f.Verdict, f.Summary = Fail, fmt.Sprintf("%.0f W ÷ %.0f W = %.2f with every supply in use, below %.2g", sum, all.total(), most, s.Policy.PSUMargin)
		if all.recalled() {
			f.Verdict = Warn
			f = f.noting("the draw rests on recalled figures")
		}
		return f.fix("power.psu/short", "usable", fmt.Sprintf("%.0f W", sum), "draw", fmt.Sprintf("%.0f W", all.total()), "cap", "", "cap_watts", "")
	case n > 1 && least < s.Policy.PSUMargin:
		f.Verdict, f.Summary = Unknown, fmt.Sprintf("%d supplies, %.0f W in all; how many of them are spare is not known", n, sum)
		return f.knownBy("declare psu { watts = …, count = …, spare = … } in rigs.hcl")
	}
	f.Verdict, f.Summary = Pass, fmt.Sprintf("%.0f W ÷ %.0f W = %.2f, enough with half of the supplies", sum, all.total(), most)
	if n == 1 {
		f.Summary = fmt.Sprintf("%.0f W ÷ %.0f W = %.2f", sum, all.total(), most)
	}
	return f
}
