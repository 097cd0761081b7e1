package report

import (
	"strings"

	"preflight/checks"
)

// fleetFrom is the number of rigs from which a report ends with a count: fewer are seen at a glance.
const fleetFrom = 4

// fleet counts many rigs by verdict, worst first.
func (t *textWriter) fleet(r *Report) {
	if len(r.Rigs) < fleetFrom {
		return
	}
	n, lost := map[checks.Verdict]int{}, 0
	for _, g := range r.Rigs {
		if g.Error != nil {
			lost++
			continue
		}
		n[g.Verdict]++
	}
	var parts []string
	for _, part := range []struct {
		n      int
		format string
	}{{n[checks.Fail], "%d fail"}, {n[checks.Warn], "%d warn"}, {n[checks.Unknown], "%d unknown"}, {n[checks.Pass] + n[checks.Skip], "%d pass"}, {lost, "%d not reached"}} {
		if part.n > 0 {
			parts = append(parts, t.say(part.format, part.n))
		}
	}
	if !t.o.Quiet {
		t.line("")
	}
	t.line("%s", t.say("%d rigs: ", len(r.Rigs))+strings.Join(parts, t.o.Lang.Say(", ")))
}
