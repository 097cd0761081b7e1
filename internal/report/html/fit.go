package html

import (
	"fmt"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/workload"
)

// fitJob is one workload as the page shows it.
type fitJob struct {
	Name    string
	Title   string
	Assumed string
	Rigs    []fitRig
	Others  []fitRow // machines to compare with
	Open    []workload.Open
	Costs   picture // a table
}

// fitRow is one machine in a line.
type fitRow struct {
	Verdict checks.Verdict
	Head    string
	Fit     string
	Speed   string
	Summary string
	Changes string
}

// fitRig is one machine whole.
type fitRig struct {
	fitRow
	Steps      []fitStep
	Answers    []string
	Command    string
	Notes      []string
	Memory     stack
	Scaling    scalingCurve
	Strategies picture // a table
	Pace       []string
}

type fitStep struct {
	Good               bool
	Step, Number, Text string
}

// fitJobs makes the jobs of a report ready, in the language l.
func fitJobs(r *report.Report, l lang.Language) []fitJob {
	var out []fitJob
	for _, j := range r.Fit {
		x := fitJob{Name: j.Name, Title: j.Title, Open: sayOpen(j.Open, l), Costs: drawCosts(j, l)}
		var assumed []string
		for _, s := range j.Assumed {
			assumed = append(assumed, l.Say(s))
		}
		x.Assumed = strings.Join(assumed, l.Say(", "))
		for _, a := range j.Assessments {
			x.Rigs = append(x.Rigs, fitRigOf(a, l))
		}
		for _, a := range j.References {
			x.Others = append(x.Others, fitRowOf(a, l))
		}
		out = append(out, x)
	}
	return out
}

func sayOpen(list []workload.Open, l lang.Language) []workload.Open {
	var out []workload.Open
	for _, o := range list {
		out = append(out, workload.Open{Rig: o.Rig, Why: l.Say(o.Why)})
	}
	return out
}

func fitRowOf(a workload.Assessment, l lang.Language) fitRow {
	row := fitRow{Verdict: report.FitVerdict(a), Head: report.FitHead(a.Rig), Fit: l.Say(a.Fit), Summary: l.Say(a.Summary), Changes: l.Say(strings.Join(a.Changes, "; "))}
	if a.Chosen != nil && a.Rig.Cards > 1 {
		row.Speed = l.Say(report.SpeedWords(a.Speed))
	}
	return row
}

func fitRigOf(a workload.Assessment, l lang.Language) fitRig {
	x := fitRig{fitRow: fitRowOf(a, l), Memory: drawMemory(a, l), Scaling: drawScaling(a, l), Strategies: strategyTable(a, l), Pace: report.FitPace(a, l)}
	for _, s := range a.Steps {
		x.Steps = append(x.Steps, fitStep{s.Good, l.Say(s.Step), l.Say(s.Number), l.Say(s.Text)})
	}
	for _, s := range a.Answers {
		x.Answers = append(x.Answers, l.Sayf("“%s”: %s", l.Say(s.Claim), l.Say(s.Text)))
	}
	if a.Launch != nil {
		x.Command = a.Launch.Command
		for _, e := range a.Launch.Env {
			x.Notes = append(x.Notes, e.Name+l.Say(": ")+l.Say(e.Why))
		}
		if a.Launch.Docker != "" {
			x.Notes = append(x.Notes, l.Say("in Docker:")+" "+a.Launch.Docker)
		}
		for _, n := range a.Launch.Notes {
			x.Notes = append(x.Notes, l.Say(n))
		}
	}
	return x
}

// strategyTable ranks the strategies.
func strategyTable(a workload.Assessment, l lang.Language) picture {
	p := picture{Cols: []string{"", l.Say("strategy"), l.Say("GB a card"), l.Say("pace"), l.Say("because")}}
	for _, o := range a.Options {
		need, why := fmt.Sprintf("%.1f", o.Memory.Total()/1e9), o.Reason
		switch {
		case o.Impossible != "":
			need, why = "–", o.Impossible
		case !o.Fits:
			need += " ✗"
		}
		p.Table = append(p.Table, []string{fmt.Sprint(o.Rank), o.Strategy, need, report.Pace(a, o), l.Say(why)})
	}
	return p
}

// drawCosts is the cost table.
func drawCosts(j workload.Job, l lang.Language) picture {
	p := picture{Cols: []string{l.Say("machine"), l.Say("hours and cost")}}
	for _, c := range j.Costs {
		p.Table = append(p.Table, []string{c.Rig, report.FitCost(c, l)})
	}
	return p
}
