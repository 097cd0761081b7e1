package report

import (
	"time"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/diff"
	"preflight/internal/facts"
	"preflight/internal/workload"
)

// Schema names the JSON layout; docs/report.schema.json describes it.
const Schema = "preflight/report/v1"

// Report is everything that one run of check found.
type Report struct {
	Schema  string  `json:"schema"`
	Tool    Tool    `json:"tool"`
	Run     Run     `json:"run"`
	Summary Summary `json:"summary"`
	Rigs    []Rig   `json:"rigs"`

	Acceptance *Acceptance  `json:"acceptance,omitempty"` // of a hand-over
	Changes    *diff.Result `json:"changes,omitempty"`    // since another run

	Fit []workload.Job `json:"fit,omitempty"` // what the workloads of the inventory would find on these rigs
}

// Acceptance is what a hand-over adds: the answers for what no tool sees.
type Acceptance struct {
	Verdict string         `json:"verdict"` // accepted, refused, undecided
	Answers accept.Answers `json:"answers"`
}

// Tool is the program that made the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Run is when and how it was made; the only place for times.
type Run struct {
	At          time.Time `json:"at"`
	Source      string    `json:"source"` // "ssh", "local", "files"
	Seconds     float64   `json:"seconds"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Exit        int       `json:"exit"`
}

// Summary counts rigs by verdict, and findings of all rigs.
type Summary struct {
	Rigs     map[checks.Verdict]int `json:"rigs"`
	Findings map[checks.Verdict]int `json:"findings"`
	Failed   []string               `json:"unreachable"` // names of rigs that could not be reached
}

// Rig is one judged rig.
type Rig struct {
	Name     string           `json:"name"`
	Address  string           `json:"address,omitempty"`
	Verdict  checks.Verdict   `json:"verdict"`
	Error    *Failure         `json:"error,omitempty"` // why it could not be judged
	Facts    map[string]any   `json:"facts"`
	Findings []checks.Finding `json:"findings"`
	Fixes    []Fix            `json:"fixes"`
	Figures  *checks.Figures  `json:"figures,omitempty"` // what pictures are drawn of; absent for a rig without facts
	Required []string         `json:"required"`          // checks whose unknown counts against the rig, in the order of the findings
	Notes    []string         `json:"notes,omitempty"`   // files that were not read, items without root …

	Host *facts.Host `json:"-"`
	// Declared says where a check's declaration stands in the inventory, by check; "" is the rig's block.
	Declared map[string]Place `json:"-"`
	Line     string           `json:"-"` // where the rig is declared, "rigs.hcl:31"
}

// Failure is a rig that gave no facts.
type Failure struct {
	Phase   string   `json:"phase"`
	Summary string   `json:"summary"`
	Advice  []string `json:"advice,omitempty"`
}

// Fix is how to mend one kind of fault on this rig's board.
type Fix struct {
	Number int      `json:"number"`
	Code   string   `json:"code"`
	Title  string   `json:"title"`
	Steps  []Step   `json:"steps"`
	Reboot string   `json:"reboot"` // "yes", "no" or when
	Verify string   `json:"verify"`
	Clears []string `json:"clears"` // ids of the findings that it mends or explains
}

// Step is one thing to do.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	Menu    string `json:"menu,omitempty"`
}

// Finish fills the counts from the rigs.
func (r *Report) Finish() {
	r.Summary = Summary{Rigs: map[checks.Verdict]int{}, Findings: map[checks.Verdict]int{}, Failed: []string{}}
	for _, g := range r.Rigs {
		r.Summary.Rigs[g.Verdict]++
		if g.Error != nil {
			r.Summary.Failed = append(r.Summary.Failed, g.Name)
		}
		for _, f := range g.Findings {
			r.Summary.Findings[f.Verdict]++
		}
	}
}
