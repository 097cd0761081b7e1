package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/lang"
)

// BurnTable is a burn-in as rows of words: a head, and a row for each card; what was not told is a dash.
func BurnTable(b *checks.BurnFigure, l lang.Language) (head []string, rows [][]string) {
	for _, h := range []string{"card", "peak", "mean", "power", "limit", "clock", "held back", "speed", "memory checked", "wrong"} {
		head = append(head, l.Say(h))
	}
	for _, c := range b.Cards {
		rows = append(rows, []string{
			c.BDF, unit("%.0f °C", c.Peak), unit("%.0f °C", c.Mean), unit("%.0f W", c.Watts), unit("%.0f W", c.Limit), unit("%.0f MHz", c.Clock),
			fmt.Sprintf("%d/%d", c.Held, c.Samples), unit("%.0f TFLOPS", c.TFLOPS), compared(c), fmt.Sprint(c.Wrong + c.Different),
		})
	}
	return head, rows
}

// compared is how much memory of a card was compared how often; a card that never told is a dash.
func compared(c checks.BurnCard) string {
	if c.Passes == 0 && c.GiB == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f GiB × %d", c.GiB, c.Passes)
}

// CapTable is a sweep of power caps as rows of words.
func CapTable(b *checks.BurnFigure, l lang.Language) (head []string, rows [][]string) {
	for _, h := range []string{"cap", "speed", "power", "hottest"} {
		head = append(head, l.Say(h))
	}
	for _, c := range b.Caps {
		rows = append(rows, []string{unit("%.0f W", c.Watts), fmt.Sprintf("%.1f %%", c.Speed*100), unit("%.0f W", c.Drawn), unit("%.0f °C", c.Hottest)})
	}
	return head, rows
}

// BurnWords say how a burn-in went as a whole, a sentence each.
func BurnWords(b *checks.BurnFigure, l lang.Language) []string {
	out := []string{l.Sayf("%.0f s of load on %d cards, %.0f W together", b.Seconds, len(b.Cards), b.Watts)}
	if b.Quick {
		out = append(out, l.Say("too short to prove anything about heat soak"))
	}
	switch {
	case b.Advice > 0:
		out = append(out, l.Sayf("a cap of %.0f W is recommended: the lowest that keeps 95 %% of the speed", b.Advice))
	case len(b.Caps) > 1:
		out = append(out, l.Say("no lower cap keeps enough of the speed"))
	}
	if b.Restored != "" {
		out = append(out, l.Sayf("the power limits are not as they were: %s", b.Restored))
	}
	return out
}

func unit(format string, v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// burnIn shows a burn-in as tables.
func (t *textWriter) burnIn(g Rig) {
	if g.Figures == nil || g.Figures.BurnIn == nil {
		return
	}
	b := g.Figures.BurnIn
	t.line("")
	t.wrapped("  "+t.paint(text.Colors{text.Bold}, t.say("burn-in"))+"  ", 4, Safe(strings.Join(BurnWords(b, t.o.Lang), t.o.Lang.Say("; "))))
	t.table(BurnTable(b, t.o.Lang))
	if len(b.Caps) > 0 {
		t.table(CapTable(b, t.o.Lang))
	}
}

// table writes rows in aligned columns.
func (t *textWriter) table(head []string, rows [][]string) {
	w := table.NewWriter()
	w.SetStyle(table.StyleDefault)
	w.Style().Options = table.OptionsNoBordersAndSeparators
	w.Style().Format.Header = text.FormatDefault
	w.AppendHeader(cells(head))
	for _, r := range rows {
		w.AppendRow(cells(r))
	}
	for line := range strings.Lines(w.Render()) {
		t.line("   %s", strings.TrimRight(line, " \n"))
	}
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i, c := range row {
		out[i] = Safe(c)
	}
	return out
}
