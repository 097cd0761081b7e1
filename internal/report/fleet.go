package report

import (
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
)

// fleetFrom is the number of rigs from which a report ends with a count: fewer are seen at a glance.
const fleetFrom = 4

// tally is "300 rigs: 2 fail, 297 pass, 1 not reached", worst first.
func tally(r *Report, l lang.Language) string {
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
			parts = append(parts, l.Sayf(part.format, part.n))
		}
	}
	head := "%d rigs: "
	if len(r.Rigs) == 1 {
		head = "%d rig: "
	}
	return l.Sayf(head, len(r.Rigs)) + strings.Join(parts, l.Say(", "))
}

// fleet ends a report of many rigs.
func (t *textWriter) fleet(r *Report) {
	if len(r.Rigs) < fleetFrom {
		return
	}
	if !t.o.Quiet {
		t.line("")
	}
	t.line("%s", tally(r, t.o.Lang))
}
