package html

import (
	"fmt"
	"slices"
	"strings"

	"preflight/checks"
	"preflight/internal/report"
)

// fleetRow is a rig in the summary: a cell a group of checks.
type fleetRow struct {
	ID, Name, What string
	Verdict        checks.Verdict
	Lost           bool
	Cells          []fleetCell
}

type fleetCell struct {
	Verdict checks.Verdict // "" when the rig has no check of the group
	Group   string
	Tip     string
}

// groups are the first parts of the checks' ids, in the order of the report.
func groups(r *report.Report) []string {
	var out []string
	for _, g := range r.Rigs {
		for _, f := range g.Findings {
			if first, _, _ := strings.Cut(f.Check, "."); !slices.Contains(out, first) {
				out = append(out, first)
			}
		}
	}
	return out
}

func fleetRowOf(x rig, groups []string) fleetRow {
	row := fleetRow{ID: x.ID, Name: x.Name, What: x.What, Verdict: x.Verdict, Lost: x.Error != nil}
	for _, group := range groups {
		c := fleetCell{Group: group}
		var worst []string
		for _, f := range x.Findings {
			if first, _, _ := strings.Cut(f.Check, "."); first != group {
				continue
			}
			if c.Verdict == "" {
				c.Verdict = f.Verdict
			}
			c.Verdict = checks.Worst(c.Verdict, f.Verdict)
		}
		for _, f := range x.Findings {
			if first, _, _ := strings.Cut(f.Check, "."); first == group && f.Verdict == c.Verdict && !slices.Contains(worst, f.Check) {
				worst = append(worst, f.Check)
			}
		}
		c.Tip = fmt.Sprintf("%s: %s", x.Name, strings.Join(worst, ", "))
		row.Cells = append(row.Cells, c)
	}
	return row
}
