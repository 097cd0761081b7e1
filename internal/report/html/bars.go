package html

import (
	"fmt"

	"preflight/internal/lang"
	"preflight/internal/report"
)

// barMap is BAR1 of each card against the card's memory.
type barMap struct {
	picture
	Boxes []box
	Marks []mark
}

func drawBars(g report.Rig, l lang.Language) barMap {
	if g.Host == nil || len(g.Host.Cards) == 0 {
		return barMap{picture: none(l, "No card was seen.")}
	}
	const nameW, w, h = 108.0, 330.0, 26.0
	m := barMap{picture: picture{Title: l.Say("BAR1"), W: nameW + w + 168, Cols: []string{l.Say("card"), "BAR1", l.Say("memory"), l.Say("sizes offered")}}}
	known := false
	for i, c := range g.Host.Cards {
		y := float64(i)*h + 4
		m.Marks = append(m.Marks, mark{X: 2, Y: y + 14, Text: c.BDF, Class: "label mono"})
		bar, memory := c.BAR1MiB, c.MemoryMiB
		sizes := "–"
		if s, ok := c.ReBARMiB.Get(); ok {
			sizes = fmt.Sprint(s)
		}
		row := []string{c.BDF, "–", "–", sizes}
		text := l.Say("not read")
		if memory.Known() {
			row[2] = fmt.Sprintf("%d MiB", memory.Value)
			m.Boxes = append(m.Boxes, box{X: nameW, Y: y, W: w, H: h - 8, Class: "memory"})
		}
		if bar.Known() {
			known = true
			row[1] = fmt.Sprintf("%d MiB", bar.Value)
			text = row[1]
			if memory.Known() && memory.Value > 0 {
				part := min(float64(bar.Value)/float64(memory.Value), 1)
				class := "bar1"
				if part < 1 {
					class = "bar1 partial"
				}
				m.Boxes = append(m.Boxes, box{X: nameW, Y: y, W: max(part*w, 3), H: h - 8, Class: class, ID: c.BDF, Tip: l.Sayf("%s: BAR1 %d MiB, memory %d MiB", c.BDF, bar.Value, memory.Value)})
				text = l.Sayf("%d of %d MiB", bar.Value, memory.Value)
				if bar.Value > memory.Value {
					text = l.Sayf("%d MiB, all of %d", bar.Value, memory.Value)
				}
			}
		}
		m.Marks = append(m.Marks, mark{X: nameW + w + 8, Y: y + 14, Text: text, Class: "label"})
		m.Table = append(m.Table, row)
	}
	if !known {
		return barMap{picture: none(l, "The BARs of the cards were not read.")}
	}
	m.H = float64(len(g.Host.Cards))*h + 4
	m.Desc = l.Say("How much of each card's memory the processor can reach at once.")
	return m
}
