package html

import (
	"fmt"

	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// matrix is what copies between cards reached, else how the driver says they are joined.
type matrix struct {
	picture
	Cells []box
	Marks []mark
}

// cell is one ordered pair.
type cell struct {
	text string
	rate float64 // GB/s; 0 when not measured
	bad  bool
	path string
}

func drawMatrix(g report.Rig, l lang.Language) matrix {
	if g.Host == nil || len(g.Host.Cards) < 2 {
		return matrix{picture: none(l, "A single card has no other to talk to.")}
	}
	cells := pairs(g.Host, l)
	if len(cells) == 0 {
		return matrix{picture: none(l, "Nothing was measured between cards, and the driver did not say how they are joined: preflight probe links.")}
	}
	const left, top, w, h = 40.0, 24.0, 58.0, 34.0
	cards := g.Host.Cards
	m := matrix{picture: picture{Title: l.Say("Card to card"), Cols: []string{l.Say("from"), l.Say("to"), l.Say("path"), "GB/s"}}}
	most := 0.0
	for _, c := range cells {
		most = max(most, c.rate)
	}
	for i, from := range cards {
		m.Marks = append(m.Marks, mark{X: left - 8, Y: top + float64(i)*h + 21, Text: fmt.Sprint(i), Class: "label", Anchor: "end"}, mark{X: left + float64(i)*w + w/2, Y: top - 8, Text: fmt.Sprint(i), Class: "label", Anchor: "middle"})
		for j, to := range cards {
			b := box{X: left + float64(j)*w, Y: top + float64(i)*h, W: w - 2, H: h - 2, Class: "cell self", ID: from.BDF + "+" + to.BDF}
			if c, ok := cells[[2]string{from.BDF, to.BDF}]; ok && i != j {
				b.Text, b.Class = c.text, "cell "+heat(c, most)
				b.Tip = fmt.Sprintf("%s → %s: %s", from.BDF, to.BDF, c.path)
				m.Table = append(m.Table, []string{from.BDF, to.BDF, c.path, rateOr(c.rate)})
			} else if i != j {
				b.Class, b.Text = "cell none", "–"
			}
			m.Cells = append(m.Cells, b)
		}
	}
	m.W, m.H = left+float64(len(cards))*w+4, top+float64(len(cards))*h+4
	m.Desc = l.Say("Rows send, columns receive; GB/s where it was measured, else how the driver joins them.")
	return m
}

// pairs are the best verified copies of each ordered pair, and the driver's word where none was made.
func pairs(h *facts.Host, l lang.Language) map[[2]string]cell {
	out := map[[2]string]cell{}
	for _, t := range h.Topo {
		if t.A != t.B {
			out[[2]string{t.A, t.B}] = cell{text: t.Level, path: t.Level}
			out[[2]string{t.B, t.A}] = cell{text: t.Level, path: t.Level}
		}
	}
	for _, p := range h.Copies {
		key := [2]string{p.From, p.To}
		old := out[key]
		switch {
		case p.Result == "corrupt" || p.Result == "hang":
			out[key] = cell{text: "✗ " + l.Say(p.Result), bad: true, path: p.Path + ": " + l.Say(p.Result)}
		case p.Best > old.rate && !old.bad:
			out[key] = cell{text: fmt.Sprintf("%.1f", p.Best), rate: p.Best, path: p.Path}
		}
	}
	return out
}

// heat is the step of the scale, from 1 (a fifth of the best or less) to 5.
func heat(c cell, most float64) string {
	switch {
	case c.bad:
		return "bad"
	case c.rate <= 0 || most <= 0:
		return "word"
	}
	return fmt.Sprintf("h%d", min(int(c.rate/most*4.999)+1, 5))
}

func rateOr(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}
