package report

import "fmt"

// conflictsShown is how many contradictions of the input a person reads; the JSON report holds all, under
// facts.conflicts.
const conflictsShown = 4

// conflicts tells where two sources of the input say different things of one fact, and which was used.
func (t *textWriter) conflicts(g Rig) {
	if g.Host == nil {
		return
	}
	for i, c := range g.Host.Conflicts {
		if i == conflictsShown {
			t.wrapped("  "+t.label("note:"), 8, t.say("%d more contradictions: see facts.conflicts of --format json", len(g.Host.Conflicts)-i))
			return
		}
		t.wrapped("  "+t.label("note:"), 8, Safe(t.say("two sources disagree on %s: %s in %s, used; %s in %s", c.Path,
			fmt.Sprint(c.Used.Value), c.Used.Source, fmt.Sprint(c.Ignored.Value), c.Ignored.Source)))
	}
}
