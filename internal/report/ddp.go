package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/lang"
)

// DDPTable is a scaling test as rows of words.
func DDPTable(d *checks.DDPFigure, l lang.Language) (head []string, rows [][]string) {
	for _, h := range []string{"cards", "step", "without sync", "speed-up", "of linear", "communication", "busy", "power", "memory of a card"} {
		head = append(head, l.Say(h))
	}
	for _, s := range d.Stages {
		rows = append(rows, []string{
			fmt.Sprint(s.Cards), unit("%.1f ms", s.Step), unit("%.1f ms", s.NoSync), unit("%.2f×", s.SpeedUp), unit("%.0f %%", s.Efficiency*100),
			fmt.Sprintf("%.0f %%", s.Communication*100), unit("%.0f %%", s.Busy), unit("%.0f W", s.Watts), unit("%.1f GiB", float64(s.PeakMiB)/1024),
		})
	}
	return head, rows
}

// ddp shows a scaling test as a table.
func (t *textWriter) ddp(g Rig) {
	if g.Figures == nil || g.Figures.DDP == nil {
		return
	}
	d := g.Figures.DDP
	t.line("")
	t.wrapped("  "+t.paint(text.Colors{text.Bold}, t.say("training"))+"  ", 4, t.say("a synthetic model of %.0f million parameters", float64(d.Parameters)/1e6))
	t.table(DDPTable(d, t.o.Lang))
}
