package html

import (
	"slices"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// Sizes of the chassis, in units of the picture.
const (
	pitch     = 22.0 // one slot pitch
	slotLabel = 64.0
	slotWidth = 300.0
	cellW     = 178.0
	cellH     = 40.0
)

// chassis is the slots with their cards and the room between them.
type chassis struct {
	picture
	Boxes []box
	Marks []mark
}

func drawChassis(g report.Rig, l lang.Language) chassis {
	if g.Figures == nil || len(g.Figures.Places) == 0 {
		return chassis{picture: none(l, "Neither the inventory nor the board lists slots; declare chassis { slot … } in rigs.hcl.")}
	}
	c := chassis{picture: picture{Title: l.Say("Slots"), Cols: []string{l.Say("slot"), l.Say("card"), l.Say("thickness"), l.Say("lanes")}}}
	places := slices.Clone(g.Figures.Places)
	for _, p := range places {
		card := p.Card
		if card == "" && p.Declared != "" {
			card = l.Sayf("%s, not seen", p.Declared)
		} else if card == "" {
			card = l.Say("empty")
		}
		c.Table = append(c.Table, []string{p.Name, card, numOr(p.Thickness), lanesOr(p.Lanes)})
	}
	if places[0].Ordered {
		c.ordered(g, places, l)
	} else {
		c.listed(g, places, l)
	}
	return c
}

// ordered draws declared positions from the first to the last, cards as thick as they are.
func (c *chassis) ordered(g report.Rig, places []checks.PlaceFigure, l lang.Language) {
	slices.SortFunc(places, func(a, b checks.PlaceFigure) int { return a.Position - b.Position })
	first := places[0].Position
	y := func(position float64) float64 { return 6 + (position-float64(first))*pitch }
	bottom := y(float64(places[len(places)-1].Position) + 1)
	end, above := -1.0, "" // where the card above ends, in pitches, and which it is
	for _, p := range places {
		thick := p.Thickness
		b := box{X: slotLabel, Y: y(float64(p.Position)), W: slotWidth, H: pitch - 3, ID: p.Name, Class: "slot empty", Text: l.Say("empty")}
		if p.Declared != "" || p.Card != "" {
			b.H = max(thick, 1)*pitch - 3
			b.Class, b.Text, b.Sub = "slot card", l.Sayf("%s, not seen", p.Declared), ""
			if p.Card != "" {
				b.Class = "slot card " + string(worstAbout(g, p.Card))
				b.Text = cardNameAt(g, p.Card)
				b.Sub = p.Card
			}
			if end >= 0 {
				c.gap(g, above, p.Card, y(end), y(float64(p.Position)), float64(p.Position)-end, l)
			}
			end, above = float64(p.Position)+max(thick, 1), p.Card
			bottom = max(bottom, b.Y+b.H+3)
		}
		c.Boxes = append(c.Boxes, b)
		c.Marks = append(c.Marks, mark{X: slotLabel - 8, Y: b.Y + 13, Text: l.Sayf("slot %s", report.Safe(p.Name)), Class: "label", Anchor: "end"})
	}
	c.W, c.H = slotLabel+slotWidth+112, bottom+6
	c.Desc = l.Say("Positions as declared, in slot pitches of 20.32 mm.")
}

// gap tells how much room is between two cards, in the colour of its verdict.
func (c *chassis) gap(g report.Rig, above, below string, top, bottom, free float64, l lang.Language) {
	class := "gap"
	for _, f := range g.Findings {
		if f.Check == "chassis.slot-spacing" && above != "" && below != "" && strings.Contains(f.Subject, above) && strings.Contains(f.Subject, below) {
			class += " " + string(f.Verdict)
		}
	}
	c.Marks = append(c.Marks, mark{X: slotLabel + slotWidth + 10, Y: (top+bottom)/2 + 3, Text: l.Sayf("%s free", num(free)), Class: class})
}

// listed draws the board's own list, which has no physical order.
func (c *chassis) listed(g report.Rig, places []checks.PlaceFigure, l lang.Language) {
	const per = 3
	for i, p := range places {
		b := box{X: 2 + float64(i%per)*(cellW+8), Y: 4 + float64(i/per)*(cellH+8), W: cellW, H: cellH, ID: p.Name, Class: "slot empty", Text: report.Safe(clip(p.Name, 24)), Sub: l.Say("empty") + " · " + lanesOr(p.Lanes)}
		if p.Card != "" {
			b.Class, b.Sub = "slot card "+string(worstAbout(g, p.Card)), p.Card
		}
		c.Boxes = append(c.Boxes, b)
	}
	c.W = 4 + float64(min(per, max(len(places), 2)))*(cellW+8)
	c.H = 8 + float64((len(places)+per-1)/per)*(cellH+8)
	c.Desc = l.Say("As the board lists them (SMBIOS 9): that list has no physical order.")
}

func cardNameAt(g report.Rig, bdf string) string {
	for _, card := range g.Host.Cards {
		if card.BDF == bdf {
			return cardName(card)
		}
	}
	return bdf
}

func lanesOr(n int) string {
	if n == 0 {
		return "–"
	}
	return lanes(n)
}

func numOr(v float64) string {
	if v == 0 {
		return "–"
	}
	return num(v)
}
