package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func (b *builder) rigs() {
	first := map[string]hcl.Range{}
	b.each("rig", func(schema *block, syntax *hclsyntax.Block, label string) {
		instances, ok := b.instances(syntax, label)
		if !ok {
			return
		}
		for _, in := range instances {
			if len(b.inv.Rigs) >= mostRigs {
				b.fault(syntax.DefRange(), "Too many rigs", "At most %d rigs are read.", mostRigs)
				return
			}
			n := b.decode(schema, syntax.Body, in.name, syntax.DefRange(), in.ctx)
			if b.named(syntax, in.name, first) {
				b.inv.Rigs = append(b.inv.Rigs, b.rig(n))
			}
		}
	})
}

// instance is one rig that a block stands for.
type instance struct {
	name string
	ctx  *hcl.EvalContext
}

// instances expands for_each: a map or a set of texts gives one rig an entry, in the order of the keys.
func (b *builder) instances(syntax *hclsyntax.Block, label string) ([]instance, bool) {
	a := syntax.Body.Attributes["for_each"]
	if a == nil {
		return []instance{{label, b.ctx}}, true
	}
	v, ok := b.eval(a.Expr, b.ctx)
	if !ok || !v.IsKnown() {
		return nil, false
	}
	t := v.Type()
	switch {
	case v.IsNull():
		b.fault(a.Expr.Range(), "Invalid for_each", "for_each must not be null.")
		return nil, false
	case t.IsListType() || t.IsTupleType():
		b.fault(a.Expr.Range(), "Invalid for_each", "for_each takes a map or a set of texts, not a list: write toset(…).")
		return nil, false
	case !t.IsMapType() && !t.IsObjectType() && !(t.IsSetType() && t.ElementType() == cty.String):
		b.fault(a.Expr.Range(), "Invalid for_each", "for_each takes a map or a set of texts, not %s.", t.FriendlyName())
		return nil, false
	}
	if n := v.LengthInt(); n > mostRigs {
		b.fault(a.Expr.Range(), "Too many rigs", "for_each has %d entries; at most %d are read.", n, mostRigs)
		return nil, false
	}
	var out []instance
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if t.IsSetType() {
			key = value
		}
		if !key.IsKnown() || key.IsNull() {
			b.fault(a.Expr.Range(), "Invalid for_each", "A key of for_each is null or not known.")
			return nil, false
		}
		ctx := b.ctx.NewChild()
		ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		out = append(out, instance{label + "-" + key.AsString(), ctx})
	}
	return out, true
}

func (b *builder) rig(n *node) *Rig {
	r := &Rig{
		Name: n.label, Address: n.text("address"), Cards: n.intPtr("cards"), GPU: n.text("gpu"), Group: n.text("group"), Labels: n.textMap("labels"),
		Python: n.text("python"), NIC: n.text("nic"), SlurmNode: n.text("slurm_node"), PricePerHour: n.floatPtr("price_per_hour"),
		Range: n.header, Ranges: map[string]hcl.Range{},
	}
	r.SSH = mergeSSH(mergeSSH(b.ssh, n.one("ssh")), n)
	noteRanges(r.Ranges, "", n)
	b.rigProfile(r, n)
	b.rigGPU(r, n)
	for i, p := range n.blocks["psu"] {
		r.PSUs = append(r.PSUs, b.psu(p))
		b.fedTwice(r.PSUs, i, p)
	}
	if m := n.one("mains"); m != nil {
		r.Mains = &Mains{Volts: m.float("volts"), Amps: m.float("amps"), Circuits: int(m.floatOr("circuits", 1)), Shared: m.text("shared"), Range: m.header}
	}
	if c := n.one("chassis"); c != nil {
		r.Chassis = b.chassis(c, r.Cards)
	}
	return r
}

// noteRanges keeps where each attribute and block was written, by path.
func noteRanges(ranges map[string]hcl.Range, prefix string, n *node) {
	for name, at := range n.ranges {
		ranges[prefix+name] = at
	}
	for kind, list := range n.blocks {
		for i, child := range list {
			path := prefix + kind
			switch {
			case child.label != "":
				path = fmt.Sprintf("%s[%q]", path, child.label)
			case kind == "psu":
				path = fmt.Sprintf("%s[%d]", path, i)
			}
			ranges[path] = child.header
			noteRanges(ranges, path+".", child)
		}
	}
}

func (b *builder) rigProfile(r *Rig, n *node) {
	name := defaultProfile
	if n.has("profile") {
		name = n.text("profile")
	}
	if p := b.inv.Profiles[name]; p != nil {
		r.Profile = p
		return
	}
	r.Profile = b.inv.Profiles[defaultProfile]
	if b.declaredProfile(name) {
		return // it has a mistake of its own, reported there
	}
	b.fault(n.where("profile"), "Unknown profile", "Rig %q names the profile %q, which is not declared.%s", n.label, clip(name), didYouMean(name, sortedKeys(b.inv.Profiles)))
}

func (b *builder) declaredProfile(name string) bool {
	return slices.ContainsFunc(b.blocks, func(s *hclsyntax.Block) bool {
		return s.Type == "profile" && slices.Equal(s.Labels, []string{name})
	})
}

func (b *builder) rigGPU(r *Rig, n *node) {
	if r.GPU == "" || (b.opts.GPUs == nil && b.opts.GPUSlugs == nil) {
		return
	}
	known := slices.Clone(b.opts.GPUSlugs)
	for _, g := range b.inv.Catalog.GPUs {
		known = append(known, g.Slug)
	}
	if slices.Contains(known, r.GPU) || (b.opts.GPUs != nil && b.opts.GPUs(r.GPU)) {
		return
	}
	slug := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(r.GPU), "nvidia "), "geforce "), " ", "-")
	hint := didYouMean(slug, known)
	if hint == "" {
		hint = " `preflight catalog gpu` lists those that are known; others can be declared in a catalog block."
	}
	b.fault(n.where("gpu"), "Unknown GPU", "%q is no card of the catalogue.%s", clip(r.GPU), hint)
}

func (b *builder) psu(n *node) PSU {
	p := PSU{Watts: int(n.float("watts")), Count: int(n.floatOr("count", 1)), Spare: int(n.floatOr("spare", 0)), Range: n.header}
	if p.Spare >= p.Count {
		b.fault(n.where("spare"), "Invalid value", "spare (%d) must be below count (%d): at least one supply has to carry the load.", p.Spare, p.Count)
	}
	for _, c := range n.texts("cards") {
		card, problem := NormalCard(c)
		if problem != "" {
			b.fault(n.where("cards"), "Invalid card", "cards: %s.", problem)
			continue
		}
		p.Cards = append(p.Cards, card)
	}
	return p
}

// fedTwice refuses a card that two psu blocks claim to feed: its draw would count twice.
func (b *builder) fedTwice(psus []PSU, i int, n *node) {
	for _, card := range psus[i].Cards {
		for j := range i {
			if slices.Contains(psus[j].Cards, card) {
				b.fault(n.where("cards"), "Card fed twice", "%s is fed by the psu block at %s already.", card, Position(psus[j].Range))
			}
		}
	}
}

func (b *builder) chassis(n *node, cards *int) *Chassis {
	c := &Chassis{Cooling: n.text("cooling"), Mount: n.text("mount"), Range: n.header}
	byPosition, byCard := map[int]Slot{}, map[string]Slot{}
	for _, s := range n.blocks["slot"] {
		slot, ok := b.slot(s)
		if !ok {
			continue
		}
		if first, dup := byPosition[slot.Position]; dup {
			b.fault(s.header, "Duplicate slot", "Slot %d is declared at %s already.", slot.Position, Position(first.Range))
			continue
		}
		byPosition[slot.Position] = slot
		if first, dup := byCard[slot.Card]; dup && slot.Card != "" {
			b.fault(s.where("card"), "Card in two slots", "%s sits in slot %d (%s) already.", slot.Card, first.Position, Position(first.Range))
		}
		byCard[slot.Card] = slot
		c.Slots = append(c.Slots, slot)
	}
	slices.SortFunc(c.Slots, func(a, b Slot) int { return a.Position - b.Position })
	if c.Mount == "" || c.Mount == "slot" {
		b.overlaps(c.Slots)
	}
	delete(byCard, "")
	if cards != nil && len(byCard) > *cards {
		b.fault(n.header, "Too many cards", "The slots hold %d cards, but the rig declares cards = %d.", len(byCard), *cards)
	}
	return c
}

func (b *builder) slot(n *node) (Slot, bool) {
	s := Slot{Width: int(n.float("width")), Thickness: n.float("thickness"), Range: n.header}
	pos, err := digits(n.label)
	if err != nil || pos < 1 || pos > 99 {
		b.fault(n.header, "Invalid slot", "%q is no position: the label of a slot is a whole number from 1 to 99, counted in slots of 20.32 mm.", clip(n.label))
		return s, false
	}
	s.Position = pos
	if card := n.text("card"); card != "" {
		var problem string
		if s.Card, problem = NormalCard(card); problem != "" {
			b.fault(n.where("card"), "Invalid card", "card: %s.", problem)
		}
	}
	return s, true
}

// overlaps reports cards that would need the same space. A card takes as many whole slots as its thickness needs,
// from its position on; touching is possible. Slots must be sorted.
func (b *builder) overlaps(slots []Slot) {
	var before *Slot
	for i := range slots {
		s := &slots[i]
		if s.Card == "" && s.Thickness == 0 {
			continue // an empty slot may well lie under a thick card
		}
		if before != nil && before.Position+occupied(*before) > s.Position {
			b.fault(s.Range, "Overlapping slots", "The card in slot %d (%s) takes slots %d to %d; another cannot sit in slot %d.",
				before.Position, Position(before.Range), before.Position, before.Position+occupied(*before)-1, s.Position)
		}
		before = s
	}
}

func occupied(s Slot) int { return max(1, int(math.Ceil(s.Thickness))) }
