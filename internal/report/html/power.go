package html

import (
	"fmt"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// Sizes of the power bars.
const (
	barX     = 8.0
	barW     = 604.0
	barH     = 30.0
	powerRow = 92.0
)

// power is the draw as stacked bars, one for each pool of supplies and one for the mains.
type power struct {
	picture
	Boxes []box
	Lines []line
	Marks []mark
}

func drawPower(g report.Rig, l lang.Language) power {
	if g.Figures == nil || len(g.Figures.Power) == 0 {
		return power{picture: none(l, "The power limits of the cards are not known.")}
	}
	p := power{picture: picture{Title: l.Say("Power budget"), Cols: []string{l.Say("part"), l.Say("watts"), l.Say("source")}, W: barX + barW + 12}}
	most := 0.0
	for _, f := range g.Figures.Power {
		most = max(most, f.Total()*f.Margin, f.Usable)
	}
	scale := func(w float64) float64 { return w / most * barW }
	for i, f := range g.Figures.Power {
		p.pool(f, float64(i)*powerRow, scale, l)
	}
	p.H = float64(len(g.Figures.Power)) * powerRow
	if m := g.Figures.Mains; m != nil {
		p.mains(*m, p.H, l)
		p.H += powerRow
	}
	p.Desc = l.Say("Draw at full load, stacked, against what the supplies give and what policy asks for.")
	return p
}

// pool draws one stack against its supplies.
func (p *power) pool(f checks.PowerFigure, y float64, scale func(float64) float64, l lang.Language) {
	total := f.Total()
	head := l.Sayf("%.0f W draw", total)
	if f.Usable > 0 {
		head = l.Sayf("%.0f W usable ÷ %.0f W draw = %.2f, %s wanted", f.Usable, total, f.Usable/total, num(f.Margin))
		p.Table = append(p.Table, []string{l.Say("supplies, usable"), num(f.Usable), f.Rating})
	} else {
		head += l.Say("; no supply is declared")
	}
	p.Marks = append(p.Marks, mark{X: barX, Y: y + 16, Text: head, Class: "head"})
	x := barX
	for i, part := range f.Lines {
		w := scale(part.Watts)
		b := box{X: x, Y: y + 26, W: w, H: barH, Class: fmt.Sprintf("watts %s t%d", part.Kind, i%2), ID: part.What, Tip: fmt.Sprintf("%s: %s W", report.Safe(part.What), num(part.Watts))}
		if w > 34 {
			b.Text = fmt.Sprintf("%.0f", part.Watts)
		}
		p.Boxes = append(p.Boxes, b)
		x += w
		p.Table = append(p.Table, []string{l.Say(part.What), num(part.Watts), part.Source})
	}
	p.Table = append(p.Table, []string{l.Say("sum"), num(total), ""})
	need := barX + scale(total*f.Margin)
	p.limit(need, y, "need", l.Sayf("%.0f W wanted", total*f.Margin), false)
	if f.Usable > 0 {
		class := "usable"
		if f.Usable < total*f.Margin {
			class = "usable short"
		}
		p.limit(barX+scale(f.Usable), y, class, l.Sayf("%.0f W usable", f.Usable), true)
	}
}

// limit is a line across a bar, its word above or below.
func (p *power) limit(x, y float64, class, text string, below bool) {
	p.Lines = append(p.Lines, line{Path: fmt.Sprintf("M%s %sV%s", num(x), num(y+21), num(y+26+barH+5)), Class: class})
	at := mark{X: min(x, barX+barW-70), Y: y + 26 + barH + 18, Text: text, Class: class, Anchor: "middle"}
	at.X = max(at.X, 60)
	if !below {
		at.Y, at.Anchor = y+16, "end"
		at.X = barX + barW
	}
	p.Marks = append(p.Marks, at)
}

// mains draws the same watts at the wall, on a scale of its own.
func (p *power) mains(m checks.MainsFigure, y float64, l lang.Language) {
	scale := func(w float64) float64 { return w / max(m.Wall, m.Limit) * barW }
	p.Marks = append(p.Marks, mark{X: barX, Y: y + 16, Text: l.Sayf("%.0f W at the wall, %.0f W allowed", m.Wall, m.Limit), Class: "head"})
	class := "watts wall"
	if m.Wall > m.Limit {
		class = "watts wall over"
	}
	p.Boxes = append(p.Boxes, box{X: barX, Y: y + 26, W: scale(m.Wall), H: barH, Class: class, ID: "mains", Text: fmt.Sprintf("%.0f", m.Wall), Tip: l.Say("at the wall")})
	p.limit(barX+scale(m.Limit), y, "usable", l.Sayf("%.0f W allowed", m.Limit), true)
	p.Table = append(p.Table, []string{l.Say("at the wall"), num(m.Wall), ""}, []string{l.Say("circuits allow"), num(m.Limit), ""})
}
