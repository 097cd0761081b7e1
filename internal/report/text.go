package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
)

// TextOptions is how the terminal view is drawn.
type TextOptions struct {
	Color   bool
	Width   int  // columns; 0 means no limit (piped)
	Verbose bool // evidence below every finding, passes included
	Quiet   bool // one line a rig
}

// marks of the verdicts.
var marks = map[checks.Verdict]struct {
	sign  string
	color text.Colors
}{
	checks.Fail:    {"✗", text.Colors{text.FgRed}},
	checks.Warn:    {"!", text.Colors{text.FgYellow}},
	checks.Unknown: {"?", text.Colors{text.FgCyan}},
	checks.Pass:    {"✓", text.Colors{text.FgGreen}},
	checks.Skip:    {"-", text.Colors{text.Faint}},
}

// WriteText writes the view for people: the answer first, then how to mend it.
func WriteText(w io.Writer, r *Report, o TextOptions) error {
	t := &textWriter{o: o, room: 60}
	for _, g := range r.Rigs { // piped, the verdicts stand below each other
		t.room = max(t.room, visible(headlineOf(g)))
	}
	for i, g := range r.Rigs {
		if i > 0 && !o.Quiet {
			t.line("")
		}
		t.rig(g)
	}
	if !o.Quiet {
		t.tail(r)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textWriter struct {
	b    strings.Builder
	o    TextOptions
	room int // columns of the headline before the verdict, where the width is not limited
}

func (t *textWriter) line(format string, args ...any) {
	fmt.Fprintf(&t.b, format+"\n", args...)
}

func (t *textWriter) paint(c text.Colors, s string) string {
	if !t.o.Color {
		return s
	}
	return c.Sprint(s)
}

func (t *textWriter) mark(v checks.Verdict) string { return t.paint(marks[v].color, marks[v].sign) }

func visible(s string) int { return text.StringWidthWithoutEscSequences(s) }

func pad(s string, n int) string {
	if d := n - visible(s); d > 0 {
		return s + strings.Repeat(" ", d)
	}
	return s
}

// headlineOf is who and what.
func headlineOf(g Rig) string {
	return strings.TrimRight(Safe(g.Name)+"  "+describe(g), " ")
}

// headline is who, what, and the answer at the right edge.
func (t *textWriter) headline(g Rig) {
	name := Safe(g.Name)
	left := t.paint(text.Colors{text.Bold}, name) + strings.TrimPrefix(headlineOf(g), name)
	verdict := strings.ToUpper(string(g.Verdict))
	right := t.paint(append(text.Colors{text.Bold}, marks[g.Verdict].color...), verdict)
	if n := faults(g); n > 0 {
		right += "  " + count(n, "fault")
	} else if g.Error != nil {
		right += "  not reached"
	}
	room := t.room
	if t.o.Width > 0 {
		room = t.o.Width - visible(right) - 2
	}
	if t.o.Width > 0 && visible(left) > room {
		t.wrapped("", 2, left)
		t.line("  %s", right)
		return
	}
	t.line("%s  %s", pad(left, room), right)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// faults counts root causes that fail.
func faults(g Rig) int {
	n := 0
	for _, r := range rows(g) {
		if r.finding.Verdict == checks.Fail {
			n++
		}
	}
	return n
}

// describe is "8× RTX 4090  Supermicro AS-4124GS-TNR  2× EPYC 7542".
func describe(g Rig) string {
	h := g.Host
	if h == nil {
		return Safe(g.Address)
	}
	var parts []string
	if n := len(h.Cards); n > 0 {
		c := h.Cards[0]
		name := c.Name.Value
		if name == "" {
			name = c.Label
		}
		parts = append(parts, fmt.Sprintf("%d× %s", n, strings.TrimPrefix(name, "GeForce ")))
	}
	if v := strings.TrimSpace(h.Board.Vendor.Value + " " + h.Board.Name.Value); v != "" {
		parts = append(parts, shortVendor(v))
	}
	if m := h.CPU.Model.Value; m != "" {
		m = shortCPU(m)
		if n := h.CPU.Sockets.Or(1); n > 1 {
			m = fmt.Sprintf("%d× %s", n, m)
		}
		parts = append(parts, m)
	}
	return Safe(strings.Join(parts, "  "))
}

func shortVendor(s string) string {
	return strings.NewReplacer("ASUSTeK COMPUTER INC.", "ASUS", "Micro-Star International Co., Ltd.", "MSI", "Gigabyte Technology Co., Ltd.", "Gigabyte").Replace(s)
}

func shortCPU(s string) string {
	s = strings.NewReplacer("(R)", "", "(TM)", "", " CPU", "", " Processor", "").Replace(s)
	s, _, _ = strings.Cut(s, " @")
	f := strings.Fields(s)
	if len(f) > 1 && strings.Contains(f[len(f)-1], "-Core") {
		f = f[:len(f)-1]
	}
	if len(f) > 1 && (f[0] == "AMD" || f[0] == "Intel") {
		f = f[1:]
	}
	return strings.Join(f, " ")
}

func (t *textWriter) rig(g Rig) {
	t.headline(g)
	if t.o.Quiet {
		return
	}
	if g.Error != nil {
		t.wrapped("  "+t.mark(checks.Unknown)+" ", 4, Safe(g.Error.Phase+": "+g.Error.Summary))
		for _, a := range g.Error.Advice {
			t.wrapped("      → ", 8, Safe(a))
		}
		return
	}
	t.findings(g)
	t.counts(g)
	for _, n := range g.Notes {
		t.wrapped("  note: ", 8, Safe(n))
	}
	for _, f := range g.Fixes {
		t.fix(f)
	}
}

// findings writes the faults, each with what it explains, in aligned columns.
func (t *textWriter) findings(g Rig) {
	list := rows(g)
	column := 0
	for _, r := range list {
		column = max(column, visible(r.finding.Check))
		for _, e := range r.effects {
			column = max(column, visible(e.finding.Check)+2)
		}
	}
	cards := 0
	if g.Host != nil {
		cards = len(g.Host.Cards)
	}
	for _, r := range list {
		t.row("  "+t.mark(r.finding.Verdict)+" "+pad(r.finding.Check, column)+"  ", r, cards)
		for _, e := range r.effects {
			t.row("      └ "+pad(e.finding.Check, column-4)+"  ", e, cards)
		}
	}
	if t.o.Verbose {
		t.passes(g)
	}
}

func (t *textWriter) row(prefix string, r row, cards int) {
	s := Safe(r.text(cards))
	if r.fix > 0 {
		s += t.paint(text.Colors{text.Bold}, fmt.Sprintf("  → fix %d", r.fix))
		if c := r.finding.Args["cap_watts"]; c != "" {
			s += fmt.Sprintf(" (or cap cards at %s W)", c)
		}
	}
	t.wrapped(prefix, visible(prefix), s)
	if t.o.Verbose {
		t.evidence(r.finding)
	}
}

func (t *textWriter) evidence(f checks.Finding) {
	if f.Expected != "" {
		t.wrapped("        ", 10, Safe(fmt.Sprintf("seen %s, expected %s", f.Observed, f.Expected)))
	}
	if f.Note != "" {
		t.wrapped("        ", 10, Safe(f.Note))
	}
	for _, e := range f.Evidence {
		t.wrapped("        ", 10, t.paint(text.Colors{text.Faint}, Safe(e.Source+" = "+e.Value)))
	}
}

func (t *textWriter) passes(g Rig) {
	for _, f := range g.Findings {
		if f.Verdict == checks.Pass || f.Verdict == checks.Skip {
			t.wrapped("  "+t.mark(f.Verdict)+" "+f.Check+"  ", 4, Safe(f.Summary))
			t.evidence(f)
		}
	}
}

// counts tells how many checks passed, and names every unknown with what would make it known.
func (t *textWriter) counts(g Rig) {
	worst := map[string]checks.Verdict{}
	for _, f := range g.Findings {
		if v, ok := worst[f.Check]; ok {
			worst[f.Check] = checks.Worst(v, f.Verdict)
		} else {
			worst[f.Check] = f.Verdict
		}
	}
	n := map[checks.Verdict]int{}
	for _, v := range worst {
		n[v]++
	}
	parts := []string{t.mark(checks.Pass) + fmt.Sprintf(" %d passed", n[checks.Pass])}
	if n[checks.Skip] > 0 {
		parts = append(parts, fmt.Sprintf("- %d do not apply", n[checks.Skip]))
	}
	if n[checks.Unknown] > 0 {
		parts = append(parts, t.mark(checks.Unknown)+fmt.Sprintf(" %d unknown", n[checks.Unknown]))
	}
	t.line("  %s", strings.Join(parts, "   "))
	said := map[string]bool{}
	for _, f := range g.Findings {
		if f.Verdict != checks.Unknown || said[f.Check] {
			continue
		}
		said[f.Check] = true
		s := f.Summary
		if f.Known != "" {
			s += "; " + f.Known
			if g.Line != "" && strings.Contains(f.Known, "rigs.hcl") {
				s += " (" + g.Line + ")"
			}
		}
		t.wrapped("      "+t.mark(checks.Unknown)+" "+f.Check+": ", 8, Safe(s))
	}
}

func (t *textWriter) fix(f Fix) {
	t.line("")
	end := "no reboot"
	if f.Reboot != "no" {
		end = "reboot: " + f.Reboot
		if f.Reboot == "yes" {
			end = "reboot"
		}
	}
	t.wrapped(t.paint(text.Colors{text.Bold}, fmt.Sprintf("fix %d", f.Number))+"  ", 7, fmt.Sprintf("%s  (%s)", Safe(f.Title), end))
	for i, s := range f.Steps {
		t.wrapped(fmt.Sprintf("  %d. ", i+1), 5, Safe(s.Text))
		if s.Menu != "" {
			t.wrapped("     ", 7, "BIOS, usually under "+t.paint(text.Colors{text.FgCyan}, Safe(s.Menu)))
		}
		for _, c := range strings.Split(strings.TrimRight(s.Command, "\n"), "\n") {
			if c != "" {
				t.line("       %s", t.paint(text.Colors{text.FgCyan}, "$ "+Safe(c)))
			}
		}
	}
	t.wrapped("  verify: ", 10, Safe(f.Verify))
}

// tail ends the report with what no tool can see.
func (t *textWriter) tail(r *Report) {
	cards := 0
	for _, g := range r.Rigs {
		if g.Host != nil {
			cards = max(cards, len(g.Host.Cards))
		}
	}
	if cards == 0 {
		return
	}
	t.line("")
	t.line("Only hands and eyes can tell:")
	for _, s := range Checklist(cards) {
		t.wrapped("  [ ] ", 6, s)
	}
}

// wrapped writes prefix and text, folding at the width with a hanging indent.
func (t *textWriter) wrapped(prefix string, indent int, s string) {
	if t.o.Width <= 0 || visible(prefix)+visible(s) <= t.o.Width {
		t.line("%s%s", prefix, s)
		return
	}
	room := max(t.o.Width-max(indent, 0), 20)
	first := max(t.o.Width-visible(prefix), 20)
	lines := fold(s, first, room)
	t.line("%s%s", prefix, lines[0])
	for _, l := range lines[1:] {
		t.line("%s%s", strings.Repeat(" ", indent), l)
	}
}

// fold breaks at spaces; a word wider than the line stays whole.
func fold(s string, first, rest int) []string {
	var lines []string
	room, line := first, ""
	for _, word := range strings.Split(s, " ") {
		switch {
		case line == "":
			line = word
		case visible(line)+1+visible(word) <= room:
			line += " " + word
		default:
			lines = append(lines, line)
			line, room = word, rest
		}
	}
	return append(lines, line)
}
