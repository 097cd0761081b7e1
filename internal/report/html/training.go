package html

import (
	"math"

	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/sample"
)

// training is what a page shows of a scaling test: its rows, and how busy the cards were.
type training struct {
	Rows picture
	Busy *plot // nil where nothing was sampled
}

// drawTraining is nil where nothing was trained.
func drawTraining(g report.Rig, l lang.Language) *training {
	if g.Host == nil || g.Host.DDP == nil || g.Figures == nil || g.Figures.DDP == nil {
		return nil
	}
	out := &training{}
	out.Rows.Cols, out.Rows.Table = report.DDPTable(g.Figures.DDP, l)
	d := g.Host.DDP
	if d.Series == nil || len(d.Series.Cards) == 0 {
		return out
	}
	together := &facts.BurnIn{Series: d.Series}
	for _, st := range d.Stages { // the band is the time in which several cards trained together
		if len(st.Cards) > 1 && (together.End == 0 || st.Begin < together.Begin) {
			together.Begin = st.Begin
		}
		if len(st.Cards) > 1 {
			together.End = max(together.End, st.End)
		}
	}
	p := newPlot(together, sample.Utilization, "%", math.Max)
	if len(p.Lines) == 0 {
		return out
	}
	p.Caption, p.Title = l.Say("Utilisation over time"), l.Say("Utilisation over time")
	p.Desc = l.Say("One line for each card; the band is the time in which several cards trained together.")
	out.Busy = &p.plot
	return out
}
