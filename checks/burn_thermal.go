package checks

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// burn-in.thermal: do the cards keep cool, and their clocks, under load that lasts?
//
//	the load was aborted for heat                                        fail
//	a core above 85 °C (burn_hot) after the first minute                 fail
//	hardware slowdown, thermal or power brake, in more than one sample   fail
//	above 80 °C (burn_warm)                                              warn
//	clock of the end 10 % (burn_sag) below that of the fifth minute      warn
//	hottest and coolest card more than 12 K (burn_spread) apart          warn: the hottest, its slot and neighbours
//	load of less than 20 minutes, none of these                          unknown: heat soak is not proven
//	no temperatures                                                      unknown
//	none of these                                                        pass
//
// Normal: the software power cap (a card at its limit). The figures are policy; a sweep changes clocks by itself, so that
// its sag is not judged. Source: nvidia-smi, every few seconds, while all cards compute.
var burnThermal = Check{ID: "burn-in.thermal", Title: "heat under load", Decide: decideBurnThermal}

// heldBack are the reasons that mean that a card is held back by heat or by a brake, worst first.
var heldBack = []struct {
	bits  uint64
	words string
	code  string
}{
	{sample.ReasonHWThermal, "hardware thermal slowdown", "burn-in.thermal/hot"},
	{sample.ReasonSWThermal, "thermal slowdown", "burn-in.thermal/hot"},
	{sample.ReasonPowerBrake, "power brake", "burn-in.thermal/power-brake"},
	{sample.ReasonHWSlowdown, "hardware slowdown", "burn-in.thermal/power-brake"},
}

func decideBurnThermal(s Subject) []Finding {
	if f, none := unburnt(s); none {
		return []Finding{f}
	}
	b := s.Host.BurnIn
	tracks := burnTracks(s, b)
	var out []Finding
	told, hottest := 0, math.Inf(-1)
	for _, t := range tracks {
		if peak, ok := t.peak(sample.Temperature); ok {
			told++
			hottest = max(hottest, peak)
		}
		if f, bad := burnHeat(s, b, t); bad {
			out = append(out, f)
		}
	}
	if b.Ended == facts.BurnHot && len(out) == 0 {
		out = append(out, fail(rigSubject, "the load was aborted: %s", b.Text).because(evs(b.Source, b.Text)).fix("burn-in.thermal/hot", "bdf", firstAddress(b.Text)))
	}
	if f, uneven := burnSpread(s, tracks); uneven && len(out) == 0 {
		out = append(out, f)
	}
	if told < len(tracks) || told == 0 {
		return orWhole(out, unknown(rigSubject, "%d of %d cards told their temperature under load", told, max(len(tracks), len(s.Cards))).knownBy("look at them by other means: the driver does not tell"))
	}
	if f, cut := cutShort(b); cut {
		return orWhole(out, f)
	}
	if b.Quick {
		return orWhole(out, unknown(rigSubject, "no card is held back in %s of load, %.0f °C at most; that proves nothing about heat soak", loadTime(b), hottest).
			saw(fmt.Sprintf("%.0f °C after %s", hottest, loadTime(b)), fmt.Sprintf("≤ %g °C after 20 min or more", s.Policy.BurnHot)).knownBy("run the full one: preflight probe burn-in"))
	}
	return orWhole(out, pass(rigSubject, "no card is held back in %s of load, %.0f °C at most", loadTime(b), hottest).
		saw(fmt.Sprintf("%.0f °C", hottest), fmt.Sprintf("≤ %g °C", s.Policy.BurnHot)).because(evs(b.Source, fmt.Sprintf("%d samples of each card", len(tracks[0].at)))))
}

// burnHeat judges one card: the worst that is true of it.
func burnHeat(s Subject, b *facts.BurnIn, t burnTrack) (Finding, bool) {
	peak, _ := t.peak(sample.Temperature)
	for _, r := range heldBack {
		if n := t.samplesWith(r.bits); n > 1 {
			return fail(t.bdf, "%s is held back under load: %s in %d of %d samples, %.0f °C at most", t.bdf, r.words, n, len(t.values), peak).
				saw(r.words, "none").because(evs(b.Source, fmt.Sprintf("%s in %d of %d samples", r.words, n, len(t.values)))).fix(r.code, "bdf", t.bdf), true
		}
	}
	late, ok := t.span(soak, t.seconds).peak(sample.Temperature)
	saw := fmt.Sprintf("%.0f °C", late)
	switch {
	case ok && late > s.Policy.BurnHot:
		return fail(t.bdf, "%s reaches %.0f °C under load", t.bdf, late).saw(saw, fmt.Sprintf("≤ %g °C", s.Policy.BurnHot)).because(evs(b.Source, saw)).fix("burn-in.thermal/hot", "bdf", t.bdf), true
	case b.Ended == facts.BurnHot && strings.HasPrefix(b.Text, t.bdf):
		return fail(t.bdf, "the load was aborted: %s", b.Text).saw(fmt.Sprintf("%.0f °C", peak), fmt.Sprintf("≤ %g °C", s.Policy.BurnHot)).because(evs(b.Source, b.Text)).fix("burn-in.thermal/hot", "bdf", t.bdf), true
	case ok && late > s.Policy.BurnWarm:
		return warn(t.bdf, "%s reaches %.0f °C under load", t.bdf, late).saw(saw, fmt.Sprintf("≤ %g °C", s.Policy.BurnWarm)).because(evs(b.Source, saw)).fix("burn-in.thermal/hot", "bdf", t.bdf), true
	}
	if before, after, sags := clockSag(s, b, t); sags {
		return warn(t.bdf, "the clock of %s falls from %.0f to %.0f MHz under load", t.bdf, before, after).
			saw(fmt.Sprintf("%.0f MHz", after), fmt.Sprintf("≥ %.0f MHz", before*(1-s.Policy.BurnSag))).
			because(evs(b.Source, fmt.Sprintf("%.0f MHz, later %.0f MHz", before, after))).fix("burn-in.thermal/hot", "bdf", t.bdf), true
	}
	return Finding{}, false
}

// clockSag compares the clock of the fifth minute, or of the first third of a shorter load, with that of the end, MHz.
func clockSag(s Subject, b *facts.BurnIn, t burnTrack) (before, after float64, sags bool) {
	if len(b.Caps) > 0 || t.seconds < soak {
		return 0, 0, false
	}
	from := min(240, t.seconds/4)
	early, ok := t.span(max(from, startUp), from+60).mean(sample.CoreClock)
	late, known := t.span(t.seconds-max(t.seconds/10, 10), t.seconds).mean(sample.CoreClock)
	return early, late, ok && known && late < early*(1-s.Policy.BurnSag)
}

// burnSpread compares the cards' temperatures of the last quarter: where they differ much, air does not reach one of them.
func burnSpread(s Subject, tracks []burnTrack) (Finding, bool) {
	type warmth struct {
		bdf  string
		mean float64
	}
	var all []warmth
	for _, t := range tracks {
		if m, ok := t.span(t.seconds*3/4, t.seconds).mean(sample.Temperature); ok {
			all = append(all, warmth{t.bdf, m})
		}
	}
	if len(all) < 2 {
		return Finding{}, false
	}
	sort.Slice(all, func(i, j int) bool { return all[i].mean < all[j].mean })
	cool, hot := all[0], all[len(all)-1]
	if hot.mean-cool.mean <= s.Policy.BurnSpread {
		return Finding{}, false
	}
	f := warn(hot.bdf, "%s is %.0f K warmer than %s under load", hot.bdf, hot.mean-cool.mean, cool.bdf).
		saw(fmt.Sprintf("%.0f °C and %.0f °C", hot.mean, cool.mean), fmt.Sprintf("≤ %g K apart", s.Policy.BurnSpread)).fix("burn-in.thermal/spread", "bdf", hot.bdf)
	if where := slotOf(s, hot.bdf); where != "" {
		f = f.noting("%s", where)
	}
	return f, true
}

// slotOf says where a card sits and beside whom, from the declared slots, else the board's own name of its
// slot; "" when neither is known.
func slotOf(s Subject, bdf string) string {
	if s.Rig.Chassis == nil || len(s.Rig.Chassis.Slots) == 0 {
		for _, slot := range s.Host.Slots { // the board's own names have no order, so that neighbours are not known
			if slot.BDF == bdf {
				return fmt.Sprintf("it sits in slot %s", slot.Designation)
			}
		}
		return ""
	}
	cards, _ := declaredPlaces(s)
	sort.Slice(cards, func(i, j int) bool { return cards[i].position < cards[j].position })
	i := slices.IndexFunc(cards, func(p placed) bool { return p.card.BDF == bdf })
	if i < 0 {
		return ""
	}
	var beside []string
	if i > 0 {
		beside = append(beside, cards[i-1].card.BDF)
	}
	if i+1 < len(cards) {
		beside = append(beside, cards[i+1].card.BDF)
	}
	if len(beside) == 0 {
		return fmt.Sprintf("it sits in slot %g", cards[i].position)
	}
	return fmt.Sprintf("it sits in slot %g beside %s", cards[i].position, strings.Join(beside, ", "))
}

// firstAddress is the card that a text begins with, or "the card".
func firstAddress(text string) string {
	if word, _, _ := strings.Cut(text, " "); strings.Count(word, ":") == 2 {
		return strings.TrimSuffix(word, ":")
	}
	return "the card"
}
