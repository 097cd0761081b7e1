package report

import (
	"encoding/json"
	"io"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/workload"
)

// LineSchema names the layout of the JSON lines; docs/formats.md describes it.
const LineSchema = "preflight/report-line/v1"

// Line is one line of the stream. Type says which of the others it has: "rig" comes when a rig is finished, "across" when
// all are (what shows only beside the other rigs of a group), "run" is the last.
type Line struct {
	Schema  string  `json:"schema"`
	Type    string  `json:"type"`
	Rig     *Rig    `json:"rig,omitempty"`
	Across  *Beside `json:"across,omitempty"`
	Tool    *Tool   `json:"tool,omitempty"`
	Run     *Run    `json:"run,omitempty"`
	Summary any     `json:"summary,omitempty"`

	Changes *diff.Result `json:"changes,omitempty"` // since another run, in the last line

	Fit []workload.Job `json:"fit,omitempty"` // of the inventory's workloads, in the last line
}

// Beside is what the whole run says of a rig beyond its own line.
type Beside struct {
	Name     string           `json:"name"`
	Verdict  checks.Verdict   `json:"verdict"`
	Findings []checks.Finding `json:"findings"` // of the checks across rigs
	Fixes    []Fix            `json:"fixes"`    // all of the rig, numbered anew
}

// acrossRigs are the checks whose findings need the other rigs: they are left out of a rig's line.
func acrossRigs(id string) bool { return id == "cluster.consistency" }

// RigLine writes the line of a rig that is finished, without the checks across rigs.
func RigLine(w io.Writer, g Rig) error {
	var own []checks.Finding
	for _, f := range g.Findings {
		if !acrossRigs(f.Check) {
			own = append(own, f)
		}
	}
	g.Findings = own
	if own == nil {
		g.Findings = []checks.Finding{}
	}
	return writeLine(w, Line{Type: "rig", Rig: &g})
}

// EndLines writes what is known when every rig is finished.
func EndLines(w io.Writer, r *Report) error {
	for _, g := range r.Rigs {
		beside := Beside{Name: g.Name, Verdict: g.Verdict, Findings: []checks.Finding{}, Fixes: g.Fixes}
		for _, f := range g.Findings {
			if acrossRigs(f.Check) {
				beside.Findings = append(beside.Findings, f)
			}
		}
		if len(beside.Findings) == 0 {
			continue
		}
		if err := writeLine(w, Line{Type: "across", Across: &beside}); err != nil {
			return err
		}
	}
	return writeLine(w, Line{Type: "run", Tool: &r.Tool, Run: &r.Run, Summary: r.Summary, Changes: r.Changes, Fit: r.Fit})
}

// WriteJSONL writes all lines of a report that is complete.
func WriteJSONL(w io.Writer, r *Report) error {
	for _, g := range r.Rigs {
		if err := RigLine(w, g); err != nil {
			return err
		}
	}
	return EndLines(w, r)
}

// writeLine writes a line in one call, so that a reader of the stream never sees half of one.
func writeLine(w io.Writer, l Line) error {
	l.Schema = LineSchema
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}
