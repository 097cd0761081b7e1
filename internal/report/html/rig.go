package html

import (
	"fmt"
	"strings"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// rig is one rig as the page shows it.
type rig struct {
	report.Rig
	ID        string // of its section
	What      string // hardware
	Faults    int
	Rows      []faultRow
	Unknowns  []report.UnknownGroup
	Passed    []checks.Finding
	Counts    []count
	Key       []keyFact
	Answers   []accept.Answer
	Conflicts []string
	Folded    bool

	Tree     tree
	Chassis  chassis
	Power    power
	Bars     barMap
	Curve    curve
	Matrix   matrix
	Burn     *burnIn   // nil where no card was under load
	Training *training // nil where nothing was trained
	Rates    picture   // copies between host and cards, as a table
}

// faultRow is a warn or a fail with its words.
type faultRow struct {
	Finding checks.Finding
	Text    string
	Fix     int
	Effects []faultRow
}

// keyFact is a fact that people look for first.
type keyFact struct{ Name, Value string }

func newRig(r *report.Report, i int, l lang.Language) rig {
	g := r.Rigs[i]
	x := rig{Rig: g, ID: fmt.Sprintf("rig-%d", i+1), What: report.Describe(g), Unknowns: report.Unknowns(g)}
	cards := 0
	if g.Host != nil {
		cards = len(g.Host.Cards)
	}
	for _, row := range report.Rows(g) {
		x.Rows = append(x.Rows, faultRowOf(row, cards, l))
		if row.Finding.Verdict == checks.Fail {
			x.Faults++
		}
	}
	for _, f := range g.Findings {
		if f.Verdict == checks.Pass || f.Verdict == checks.Skip {
			x.Passed = append(x.Passed, f)
		}
	}
	x.Counts = countChecks(g)
	if r.Acceptance != nil {
		x.Answers = r.Acceptance.Answers.Rigs[g.Name]
	}
	if g.Error != nil || g.Host == nil {
		return x
	}
	x.Key, x.Conflicts = keyFacts(g, l), report.Conflicts(g.Host, l)
	x.Tree, x.Chassis, x.Power = drawTree(g, l), drawChassis(g, l), drawPower(g, l)
	x.Bars, x.Curve, x.Matrix, x.Rates = drawBars(g, l), drawCurve(g, l), drawMatrix(g, l), rates(g, l)
	x.Burn = drawBurnIn(g, l)
	x.Training = drawTraining(g, l)
	return x
}

func faultRowOf(row report.Row, cards int, l lang.Language) faultRow {
	out := faultRow{Finding: row.Finding, Text: row.Text(l, cards), Fix: row.Fix}
	for _, e := range row.Effects {
		out.Effects = append(out.Effects, faultRowOf(e, cards, l))
	}
	return out
}

// countChecks counts checks by their worst finding.
func countChecks(g report.Rig) []count {
	worst := map[string]checks.Verdict{}
	for _, f := range g.Findings {
		if v, ok := worst[f.Check]; ok {
			worst[f.Check] = checks.Worst(v, f.Verdict)
		} else {
			worst[f.Check] = f.Verdict
		}
	}
	n := map[checks.Verdict]int{}
	for _, v := range worst {
		n[v]++
	}
	var out []count
	for _, v := range []checks.Verdict{checks.Fail, checks.Warn, checks.Unknown, checks.Pass, checks.Skip} {
		if n[v] > 0 {
			out = append(out, count{v, n[v]})
		}
	}
	return out
}

// keyFacts are what somebody asks first of a rig; what was not read is left out.
func keyFacts(g report.Rig, l lang.Language) []keyFact {
	h := g.Host
	var out []keyFact
	add := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			out = append(out, keyFact{l.Say(name), report.Safe(value)})
		}
	}
	add("address", g.Address)
	add("BIOS", strings.TrimSpace(h.BIOS.Version.Value+" "+h.BIOS.Date.Value))
	add("driver", h.Driver.Version.Value)
	add("system", h.OS.Distro.Value)
	add("kernel", h.OS.Kernel.Value)
	if m, ok := facts.First(h.Memory.InstalledMiB, h.Memory.TotalMiB).Get(); ok {
		add("host memory", fmt.Sprintf("%.0f GiB", float64(m)/1024))
	}
	if n, ok := h.CPU.Cores.Get(); ok {
		add("cores", fmt.Sprint(n))
	}
	if n, ok := h.CPU.Sockets.Get(); ok {
		add("sockets", fmt.Sprint(n))
	}
	return out
}

// rates are the copies between host and cards.
func rates(g report.Rig, l lang.Language) picture {
	if len(g.Host.Rates) == 0 {
		return picture{}
	}
	p := picture{Title: l.Say("Host to card"), Cols: []string{l.Say("card"), l.Say("direction"), l.Say("cards at once"), "GB/s", l.Say("spread")}}
	words := map[string]string{"h2d": "host to card", "d2h": "card to host", "both": "both ways"}
	for _, r := range g.Host.Rates {
		p.Table = append(p.Table, []string{r.BDF, l.Say(words[r.Direction]), fmt.Sprint(r.Cards), fmt.Sprintf("%.2f", r.Best), fmt.Sprintf("%.0f %%", 100*r.Spread)})
	}
	return p
}
