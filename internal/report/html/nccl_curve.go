package html

import (
	"fmt"
	"math"
	"strings"

	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// Sizes of the curve.
const (
	plotX, plotY = 44.0, 12.0
	plotW, plotH = 440.0, 190.0
)

// curve is bus bandwidth by size, with the band that was expected.
type curve struct {
	picture
	Bands  []box
	Lines  []line
	Marks  []mark
	Dots   []box // W is the radius
	Legend []mark
}

func drawCurve(g report.Rig, l lang.Language) curve {
	runs := drawable(g)
	if len(runs) == 0 {
		return curve{picture: none(l, "No all-reduce was measured: preflight probe nccl.")}
	}
	c := curve{picture: picture{Title: l.Say("All-reduce"), W: plotX + plotW + 16, Cols: []string{l.Say("run"), l.Say("size"), l.Say("bus bandwidth, GB/s"), l.Say("wrong values")}}}
	least, most, top := int64(math.MaxInt64), int64(0), 0.0
	for _, r := range runs {
		for _, row := range r.Rows {
			least, most, top = min(least, row.Bytes), max(most, row.Bytes), max(top, row.BusBW)
		}
	}
	for _, f := range g.Figures.AllReduce {
		top = max(top, f.Links, f.Ideal)
	}
	top = nice(top * 1.05)
	x := func(b int64) float64 {
		if most == least {
			return plotX + plotW/2
		}
		return plotX + (math.Log2(float64(b))-math.Log2(float64(least)))/(math.Log2(float64(most))-math.Log2(float64(least)))*plotW
	}
	y := func(v float64) float64 { return plotY + plotH - v/top*plotH }
	c.axes(least, most, top, x, y)
	c.expected(g, y, l)
	for i, r := range runs {
		c.run(i, r, x, y, l)
	}
	c.H = plotY + plotH + 30 + float64(len(runs))*16
	c.Desc = l.Say("Bus bandwidth by the size that each card holds; the band is what the links allow.")
	return c
}

// drawable are the runs that have figures.
func drawable(g report.Rig) []facts.NCCLRun {
	var out []facts.NCCLRun
	if g.Host == nil || g.Figures == nil {
		return nil
	}
	for _, r := range g.Host.NCCL {
		if len(r.Rows) > 0 {
			out = append(out, r)
		}
	}
	return out
}

func (c *curve) axes(least, most int64, top float64, x func(int64) float64, y func(float64) float64) {
	for i := range 5 {
		v := top * float64(i) / 4
		c.Lines = append(c.Lines, line{Path: fmt.Sprintf("M%s %sH%s", num(plotX), num(y(v)), num(plotX+plotW)), Class: "grid"})
		c.Marks = append(c.Marks, mark{X: plotX - 6, Y: y(v) + 4, Text: num(v), Class: "tick", Anchor: "end"})
	}
	c.Marks = append(c.Marks, mark{X: plotX + 4, Y: plotY + 10, Text: "GB/s", Class: "tick"})
	last := -100.0
	for b := least; b <= most && b > 0; b *= 2 {
		if x(b)-last < 58 {
			continue
		}
		last = x(b)
		c.Marks = append(c.Marks, mark{X: last, Y: plotY + plotH + 16, Text: bytesOf(b), Class: "tick", Anchor: "middle"})
	}
}

// expected is the band from what passes to what the links allow, and the line of what cards and slots could.
func (c *curve) expected(g report.Rig, y func(float64) float64, l lang.Language) {
	if len(g.Figures.AllReduce) == 0 {
		return
	}
	f := g.Figures.AllReduce[0]
	c.Bands = append(c.Bands, box{X: plotX, Y: y(f.Links), W: plotW, H: y(f.Pass) - y(f.Links), Class: "band", Tip: l.Sayf("expected: %.1f to %.1f GB/s (%s)", f.Pass, f.Links, f.Why)})
	c.Marks = append(c.Marks, mark{X: plotX + plotW - 4, Y: y(f.Links) - 4, Text: l.Sayf("links allow %.1f", f.Links), Class: "note", Anchor: "end"})
	c.Table = append(c.Table, []string{l.Say("expected of the links"), "", fmt.Sprintf("%.2f", f.Links), ""}, []string{l.Say("passes from"), "", fmt.Sprintf("%.2f", f.Pass), ""})
	if f.Ideal > f.Links*1.01 {
		c.Lines = append(c.Lines, line{Path: fmt.Sprintf("M%s %sH%s", num(plotX), num(y(f.Ideal)), num(plotX+plotW)), Class: "ideal"})
		c.Marks = append(c.Marks, mark{X: plotX + 40, Y: y(f.Ideal) - 4, Text: l.Sayf("cards and slots could %.1f", f.Ideal), Class: "note"})
		c.Table = append(c.Table, []string{l.Say("cards and slots at their best"), "", fmt.Sprintf("%.2f", f.Ideal), ""})
	}
}

func (c *curve) run(i int, r facts.NCCLRun, x func(int64) float64, y func(float64) float64, l lang.Language) {
	name := runName(r, l)
	class := fmt.Sprintf("c%d", i%4)
	var path strings.Builder
	for j, row := range r.Rows {
		op := "L"
		if j == 0 {
			op = "M"
		}
		fmt.Fprintf(&path, "%s%s %s", op, num(x(row.Bytes)), num(y(row.BusBW)))
		c.Dots = append(c.Dots, box{X: x(row.Bytes), Y: y(row.BusBW), W: 3.4, Class: class, Tip: fmt.Sprintf("%s, %s: %.2f GB/s", name, bytesOf(row.Bytes), row.BusBW)})
		wrong := fmt.Sprint(row.Wrong)
		if row.Wrong < 0 {
			wrong = l.Say("not checked")
		}
		c.Table = append(c.Table, []string{name, bytesOf(row.Bytes), fmt.Sprintf("%.2f", row.BusBW), wrong})
	}
	c.Lines = append(c.Lines, line{Path: path.String(), Class: "run " + class, Tip: name})
	c.Legend = append(c.Legend, mark{X: plotX + 18, Y: plotY + plotH + 38 + float64(i)*16, Text: name, Class: class})
}

// runName says with what and how a run was made.
func runName(r facts.NCCLRun, l lang.Language) string {
	parts := []string{r.Engine}
	switch r.Layout {
	case "single":
		parts = append(parts, l.Say("one process"))
	case "ranks":
		parts = append(parts, l.Say("a process for each card"))
	}
	switch {
	case r.NoP2P:
		parts = append(parts, l.Say("without P2P"))
	case r.Transport != "":
		parts = append(parts, r.Transport)
	}
	return report.Safe(strings.Join(parts, ", "))
}
