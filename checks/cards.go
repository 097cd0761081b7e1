package checks

import (
	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// displayShare: without a declaration, a card with less than this share of the largest card's memory is taken for
// the display card and not for one that trains. Policy.
const displayShare = 0.25

// trainingCards parts the NVIDIA cards into those that train and the rest. With a declared model, cards of that
// model train, and so do others that are big enough to have been meant (half its memory or more).
func trainingCards(s Subject) (training, others []facts.Card) {
	want := s.Cat.BySlug(s.Rig.GPU)
	var limit int64
	if len(want) > 0 {
		limit = want[0].MemoryMiB / 2
	} else {
		for _, c := range s.Host.Cards {
			limit = max(limit, int64(displayShare*float64(memoryOf(s, c))))
		}
	}
	declared := map[string]bool{}
	for _, g := range want {
		declared[g.ID] = true
	}
	for _, c := range s.Host.Cards {
		m := memoryOf(s, c)
		switch {
		case declared[c.Product], c.Slug.Known() && c.Slug.Value == s.Rig.GPU, m > 0 && m >= limit, m == 0 && len(want) == 0:
			training = append(training, c)
		default:
			others = append(others, c)
		}
	}
	if len(training) == 0 {
		return others, nil
	}
	return training, others
}

// memoryOf is the card's memory in MiB: as the driver says, else as the catalogue says, else 0.
func memoryOf(s Subject, c facts.Card) int64 {
	if m, ok := c.MemoryMiB.Get(); ok {
		return m
	}
	if g, ok := s.model(c); ok {
		return g.MemoryMiB
	}
	return 0
}

// model is the catalogue's row of a card: by its device id, else, where no source showed one, by its name.
func (s Subject) model(c facts.Card) (catalog.GPU, bool) {
	if c.Product != "" {
		return s.Cat.GPU(c.Product, c.MemoryMiB.Value)
	}
	if rows := s.Cat.BySlug(c.Slug.Value); c.Slug.Known() && len(rows) > 0 {
		return rows[0], true
	}
	return catalog.GPU{}, false
}

// cardCount is the number of cards that the rules reckon with: declared, else seen.
func cardCount(s Subject) int {
	if s.Rig.Cards != nil {
		return *s.Rig.Cards
	}
	if n := len(s.Cards); n > 0 {
		return n
	}
	return s.Host.Driver.Attached.Or(0)
}

// peerCount is how many cards could talk to each other: as [cardCount], and not less than the driver lists where the
// input shows only some of them.
func peerCount(s Subject) int {
	if s.Rig.Cards != nil {
		return *s.Rig.Cards
	}
	return max(len(s.Cards), s.Host.Driver.Attached.Or(0)-len(s.Others))
}

// modelName is how a card is called in messages.
func modelName(c facts.Card) string {
	if c.Name.Known() {
		return c.Name.Value
	}
	if c.Label != "" {
		return c.Label
	}
	return "NVIDIA " + c.Product
}

// device finds a PCI function of the host.
func (s Subject) device(bdf string) (facts.Device, bool) {
	d, ok := s.functions[bdf]
	return d, ok
}
