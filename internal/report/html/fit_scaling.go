package html

import (
	"fmt"
	"strings"

	"preflight/internal/lang"
	"preflight/internal/workload"
)

// scalingCurve is the predicted speed-up by number of cards, with what healthy rigs reach and what was measured.
type scalingCurve struct {
	picture
	Bands []box
	Lines []line
	Marks []mark
	Dots  []box // W is the radius
}

func drawScaling(a workload.Assessment, l lang.Language) scalingCurve {
	if len(a.Scaling) < 2 {
		why := "Serving is not scaled by the step."
		if !a.Workload.Serving() {
			why = "The speed of cards or links is not known."
		}
		if a.Chosen == nil {
			why = "It does not fit, so there is no speed-up."
		}
		return scalingCurve{picture: none(l, why)}
	}
	c := scalingCurve{picture: picture{Title: l.Say("Speed-up by number of cards"), W: plotX + plotW + 16, H: plotY + plotH + 34, Cols: []string{l.Say("cards"), l.Say("speed-up"), l.Say("efficiency"), l.Say("healthy rigs"), l.Say("measured")}}}
	last := a.Scaling[len(a.Scaling)-1].Cards
	top := float64(last)
	for _, p := range a.Scaling {
		top = max(top, p.Measured)
	}
	x := func(n int) float64 { return plotX + float64(n)/float64(last)*plotW }
	y := func(v float64) float64 { return plotY + plotH - v/top*plotH }
	c.Lines = append(c.Lines, line{Path: fmt.Sprintf("M%s %sL%s %s", num(x(1)), num(y(1)), num(x(last)), num(y(float64(last)))), Class: "ideal", Tip: l.Say("linear")})
	var path strings.Builder
	for i, p := range a.Scaling {
		op := "L"
		if i == 0 {
			op = "M"
		}
		fmt.Fprintf(&path, "%s%s %s", op, num(x(p.Cards)), num(y(p.SpeedUp)))
		c.point(p, x, y, l)
	}
	c.Lines = append(c.Lines, line{Path: path.String(), Class: "run c0", Tip: l.Say("predicted")})
	for i := range 5 {
		v := top * float64(i) / 4
		c.Lines = append(c.Lines, line{Path: fmt.Sprintf("M%s %sH%s", num(plotX), num(y(v)), num(plotX+plotW)), Class: "grid"})
		c.Marks = append(c.Marks, mark{X: plotX - 6, Y: y(v) + 4, Text: num(v), Class: "tick", Anchor: "end"})
	}
	c.Desc = l.Say("Predicted speed-up over one card; the bars are what healthy rigs reach, the dashed line is linear.")
	return c
}

func (c *scalingCurve) point(p workload.Point, x func(int) float64, y func(float64) float64, l lang.Language) {
	c.Marks = append(c.Marks, mark{X: x(p.Cards), Y: plotY + plotH + 16, Text: fmt.Sprint(p.Cards), Class: "tick", Anchor: "middle"})
	healthy, measured := "–", "–"
	if p.Low > 0 {
		healthy = fmt.Sprintf("%.1f–%.1f", p.Low, p.High)
		c.Bands = append(c.Bands, box{X: x(p.Cards) - 5, Y: y(p.High), W: 10, H: y(p.Low) - y(p.High), Class: "band", Tip: l.Sayf("healthy rigs reach %.1f–%.1f", p.Low, p.High)})
	}
	c.Dots = append(c.Dots, box{X: x(p.Cards), Y: y(p.SpeedUp), W: 3.4, Class: "c0", Tip: fmt.Sprintf("%d: %.2f", p.Cards, p.SpeedUp)})
	if p.Measured > 0 {
		measured = fmt.Sprintf("%.2f", p.Measured)
		if p.Remark != "" {
			measured += " (" + l.Say(p.Remark) + ")"
		}
		c.Dots = append(c.Dots, box{X: x(p.Cards), Y: y(p.Measured), W: 4.2, Class: "c1", Tip: l.Sayf("measured %.2f", p.Measured)})
	}
	c.Table = append(c.Table, []string{fmt.Sprint(p.Cards), fmt.Sprintf("%.2f", p.SpeedUp), fmt.Sprintf("%.0f %%", 100*p.Efficiency), healthy, measured})
}
