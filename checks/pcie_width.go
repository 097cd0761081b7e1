package checks

import (
	"fmt"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// pcie.width: does every card, and every hop above it, run with all the lanes that it can?
//
//	a hop, current against min(parent's maximum, child's maximum):
//	  below it                                      fault: fail at any card count (seat, riser, contacts)
//	  below it, but sibling root ports show the same halved width, or the inventory declares it
//	                                                limit by design: the table below
//	the card, current against its own maximum:
//	  equal                                         pass
//	  lanes lost while the card computed            fault: fail (burn-in)
//	  below, because the slot has no more lanes     limit by design
//
//	limit    1–2 cards   3 and more             with allow_x8
//	x8       warn        fail                   pass
//	x4 …     fail        fail                   fail
//
// An x8 link that moves as much as Gen4 x16 (Gen5 x8) passes with a note. A card that has only x8 or x4 passes at it.
// Traps: an idle link keeps its width on desktop cards, so a narrow idle link is real; width 63 is a card that left
// the bus; nvidia-smi's own maximum says nothing about the slot. Source: sysfs link attributes, LnkCap/LnkSta.
var pcieWidth = Check{ID: "pcie.width", Title: "PCIe link width", Metal: true, Decide: decideWidth}

func decideWidth(s Subject) []Finding {
	if len(s.Cards) == 0 {
		return []Finding{unknown(rigSubject, "no card's link is known").knownBy("give a snapshot of the host, lspci -vvv as root or nvidia-smi -q -x")}
	}
	var out []Finding
	seen := map[string]bool{}
	clean := 0
	for _, c := range s.Cards {
		fs := widthOf(s, c)
		for _, f := range fs {
			if !seen[f.Subject] {
				seen[f.Subject] = true
				out = append(out, f)
			}
		}
		if len(fs) == 1 && fs[0].Verdict == Pass && fs[0].Note == "" {
			clean++
		}
	}
	if clean == len(s.Cards) {
		return []Finding{pass(rigSubject, "all %d cards run x%s", clean, widths(s)).saw("x"+widths(s), "x"+widths(s)).because(ev(s.hops(s.Cards[0])[0].width(s)))}
	}
	return out
}

func widths(s Subject) string {
	var list []string
	for _, c := range s.Cards {
		hs := s.hops(c)
		w := strconv.Itoa(cardWidth(s, c, hs[len(hs)-1]).Value)
		if len(list) == 0 || list[len(list)-1] != w {
			list = append(list, w)
		}
	}
	return strings.Join(list, ", x")
}

// cardWidth is the width of a card's own link: sysfs or samples, else nvidia-smi.
func cardWidth(s Subject, c facts.Card, last hop) facts.Fact[int] {
	return facts.First(last.width(s), c.Gen.Width)
}

// widthOf judges a card's own link and the links above it.
func widthOf(s Subject, c facts.Card) []Finding {
	if c.Link.Broken.Value {
		return []Finding{fail(c.BDF, "%s no longer answers on the bus", c.BDF).saw("reads all ones", "a link").because(ev(c.Link.Broken)).fix("pcie.width/off-bus", "bdf", c.BDF)}
	}
	hops := s.hops(c)
	out := []Finding{linkWidth(s, c, hops[len(hops)-1])}
	for _, h := range hops[:len(hops)-1] {
		if f, bad := uplinkWidth(s, h); bad {
			out = append(out, f)
		}
	}
	return out
}

// uplinkWidth judges the link between a root port and a switch.
func uplinkWidth(s Subject, h hop) (Finding, bool) {
	w, limit := h.width(s), h.capWidth()
	if !w.Known() || !limit.Known() || w.Value == 0 || w.Value >= limit.Value {
		return Finding{}, false
	}
	f := fail(h.lower.BDF, "the uplink %s of the switch runs x%d of x%d", h.lower.BDF, w.Value, limit.Value).
		saw(lanes(w.Value), lanes(limit.Value)).because(ev(w), ev(limit)).
		fix("pcie.width/slot-fault", "bdf", h.lower.BDF, "width", lanes(w.Value), "expected", lanes(limit.Value), "hop", h.upper.BDF+" → "+h.lower.BDF)
	return f, true
}

func lanes(n int) string { return "x" + strconv.Itoa(n) }

func linkWidth(s Subject, c facts.Card, h hop) Finding {
	if f, bad := narrowed(s, c, h); bad {
		return f
	}
	w, own := cardWidth(s, c, h), ownWidth(s, c)
	if !w.Known() || w.Value == 0 {
		return unknown(c.BDF, "%s: the link width is not known", c.BDF).knownBy("give a snapshot of the host, lspci -vvv as root or nvidia-smi -q -x")
	}
	if !own.Known() {
		return unknown(c.BDF, "%s runs x%d; what the card can do is not known", c.BDF, w.Value).saw(lanes(w.Value), "").because(ev(w)).knownBy("give a snapshot of the host")
	}
	if w.Value >= own.Value {
		return pass(c.BDF, "%s runs x%d", c.BDF, w.Value).saw(lanes(w.Value), lanes(own.Value)).because(ev(w), ev(own))
	}
	limit := h.capWidth()
	target := own.Value
	if limit.Known() {
		target = min(limit.Value, own.Value)
	}
	evidence := []Evidence{ev(w), ev(own), ev(h.upper.Link.MaxWidth)}
	reason, byDesign := designLimit(s, c, h, w.Value, target, limit.Known())
	if !byDesign {
		return fail(c.BDF, "%s runs x%d, slot and card can do x%d", c.BDF, w.Value, target).saw(lanes(w.Value), lanes(target)).because(evidence...).
			noting("a fault of seat, riser or contacts, or a slot that the BIOS splits; the hop is %s", hopName(h)).
			fix("pcie.width/slot-fault", "bdf", c.BDF, "width", lanes(w.Value), "expected", lanes(target), "hop", hopName(h))
	}
	return limited(s, c, h, w.Value, own.Value, reason).because(evidence...)
}

func hopName(h hop) string {
	if h.hasUpper {
		return h.upper.BDF + " → " + h.lower.BDF
	}
	return h.lower.BDF
}

// designLimit says whether fewer lanes are how the machine is built, and why.
func designLimit(s Subject, c facts.Card, h hop, w, target int, portKnown bool) (string, bool) {
	switch {
	case portKnown && w >= target:
		return fmt.Sprintf("the slot above has x%d", target), true
	case declaredWidth(s, c) == w:
		return fmt.Sprintf("rigs.hcl declares x%d for this slot", w), true
	case !portKnown:
		return "what the slot can do is not in the input, so a fault is as likely", true
	case halvedSibling(s, c, h, w, target):
		return "a sibling root port of the same CPU shows the same half width: the slots share lanes", true
	}
	return "", false
}

// declaredWidth is the wired width of the card's slot as the inventory gives it, or 0.
func declaredWidth(s Subject, c facts.Card) int {
	if s.Rig.Chassis == nil {
		return 0
	}
	for _, slot := range s.Rig.Chassis.Slots {
		if matchesCard(slot.Card, c) {
			return slot.Width
		}
	}
	return 0
}

// matchesCard: a slot names its card by BDF, by the PCI path from the root port, or by the hash of its UUID.
func matchesCard(name string, c facts.Card) bool {
	path := strings.Join(append(append([]string{}, c.Chain...), c.BDF), "/")
	return name != "" && (strings.EqualFold(name, c.BDF) || name == path || name == c.ID.Value)
}

// halvedSibling finds another card directly below a root port of the same device (functions of 00:01, say) or of the
// same root bus with the same halved width: the mark of x8/x8 boards.
func halvedSibling(s Subject, c facts.Card, h hop, w, target int) bool {
	if !h.hasUpper || len(c.Chain) != 1 || w*2 != target {
		return false
	}
	for _, o := range s.Host.Cards {
		byNature := ownWidth(s, o).Or(target) <= w // a card that has no more lanes shows nothing of its slot
		if o.BDF == c.BDF || len(o.Chain) != 1 || o.RootBus != c.RootBus || o.Link.Width.Value != w || byNature {
			continue
		}
		a, b := h.upper.BDF, o.Chain[0]
		if a[:len(a)-2] == b[:len(b)-2] { // same device, another function
			return true
		}
	}
	return false
}

// limited applies the table of policy to a link that is narrow by design.
func limited(s Subject, c facts.Card, h hop, w, own int, reason string) Finding {
	gen := 0
	if sp := h.capSpeed(); sp.Known() {
		gen = generation(sp.Value)
	}
	text := fmt.Sprintf("%s runs x%d of x%d", c.BDF, w, own)
	f := Finding{Subject: c.BDF, Summary: text, Observed: lanes(w), Expected: lanes(own)}.noting("%s", reason)
	remedy := func(f Finding) Finding {
		return f.fix("pcie.width/slot-limit", "bdf", c.BDF, "width", lanes(w), "expected", lanes(own))
	}
	switch {
	case rawGBs(gen, w) >= rawGBs(4, 16)*0.99:
		f.Verdict = Pass
		return f.noting("Gen%d x%d moves as much as Gen4 x16", gen, w)
	case w >= 8 && s.Policy.AllowX8:
		f.Verdict = Pass
		return f.noting("allow_x8 is set in the profile")
	case w >= 8 && cardCount(s) <= 2:
		f.Verdict = Warn
		return remedy(f)
	}
	f.Verdict = Fail
	return remedy(f)
}
