package diff

import (
	"fmt"
	"slices"
	"strings"
)

// namer gives functions names that are the same on both sides: cards by identity, bridges by their way from the root port.
type namer struct {
	ids   map[string]string // bdf -> what it is
	cards map[string]bool
	slots map[string]string // bdf of a card -> the board's name of its slot
}

// newNamer reads one side. A card whose identity the other side does not know is named by its address.
func newNamer(t tree, known func(id string) bool) namer {
	n := namer{ids: map[string]string{}, cards: map[string]bool{}, slots: map[string]string{}}
	var roots []string
	for _, d := range t.list("pci") {
		if r := d.text("root_bus"); r != "" && !slices.Contains(roots, r) {
			roots = append(roots, r)
		}
	}
	slices.Sort(roots)
	for _, d := range t.list("pci") {
		n.ids[d.text("bdf")] = "link " + way(d, roots)
	}
	for _, c := range t.list("cards") {
		bdf := c.text("bdf")
		n.cards[bdf] = true
		n.ids[bdf] = "card at " + bdf
		if id := c.text("id"); id != "" && known(id) {
			n.ids[bdf] = "card " + id
		}
	}
	for _, s := range t.list("slots") {
		n.slots[s.text("bdf")] = s.text("designation")
	}
	return n
}

// way is a function's path without bus numbers: the root bus by its rank, then device and function of each bridge.
func way(d tree, roots []string) string {
	steps := []string{fmt.Sprintf("root %d", slices.Index(roots, d.text("root_bus")))}
	chain, _ := d.at("chain").([]any)
	for _, up := range append(chain, d.text("bdf")) {
		bdf := words(up)
		steps = append(steps, bdf[strings.LastIndex(bdf, ":")+1:])
	}
	return strings.Join(steps, "/")
}

func (n namer) isCard(bdf string) bool { return n.cards[bdf] }

// scope is the name that both sides have.
func (n namer) scope(bdf string) string {
	if id := n.ids[bdf]; id != "" {
		return id
	}
	return bdf
}

// shown is the name for people: where it is on this side.
func (n namer) shown(bdf string) string {
	if n.cards[bdf] && n.slots[bdf] != "" {
		return bdf + " (" + n.slots[bdf] + ")"
	}
	return bdf
}

// pair names two cards whatever their order, way in their order.
func (n namer) pair(a, b string) string {
	x, y := n.scope(a), n.scope(b)
	if y < x {
		x, y = y, x
	}
	return "pair " + x + " + " + y
}

func (n namer) way(a, b string) string { return "pair " + n.scope(a) + " → " + n.scope(b) }

func (n namer) shownPair(a, b string) string { return a + " ↔ " + b }

func (n namer) shownWay(a, b string) string { return a + " → " + b }
