package html

import (
	"fmt"

	"preflight/internal/lang"
	"preflight/internal/workload"
)

// stack is what lies in a card's memory, as one bar against the card's limit.
type stack struct {
	picture
	Boxes  []box
	Lines  []line
	Marks  []mark
	Legend []mark
}

// partClass is the colour of a part of the memory.
var partClass = map[string]string{
	workload.Weights: "m0", workload.Frozen: "m6", workload.Adapters: "m1", workload.Gradients: "m2", workload.States: "m3", workload.Activations: "m4", workload.Logits: "m5",
	workload.Cache: "m1", workload.Buffers: "m6", workload.Context: "m7", workload.Margin: "m8",
}

// drawMemory draws a bar for each strategy that is possible, the chosen one first in the table below it.
func drawMemory(a workload.Assessment, l lang.Language) stack {
	const nameW, w, h = 72.0, 400.0, 26.0
	m := stack{picture: picture{Title: l.Say("Memory of a card"), W: nameW + w + 96, Cols: []string{l.Say("strategy"), l.Say("part"), "GB", l.Say("formula"), l.Say("source")}}}
	most := a.Rig.Card.Memory
	for _, o := range a.Options {
		most = max(most, o.Memory.Total())
	}
	if most <= 0 {
		return stack{picture: none(l, "The memory of the card is not known.")}
	}
	scale := w / most
	y, parts := 18.0, map[string]bool{}
	for _, o := range a.Options {
		if o.Impossible != "" {
			continue
		}
		class := "label"
		if a.Chosen != nil && o.Strategy == a.Chosen.Strategy {
			class = "label head"
		}
		m.Marks = append(m.Marks, mark{X: 2, Y: y + 14, Text: o.Strategy, Class: class})
		x := nameW
		for _, part := range o.Memory.Lines {
			width := part.Bytes * scale
			if width > 0 {
				m.Boxes = append(m.Boxes, box{X: x, Y: y, W: max(width, 0.5), H: h - 8, Class: "mem " + partClass[part.Part], Tip: fmt.Sprintf("%s: %.2f GB", l.Say(part.Part), part.Bytes/1e9)})
			}
			x += width
			parts[part.Part] = true
			m.Table = append(m.Table, []string{o.Strategy, l.Say(part.Part), fmt.Sprintf("%.2f", part.Bytes/1e9), part.Formula, l.Say(part.Source)})
		}
		m.Marks = append(m.Marks, mark{X: nameW + w + 10, Y: y + 14, Text: fmt.Sprintf("%.1f GB", o.Memory.Total()/1e9), Class: "label"})
		y += h
	}
	limit := nameW + a.Rig.Card.Memory*scale
	m.Lines = append(m.Lines, line{Path: fmt.Sprintf("M%s 12V%s", num(limit), num(y)), Class: "limit"})
	m.Marks = append(m.Marks, mark{X: limit, Y: 10, Text: l.Sayf("card: %.1f GB", a.Rig.Card.Memory/1e9), Class: "note", Anchor: "middle"})
	m.legend(parts, y, l)
	m.Desc = l.Say("What each card holds under each strategy, against what the card has.")
	return m
}

// legend names the parts that occur, in the order of a bar.
func (m *stack) legend(parts map[string]bool, y float64, l lang.Language) {
	x := 22.0
	y += 16
	for _, part := range []string{workload.Weights, workload.Frozen, workload.Adapters, workload.Gradients, workload.States, workload.Cache, workload.Activations, workload.Logits, workload.Buffers, workload.Context, workload.Margin} {
		if !parts[part] {
			continue
		}
		if x > 460 {
			x, y = 22, y+16
		}
		m.Legend = append(m.Legend, mark{X: x, Y: y, Text: l.Say(part), Class: partClass[part]})
		x += 110
	}
	m.H = y + 8
}
