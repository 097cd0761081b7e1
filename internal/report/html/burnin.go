package html

import (
	"fmt"
	"math"
	"strings"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/sample"
)

// burnIn is what a page shows of a burn-in: sentences, curves over time, and tables.
type burnIn struct {
	Words []string
	Plots []plot
	Cards picture
	Caps  picture
	Notes []string // what happened, with its time
}

// plot is one metric of all cards over time.
type plot struct {
	picture
	Caption string
	Bands   []box
	Lines   []line
	Marks   []mark
	Legend  []mark
}

// Sizes of a plot over time.
const (
	timeX, timeY = 44.0, 12.0
	timeW, timeH = 440.0, 150.0
	mostPoints   = 240 // of one line: more is not seen
)

// drawBurnIn is nil where no card was under load.
func drawBurnIn(g report.Rig, l lang.Language) *burnIn {
	if g.Host == nil || g.Host.BurnIn == nil || g.Figures == nil || g.Figures.BurnIn == nil {
		return nil
	}
	b, f := g.Host.BurnIn, g.Figures.BurnIn
	out := &burnIn{Words: report.BurnWords(f, l)}
	if b.Ended != facts.BurnDone && b.Text != "" {
		out.Words = append(out.Words, report.Safe(b.Text))
	}
	out.Cards = picture{Title: l.Say("Cards under load")}
	out.Cards.Cols, out.Cards.Table = report.BurnTable(f, l)
	if len(f.Caps) > 0 {
		out.Caps = picture{Title: l.Say("Power caps")}
		out.Caps.Cols, out.Caps.Table = report.CapTable(f, l)
	}
	if b.Series == nil || len(b.Series.Cards) == 0 {
		return out
	}
	for _, e := range b.Series.Events {
		out.Notes = append(out.Notes, fmt.Sprintf("%s  %s", clock(e.At.Seconds()), report.Safe(e.Text)))
	}
	for _, m := range []struct {
		metric  sample.Metric
		caption string
		unit    string
		pick    func(a, b float64) float64
	}{
		{sample.Temperature, "Temperature over time", "°C", math.Max},
		{sample.Power, "Power over time", "W", math.Max},
		{sample.CoreClock, "Clock over time", "MHz", math.Min},
	} {
		p := newPlot(b, m.metric, m.unit, m.pick)
		if len(p.Lines) == 0 {
			continue
		}
		p.Caption, p.Title = l.Say(m.caption), l.Say(m.caption)
		p.Desc = l.Say("One line for each card; the band is the time under load; below, when heat or a brake held a card back.")
		p.limits(b, f, m.metric, l)
		out.Plots = append(out.Plots, p.plot)
	}
	return out
}

// plotter draws one plot; x and y turn seconds and values into places.
type plotter struct {
	plot
	end, top, bottom float64
}

func (p *plotter) x(s float64) float64 { return timeX + s/p.end*timeW }
func (p *plotter) y(v float64) float64 { return timeY + timeH - (v-p.bottom)/(p.top-p.bottom)*timeH }

func newPlot(b *facts.BurnIn, m sample.Metric, unit string, pick func(a, b float64) float64) *plotter {
	p := &plotter{end: 1}
	for _, t := range b.Series.Cards {
		for i, v := range t.Column(m) {
			p.end = max(p.end, t.At[i].Seconds())
			if !math.IsNaN(v) {
				p.top = max(p.top, v)
			}
		}
		if m == sample.Power {
			for _, v := range t.Column(sample.PowerLimit) {
				if !math.IsNaN(v) {
					p.top = max(p.top, v)
				}
			}
		}
	}
	if m == sample.Temperature {
		p.bottom, p.top = 20, max(95, p.top)
	}
	p.top = p.bottom + 4*stepOf((p.top-p.bottom)/4)
	p.W = timeX + timeW + 16
	p.axes(unit)
	p.Bands = append(p.Bands, box{X: p.x(b.Begin), Y: timeY, W: p.x(min(b.End, p.end)) - p.x(b.Begin), H: timeH, Class: "band"})
	n := 0
	for i, t := range b.Series.Cards {
		if path := p.path(t, m, pick); path != "" {
			class := cardClass(i)
			p.Lines = append(p.Lines, line{Path: path, Class: "run " + class, ID: t.BDF, Tip: t.BDF})
			p.Legend = append(p.Legend, mark{X: timeX + 18 + float64(n%4)*112, Y: timeY + timeH + 40 + float64(n/4)*16, Text: t.BDF, Class: class})
			n++
		}
	}
	p.held(b, n)
	if n == 0 {
		p.Lines = nil
	}
	return p
}

// cardClass is how the line of the i-th card looks: four colours, solid and then dashed.
func cardClass(i int) string {
	if i >= 4 {
		return fmt.Sprintf("c%d dashed", i%4)
	}
	return fmt.Sprintf("c%d", i)
}

// path joins the values of a card, at most mostPoints of them: of several that fall together the one that matters stays. Where
// nothing was told the line is broken.
func (p *plotter) path(t *sample.Track, m sample.Metric, pick func(a, b float64) float64) string {
	var out strings.Builder
	column, step := t.Column(m), max(1, (len(t.At)+mostPoints-1)/mostPoints)
	pen := "M"
	for i := 0; i < len(column); i += step {
		v, at := math.NaN(), t.At[i].Seconds()
		for j := i; j < min(i+step, len(column)); j++ {
			switch {
			case math.IsNaN(column[j]):
			case math.IsNaN(v):
				v = column[j]
			default:
				v = pick(v, column[j])
			}
		}
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&out, "%s%s %s", pen, num(p.x(at)), num(p.y(v)))
		pen = "L"
	}
	return out.String()
}

func (p *plotter) axes(unit string) {
	for i := range 5 {
		v := p.bottom + (p.top-p.bottom)*float64(i)/4
		p.Lines = append(p.Lines, line{Path: fmt.Sprintf("M%s %sH%s", num(timeX), num(p.y(v)), num(timeX+timeW)), Class: "grid"})
		p.Marks = append(p.Marks, mark{X: timeX - 6, Y: p.y(v) + 4, Text: num(v), Class: "tick", Anchor: "end"})
	}
	p.Marks = append(p.Marks, mark{X: timeX + 4, Y: timeY + 10, Text: unit, Class: "tick"})
	for i := range 5 {
		s := p.end * float64(i) / 4
		anchor := map[int]string{0: "start", 4: "end"}[i]
		if anchor == "" {
			anchor = "middle"
		}
		p.Marks = append(p.Marks, mark{X: p.x(s), Y: timeY + timeH + 16, Text: clock(s), Class: "tick", Anchor: anchor})
	}
}

// held draws under the plot, in a strip for each card, when heat or a brake held it back.
func (p *plotter) held(b *facts.BurnIn, lines int) {
	y := timeY + timeH + 34 + float64((lines+3)/4)*16
	for _, t := range b.Series.Cards {
		from, until := -1.0, 0.0
		flush := func() {
			if from >= 0 {
				p.Bands = append(p.Bands, box{X: p.x(from), Y: y, W: max(2, p.x(until)-p.x(from)), H: 5, Class: "bad", ID: t.BDF, Tip: fmt.Sprintf("%s %s–%s", t.BDF, clock(from), clock(until))})
			}
			from = -1
		}
		any := false
		for i, v := range t.Values {
			at := t.At[i].Seconds()
			if !v.Has(sample.ReasonBad) {
				flush()
				continue
			}
			if any = true; from < 0 {
				from = at
			}
			until = at
		}
		flush()
		if any {
			p.Marks = append(p.Marks, mark{X: timeX - 6, Y: y + 6, Text: t.BDF[5:7], Class: "tick", Anchor: "end"})
			y += 8
		}
	}
	p.H = y + 4
}

// limits are the lines that a curve is held against, and what happened at a time.
func (p *plotter) limits(b *facts.BurnIn, f *checks.BurnFigure, m sample.Metric, l lang.Language) {
	switch m {
	case sample.Temperature:
		p.level(f.Hot, 12, l.Sayf("fails above %.0f °C", f.Hot), "need")
		if b.Abort > 0 && b.Abort < p.top {
			p.level(b.Abort, -3, l.Sayf("stops at %.0f °C", b.Abort), "usable short")
		}
	case sample.Power:
		t := b.Series.Cards[0]
		if path := p.path(t, sample.PowerLimit, math.Max); path != "" {
			p.Lines = append(p.Lines, line{Path: path, Class: "need", Tip: l.Say("power limit")})
		}
	}
	for _, e := range b.Series.Events {
		if e.Kind == "xid" {
			x := p.x(e.At.Seconds())
			p.Lines = append(p.Lines, line{Path: fmt.Sprintf("M%s %sV%s", num(x), num(timeY), num(timeY+timeH)), Class: "usable short", Tip: e.Text})
			p.Marks = append(p.Marks, mark{X: x + 3, Y: timeY + 22, Text: fmt.Sprintf("Xid %d", e.Xid), Class: "usable short"})
		}
	}
}

// level draws a value over the whole time, with its words above it (below 0) or beneath it.
func (p *plotter) level(v, beside float64, text, class string) {
	p.Lines = append(p.Lines, line{Path: fmt.Sprintf("M%s %sH%s", num(timeX), num(p.y(v)), num(timeX+timeW)), Class: class})
	p.Marks = append(p.Marks, mark{X: timeX + timeW - 4, Y: p.y(v) + beside, Text: text, Class: class, Anchor: "end"})
}

// stepOf is a round step at or above v, for an axis of four.
func stepOf(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if v <= m*p*1.0001 {
			return m * p
		}
	}
	return 10 * p
}

// clock writes seconds as minutes and seconds.
func clock(s float64) string { return fmt.Sprintf("%d:%02d", int(s)/60, int(s)%60) }
