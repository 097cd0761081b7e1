package diff

import (
	"math"
	"slices"
	"strings"

	"preflight/checks"
)

// State is one rig at one time.
type State struct {
	Name     string
	Facts    map[string]any // as Normal gives them; empty when the rig was not reached
	Findings []checks.Finding
	Lost     bool
	Tool     string // version that judged it
	Declared string // stands for what was declared of it and by what profile it was judged; "" when that is not known
}

// Effect is what a change means.
type Effect string

// The effects, in the order in which they are told.
const (
	Worse   Effect = "worse" // a regression, whatever the thresholds say
	Gone    Effect = "gone"  // a card, a module, a disk that was there
	Unseen  Effect = "unseen"
	Changed Effect = "changed"
	Moved   Effect = "moved"
	Added   Effect = "added"
	Better  Effect = "better"
	Seen    Effect = "seen"
)

var effects = []Effect{Worse, Gone, Unseen, Changed, Moved, Added, Better, Seen}

// Change is one fact that is not what it was.
type Change struct {
	Where  string `json:"where"` // "" is the host; a card, a link, a module
	What   string `json:"what"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Effect Effect `json:"effect"`
	Why    string `json:"why,omitempty"` // of a regression
}

// Turn is how a finding changed.
type Turn string

// The turns, in the order in which they are told.
const (
	New       Turn = "new"
	Risen     Turn = "worse"          // warn became fail
	Lost      Turn = "became-unknown" // was known
	Fallen    Turn = "better"
	Fixed     Turn = "fixed"
	Known     Turn = "now-known"
	Unchanged Turn = "unchanged" // a fault as it was
)

var turns = []Turn{New, Risen, Lost, Unchanged, Fallen, Fixed, Known}

// Verdict is one finding before and after.
type Verdict struct {
	ID      string         `json:"id"`
	Turn    Turn           `json:"turn"`
	Before  checks.Verdict `json:"before,omitempty"`
	After   checks.Verdict `json:"after,omitempty"`
	Summary string         `json:"summary"`
}

// Rig is what changed on one rig.
type Rig struct {
	Name     string    `json:"name"`
	Was      string    `json:"was,omitempty"` // its name before, when that was another
	Presence string    `json:"presence"`      // both, gone, new, lost (not reached now), found (not reached before)
	Facts    []Change  `json:"facts"`
	Findings []Verdict `json:"findings"`
	Notes    []string  `json:"notes,omitempty"`
}

// Result is a whole comparison.
type Result struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Rigs   []Rig  `json:"rigs"`
}

// Compare compares two sides by the names of their rigs. A single rig on each side is compared whatever its name. Checks that
// skip names were not looked at on one of the sides.
func Compare(before, after []State, skip func(check string) bool) Result {
	var out Result
	if len(before) == 1 && len(after) == 1 {
		r := rig(before[0], after[0], skip)
		if before[0].Name != after[0].Name {
			r.Was = before[0].Name
		}
		out.Rigs = append(out.Rigs, r)
		return out
	}
	for _, b := range before {
		i := slices.IndexFunc(after, func(a State) bool { return a.Name == b.Name })
		if i < 0 {
			out.Rigs = append(out.Rigs, Rig{Name: b.Name, Presence: "gone", Facts: []Change{}, Findings: []Verdict{}})
			continue
		}
		out.Rigs = append(out.Rigs, rig(b, after[i], skip))
	}
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b State) bool { return a.Name == b.Name }) {
			out.Rigs = append(out.Rigs, Rig{Name: a.Name, Presence: "new", Facts: []Change{}, Findings: []Verdict{}})
		}
	}
	return out
}

// rig compares one rig with itself.
func rig(b, a State, skip func(string) bool) Rig {
	r := Rig{Name: a.Name, Presence: "both", Facts: []Change{}, Findings: []Verdict{}}
	switch {
	case a.Lost && b.Lost, a.Lost:
		r.Presence = "lost"
		return r
	case b.Lost:
		r.Presence = "found"
		return r
	}
	if b.Tool != "" && a.Tool != "" && b.Tool != a.Tool {
		r.Notes = append(r.Notes, "judged by preflight "+b.Tool+" then and "+a.Tool+" now: a verdict may have changed because a rule did")
	}
	before, after := tree(b.Facts), tree(a.Facts)
	old, now := newNamer(before, has(after)), newNamer(after, has(before))
	if len(before.list("cards")) > 0 && !slices.ContainsFunc(before.list("cards"), func(c tree) bool { return c.text("id") != "" && has(after)(c.text("id")) }) {
		r.Notes = append(r.Notes, "cards are compared by address: no identity is known on both sides")
	}
	if b.Declared != "" && a.Declared != "" && b.Declared != a.Declared {
		r.Notes = append(r.Notes, "declared otherwise then than now (rig or profile): a verdict may have changed because of that")
	}
	r.Facts = facts(before, after, old, now, skip)
	r.Findings = findings(b.Findings, a.Findings, translation(old, now), skip)
	return r
}

// has says whether a side knows a card by its identity.
func has(t tree) func(string) bool {
	ids := map[string]bool{}
	for _, c := range t.list("cards") {
		ids[c.text("id")] = true
	}
	return func(id string) bool { return ids[id] }
}

// facts compares the values of both sides, and where cards are.
func facts(before, after tree, old, now namer, skip func(string) bool) []Change {
	out := moves(before, after, old, now)
	was, is := newSide(before, old), newSide(after, now)
	for _, g := range groups {
		b, a := was.groups[g.name], is.groups[g.name]
		switch {
		case len(b) == 0 && len(a) == 0:
		case (len(b) == 0 || len(a) == 0) && skip != nil && skip(g.check): // not measured by choice
		case len(a) == 0: // a side without any of it did not read it: one line, not one for each value
			out = append(out, Change{What: g.words, Effect: Unseen})
		case len(b) == 0:
			out = append(out, Change{What: g.words, Effect: Seen})
		default:
			out = append(out, group(b, a, was, is, len(before.list("cards")) == len(after.list("cards")))...)
		}
	}
	return sorted(out)
}

// side are the values of one state.
type side struct {
	groups map[string][]value
	values map[string]value
	scopes map[string]bool
}

func newSide(t tree, names namer) side {
	s := side{map[string][]value{}, map[string]value{}, map[string]bool{}}
	for _, v := range values(t, names) {
		if _, twice := s.values[v.key()]; twice {
			continue
		}
		s.groups[v.group] = append(s.groups[v.group], v)
		s.values[v.key()], s.scopes[v.scope] = v, true
	}
	return s
}

// group compares what both sides have read. What was measured with all cards at once is no longer seen only where there are
// as many as there were.
func group(before, after []value, was, is side, asMany bool) []Change {
	var out []Change
	told := map[string]bool{} // parts that came or went, which are told once
	for _, v := range after {
		b, there := was.values[v.key()]
		switch {
		case there:
			if c, changed := compare(b, v); changed {
				out = append(out, c)
			}
		case v.joint && !asMany:
		case whole(v.group) && !was.scopes[v.scope]:
			if !told[v.scope] {
				out = append(out, Change{Where: v.shown, What: v.label, After: with(v), Effect: Added})
			}
			told[v.scope] = true
		case v.group == "cmdline":
			out = append(out, Change{Where: v.shown, What: v.label, After: with(v), Effect: Added})
		case was.scopes[v.scope]:
			out = append(out, Change{Where: v.shown, What: v.label, After: with(v), Effect: Seen})
		}
	}
	for _, v := range before {
		if _, there := is.values[v.key()]; there || v.joint && !asMany {
			continue
		}
		switch {
		case v.group == "cmdline":
			out = append(out, Change{Where: v.shown, What: v.label, Before: with(v), Effect: Changed})
		case whole(v.group) && !is.scopes[v.scope]:
			if !told[v.scope] {
				out = append(out, Change{Where: v.shown, What: v.label, Before: with(v), Effect: Gone, Why: v.why})
			}
			told[v.scope] = true
		case is.scopes[v.scope]:
			out = append(out, Change{Where: v.shown, What: v.label, Before: with(v), Effect: Unseen})
		}
	}
	return out
}

// whole says whether a group is of parts that can be taken out. Cards are told by moves; links, pairs and rates go with
// the cards and bridges that they are of.
func whole(group string) bool {
	return slices.Contains([]string{"modules", "disks", "supplies"}, group)
}

// compare tells how one value changed; false when it did not, or by noise.
func compare(b, a value) (Change, bool) {
	if b.text == a.text {
		return Change{}, false
	}
	c := Change{Where: a.shown, What: a.label, Before: with(b), After: with(a), Effect: Changed}
	if b.isNum && a.isNum {
		limit := max(b.noise, a.noise) * math.Max(math.Abs(b.number), math.Abs(a.number))
		if math.Abs(a.number-b.number) <= limit {
			return Change{}, false
		}
	}
	switch {
	case a.better == more && b.isNum && a.isNum && a.number < b.number, a.better == on && a.text == "off":
		c.Effect, c.Why = Worse, a.why
	case a.better == more && b.isNum && a.isNum && a.number > b.number, a.better == on && a.text == "on":
		c.Effect = Better
	}
	return c, true
}

func with(v value) string {
	if v.unit == "" {
		return v.text
	}
	return v.text + " " + v.unit
}

// moves tells where cards went: moved, gone, new, another one in the same place.
func moves(before, after tree, old, now namer) []Change {
	at := map[string]tree{}
	for _, c := range after.list("cards") {
		at[now.scope(c.text("bdf"))] = c
	}
	var out []Change
	seen := map[string]bool{}
	for _, c := range before.list("cards") {
		bdf, id := c.text("bdf"), old.scope(c.text("bdf"))
		seen[id] = true
		a, there := at[id]
		to := a.text("bdf")
		switch was, is := old.slots[bdf], now.slots[to]; {
		case !there:
			out = append(out, Change{Where: old.shown(bdf), What: "card", Before: c.text("name"), Effect: Gone, Why: "a card is gone"})
		case c.text("id") != "" && a.text("id") != "" && c.text("id") != a.text("id"):
			out = append(out, Change{Where: now.shown(to), What: "another card", Before: c.text("name") + " " + c.text("id"), After: a.text("name") + " " + a.text("id"), Effect: Changed})
		case was != is && was != "" && is != "":
			out = append(out, Change{Where: id, What: "place", Before: old.shown(bdf), After: now.shown(to), Effect: Moved})
		case to != bdf:
			out = append(out, Change{Where: id, What: "address", Before: bdf, After: to, Effect: Moved})
		}
	}
	for _, c := range after.list("cards") {
		if bdf := c.text("bdf"); !seen[now.scope(bdf)] {
			out = append(out, Change{Where: now.shown(bdf), What: "card", After: c.text("name"), Effect: Added})
		}
	}
	return out
}

// sorted puts what got worse first, and keeps what belongs together.
func sorted(out []Change) []Change {
	slices.SortStableFunc(out, func(a, b Change) int {
		if c := slices.Index(effects, a.Effect) - slices.Index(effects, b.Effect); c != 0 {
			return c
		}
		return strings.Compare(a.Where, b.Where)
	})
	return out
}

// Phrases are all fixed words of a comparison, so that a test can demand them in another language.
func Phrases() []string {
	out := []string{
		"card", "another card", "place", "address", "a card is gone", "cards are compared by address: no identity is known on both sides",
		"declared otherwise then than now (rig or profile): a verdict may have changed because of that", "IOMMU domain", "version", "works", "gives cards to containers by",
	}
	for _, rows := range [][]row{hostRows, cardRows, linkRows} {
		for _, r := range rows {
			out = append(out, r.label, r.why)
		}
	}
	for _, g := range groups {
		out = append(out, g.words)
	}
	for _, o := range operations {
		out = append(out, "P2P "+o.word)
	}
	out = append(out, "P2P copies", "speed under load", "lanes under load", "size", "speed", "rating", "topology", "P2P rate", "judged by preflight %s then and %s now: a verdict may have changed because a rule did")
	for _, course := range []string{"host to card", "card to host", "both ways"} {
		out = append(out, course+" with one card copying, %s", course+" with %s cards copying, %s")
	}
	for _, e := range effects {
		out = append(out, string(e))
	}
	for _, t := range turns {
		out = append(out, string(t))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
