package report

import (
	"fmt"

	"preflight/internal/facts"
	"preflight/internal/lang"
)

// conflictsShown is how many contradictions of the input a person reads; the JSON report holds all, under
// facts.conflicts.
const conflictsShown = 4

// Conflicts are where two sources of the input say different things of one fact, and which was used.
func Conflicts(h *facts.Host, l lang.Language) []string {
	var out []string
	for _, c := range h.Conflicts {
		out = append(out, l.Sayf("two sources disagree on %s: %s in %s, used; %s in %s", c.Path,
			fmt.Sprint(c.Used.Value), c.Used.Source, fmt.Sprint(c.Ignored.Value), c.Ignored.Source))
	}
	return out
}

// conflicts tells where two sources of the input say different things of one fact, and which was used.
func (t *textWriter) conflicts(g Rig) {
	if g.Host == nil {
		return
	}
	all := Conflicts(g.Host, t.o.Lang)
	for i, text := range all {
		if i == conflictsShown {
			t.wrapped("  "+t.label("note:"), 8, t.say("%d more contradictions: see facts.conflicts of --format json", len(all)-i))
			return
		}
		t.wrapped("  "+t.label("note:"), 8, Safe(text))
	}
}
