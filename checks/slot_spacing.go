package checks

import (
	"fmt"
	"math"
	"sort"

	"preflight/internal/facts"
)

// chassis.slot-spacing: is there room between air-cooled cards to breathe?
//
//	free = distance of the slots − thickness of the upper card, in slot pitches (20.32 mm)
//	free < 0                                fail: the declaration cannot be right, or a riser is in use
//	free ≥ 1                                pass
//	0 ≤ free < 1                            warn; fail from 5 cards on; pass for blower cards
//	risers, open frames, water, SXM         skip
//	a declared address that is gone         unknown: bus numbers moved
//	a card in none of the declared slots    unknown
//	nothing declared                        unknown; SMBIOS 9 maps a card to a slot but has no physical order, unless
//	                                        it carries a pitch (SMBIOS 3.4 and later)
var slotSpacing = Check{ID: "chassis.slot-spacing", Title: "space between cards", Metal: true, Decide: decideSpacing}

// slotPitchMM is the distance of two expansion slots (ATX specification).
const slotPitchMM = 20.32

// placed is a card at a position, both in slot pitches.
type placed struct {
	card      facts.Card
	position  float64
	thickness float64
}

func decideSpacing(s Subject) []Finding {
	if f, done := spacingSkips(s); done {
		return []Finding{f}
	}
	var cards []placed
	var gone []Finding
	if s.Rig.Chassis != nil && len(s.Rig.Chassis.Slots) > 0 {
		cards, gone = declaredPlaces(s)
	} else {
		return []Finding{unknown(rigSubject, "the board gives no slot order").because(pitchEvidence(s)...).knownBy("declare chassis { slot … } in rigs.hcl")}
	}
	if gone = append(gone, unplaced(s, cards, gone)...); len(gone) > 0 {
		return gone
	}
	sort.Slice(cards, func(i, j int) bool { return cards[i].position < cards[j].position })
	var out []Finding
	for i := 0; i+1 < len(cards); i++ {
		out = append(out, judgeGap(s, cards[i], cards[i+1]))
	}
	if len(out) == 0 {
		return []Finding{skip(rigSubject, "one card has no neighbour")}
	}
	return out
}

// spacingSkips are the arrangements in which slots say nothing about air.
func spacingSkips(s Subject) (Finding, bool) {
	if n := cardCount(s); n == 1 {
		return skip(rigSubject, "one card has no neighbour"), true
	}
	for _, c := range s.Cards {
		if g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value); ok && g.Form == "sxm" {
			return skip(rigSubject, "%s is a module, not a slot card", modelName(c)), true
		}
	}
	if len(s.Cards) == 0 {
		for _, g := range s.Cat.BySlug(s.Rig.GPU) {
			if g.Form == "sxm" {
				return skip(rigSubject, "%s is a module, not a slot card", g.Name), true
			}
		}
	}
	ch := s.Rig.Chassis
	switch {
	case ch == nil:
		return Finding{}, false
	case ch.Cooling == "water":
		return skip(rigSubject, "water-cooled"), true
	case ch.Mount != "" && ch.Mount != "slot":
		return skip(rigSubject, "cards on %s mounts", ch.Mount), true
	}
	return Finding{}, false
}

// declaredPlaces joins the declared slots with the cards seen.
func declaredPlaces(s Subject) (cards []placed, gone []Finding) {
	for _, slot := range s.Rig.Chassis.Slots {
		if slot.Card == "" {
			continue
		}
		c, ok := cardOf(s, slot.Card)
		if !ok {
			gone = append(gone, unknown(fmt.Sprintf("slot-%d", slot.Position), "no card at %s: bus numbers moved, or the card is missing", slot.Card).saw("absent", slot.Card).
				knownBy("`preflight init --refresh` rewrites the map"))
			continue
		}
		t := slot.Thickness
		if g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value); ok && t == 0 {
			t = g.Thickness
		}
		if t == 0 {
			gone = append(gone, unknown(c.BDF, "the thickness of %s is not known", modelName(c)).knownBy(fmt.Sprintf("declare `thickness` in slot %q", fmt.Sprint(slot.Position))))
			continue
		}
		cards = append(cards, placed{card: c, position: float64(slot.Position), thickness: t})
	}
	return cards, gone
}

// unplaced are the cards that no declared slot names: nothing is known of the air around them.
func unplaced(s Subject, cards []placed, gone []Finding) []Finding {
	said := map[string]bool{}
	for _, p := range cards {
		said[p.card.BDF] = true
	}
	for _, f := range gone {
		said[f.Subject] = true
	}
	var out []Finding
	for _, c := range s.Cards {
		if !said[c.BDF] {
			out = append(out, unknown(c.BDF, "%s is in none of the declared slots", c.BDF).knownBy("declare its `slot` in chassis of rigs.hcl"))
		}
	}
	return out
}

func cardOf(s Subject, name string) (facts.Card, bool) {
	for _, c := range s.Host.Cards {
		if matchesCard(name, c) {
			return c, true
		}
	}
	return facts.Card{}, false
}

func judgeGap(s Subject, a, b placed) Finding {
	free := b.position - a.position - a.thickness
	subject := a.card.BDF + "+" + b.card.BDF
	text := fmt.Sprintf("%.3g free slots between %s and %s", math.Max(free, 0), a.card.BDF, b.card.BDF)
	f := Finding{Subject: subject, Observed: fmt.Sprintf("%.3g", free), Expected: fmt.Sprintf("≥ %d", s.Policy.FreeSlots), Summary: text}.
		because(evs("rigs.hcl:chassis", fmt.Sprintf("slot %g + thickness %g, next slot %g", a.position, a.thickness, b.position)))
	remedy := func(code string) Finding { return f.fix(code, "a", a.card.BDF, "b", b.card.BDF) }
	switch {
	case free < 0:
		f.Verdict, f.Summary = Fail, fmt.Sprintf("%s in slot %g is thicker than the %g slots to %s", a.card.BDF, a.position, b.position-a.position, b.card.BDF)
		return remedy("chassis.slot-spacing/impossible")
	case free >= float64(s.Policy.FreeSlots), s.Rig.Chassis != nil && s.Rig.Chassis.Cooling == "blower":
		f.Verdict = Pass
		return f
	case s.Policy.TightFails:
		f.Verdict = Fail
	default:
		f.Verdict = Warn
	}
	return remedy("chassis.slot-spacing/tight")
}

func pitchEvidence(s Subject) []Evidence {
	for _, slot := range s.Host.Slots {
		if slot.PitchMM > 0 {
			return []Evidence{evs(slot.Source, fmt.Sprintf("%s pitch %.2f mm (%.1f slots)", slot.Designation, slot.PitchMM, slot.PitchMM/slotPitchMM))}
		}
	}
	return nil
}
