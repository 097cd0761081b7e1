package fleet

import (
	"fmt"
	"sort"
	"strings"

	"preflight/internal/facts"
	"preflight/inventory"
)

// Found is what a first inventory says of a rig that was read.
func Found(r Result) inventory.Found {
	h := r.Host
	f := inventory.Found{Name: r.Rig.Name, Address: r.Rig.Address, User: r.Rig.SSH.User, Cards: len(h.Cards), BIOS: h.BIOS.Version.Value}
	f.Board = strings.TrimSpace(h.Board.Vendor.Value + " " + h.Board.Name.Value)
	for i, c := range h.Cards {
		if i == 0 || f.Model == c.Slug.Value {
			f.Model = c.Slug.Value
		} else {
			f.Model = "" // mixed: then no model is declared
		}
		f.BDFs = append(f.BDFs, inventory.FoundCard{BDF: c.BDF, ID: c.ID.Value, Name: c.Name.Value, Designation: slotOf(h, c), Width: portWidth(h, c)})
	}
	for _, p := range h.PSUs {
		if p.Present {
			f.PSUs = append(f.PSUs, inventory.FoundPSU{Watts: p.Watts, Name: p.Name})
		}
	}
	return f
}

// slotOf finds the board's name for the slot of a card: the record names the card, another function of it, or the
// port above.
func slotOf(h *facts.Host, c facts.Card) string {
	for _, s := range h.Slots {
		if s.BDF == "" {
			continue
		}
		if s.BDF == c.BDF || s.BDF[:len(s.BDF)-2] == c.BDF[:len(c.BDF)-2] || (len(c.Chain) > 0 && s.BDF == c.Chain[len(c.Chain)-1]) {
			return s.Designation
		}
	}
	return ""
}

// portWidth is the most lanes that the port above a card has; 0 when it was not read.
func portWidth(h *facts.Host, c facts.Card) int {
	if len(c.Chain) == 0 {
		return 0
	}
	for _, d := range h.PCI {
		if d.BDF == c.Chain[len(c.Chain)-1] {
			return d.Link.MaxWidth.Value
		}
	}
	return 0
}

// Moved maps the bus addresses that a rig declares to where its cards are now. With a baseline, cards are followed by
// identity. Without one, by order: enumeration keeps the order of cards when bus numbers shift, but only if none came
// or went, so the counts must agree. The second result says how it was done.
func Moved(rig *inventory.Rig, before, now *facts.Host) (moved map[string]string, how string, err error) {
	if before != nil {
		return movedByIdentity(before, now), "by the identity of each card", nil
	}
	var declared []string
	if rig.Chassis != nil {
		for _, s := range rig.Chassis.Slots {
			if strings.Contains(s.Card, ".") && !strings.Contains(s.Card, "/") {
				declared = append(declared, s.Card)
			}
		}
	}
	sort.Strings(declared)
	if len(declared) != len(now.Cards) {
		return nil, "", fmt.Errorf("%s declares %d bus addresses and %d cards are there: give --baseline SNAPSHOT, so that cards can be followed by identity", rig.Name, len(declared), len(now.Cards))
	}
	moved = map[string]string{}
	for i, old := range declared {
		if at := now.Cards[i].BDF; at != old {
			moved[old] = at
		}
	}
	return moved, "by order, since no baseline was given: look at one card to be sure", nil
}

func movedByIdentity(before, now *facts.Host) map[string]string {
	at := map[string]string{}
	for _, c := range now.Cards {
		if c.ID.Known() {
			at[c.ID.Value] = c.BDF
		}
	}
	moved := map[string]string{}
	for _, c := range before.Cards {
		if to, ok := at[c.ID.Value]; ok && to != c.BDF {
			moved[c.BDF] = to
		}
	}
	return moved
}
