package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/lang"
)

// TextOptions is how the terminal view is drawn.
type TextOptions struct {
	Color   bool
	Width   int           // columns; 0 means no limit (piped)
	Verbose bool          // evidence below every finding, passes included
	Quiet   bool          // one line a rig
	Lang    lang.Language // of the labels; the report itself comes translated (Report.In)
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
	t := &textWriter{o: o, room: 60, told: map[string]string{}}
	for _, g := range r.Rigs { // piped, the verdicts stand below each other
		t.room = max(t.room, visible(headlineOf(g)))
	}
	for i, g := range r.Rigs {
		if i > 0 && !o.Quiet {
			t.line("")
		}
		t.rig(g)
	}
	t.fleet(r)
	if !o.Quiet || len(r.Rigs) == 0 {
		t.fit(r)
	}
	if r.Changes != nil {
		t.line("")
		t.changes(*r.Changes)
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
	told map[string]string // fixes by their words -> the rig that was told them
	room int               // columns of the headline before the verdict, where the width is not limited
}

func (t *textWriter) line(format string, args ...any) {
	fmt.Fprintf(&t.b, format+"\n", args...)
}

// say is a label in the language of the report.
func (t *textWriter) say(format string, args ...any) string { return t.o.Lang.Sayf(format, args...) }

// label is a label and the space after it, which a full-width mark brings along.
func (t *textWriter) label(english string) string {
	s := t.o.Lang.Say(english)
	if strings.HasSuffix(s, "：") {
		return s
	}
	return s + " "
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

// headline is who, what, and the answer at the right edge.
func (t *textWriter) headline(g Rig) {
	name := Safe(g.Name)
	left := t.paint(text.Colors{text.Bold}, name) + strings.TrimPrefix(headlineOf(g), name)
	verdict := t.o.Lang.Say(strings.ToUpper(string(g.Verdict)))
	right := t.paint(append(text.Colors{text.Bold}, marks[g.Verdict].color...), verdict)
	if n := faults(g); n > 0 {
		right += "  " + t.o.Lang.Say(count(n, "fault"))
	} else if g.Error != nil {
		right += "  " + t.say("not reached")
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
	for _, r := range Rows(g) {
		if r.Finding.Verdict == checks.Fail {
			n++
		}
	}
	return n
}

func (t *textWriter) rig(g Rig) {
	t.headline(g)
	if t.o.Quiet {
		return
	}
	if g.Error != nil {
		t.wrapped("  "+t.mark(checks.Unknown)+" ", 4, Safe(t.o.Lang.Say(g.Error.Phase)+": "+g.Error.Summary))
		for _, a := range g.Error.Advice {
			t.wrapped("      → ", 8, Safe(a))
		}
		return
	}
	t.findings(g)
	t.counts(g)
	t.burnIn(g)
	t.ddp(g)
	t.conflicts(g)
	for _, n := range g.Notes {
		t.wrapped("  "+t.label("note:"), 8, Safe(n))
	}
	for _, f := range g.Fixes {
		t.fix(g, f)
	}
}

// findings writes the faults, each with what it explains, in aligned columns.
func (t *textWriter) findings(g Rig) {
	list := Rows(g)
	column := 0
	for _, r := range list {
		column = max(column, visible(r.Finding.Check))
		for _, e := range r.Effects {
			column = max(column, visible(e.Finding.Check)+2)
		}
	}
	cards := 0
	if g.Host != nil {
		cards = len(g.Host.Cards)
	}
	for _, r := range list {
		t.row("  "+t.mark(r.Finding.Verdict)+" "+pad(r.Finding.Check, column)+"  ", r, cards)
		for _, e := range r.Effects {
			t.row("      └ "+pad(e.Finding.Check, column-4)+"  ", e, cards)
		}
	}
	if t.o.Verbose {
		t.passes(g)
	}
}

func (t *textWriter) row(prefix string, r Row, cards int) {
	s := Safe(r.Text(t.o.Lang, cards))
	if r.Fix > 0 {
		s += t.paint(text.Colors{text.Bold}, "  → "+t.say("fix %d", r.Fix))
		if c := r.Finding.Args["cap_watts"]; c != "" {
			s += " " + t.say("(or cap cards at %s W)", c)
		}
	}
	t.wrapped(prefix, visible(prefix), s)
	if t.o.Verbose {
		t.evidence(r.Finding)
	}
}

func (t *textWriter) evidence(f checks.Finding) {
	if f.Expected != "" {
		t.wrapped("        ", 10, Safe(t.say("seen %s, expected %s", f.Observed, f.Expected)))
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

// counts tells how many checks passed, and names every unknown with what would make it known; checks that lack the
// same share a line.
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
	parts := []string{t.mark(checks.Pass) + " " + t.say("%d passed", n[checks.Pass])}
	if n[checks.Skip] > 0 {
		parts = append(parts, "- "+t.say("%d do not apply", n[checks.Skip]))
	}
	if n[checks.Unknown] > 0 {
		parts = append(parts, t.mark(checks.Unknown)+" "+t.say("%d unknown", n[checks.Unknown]))
	}
	t.line("  %s", strings.Join(parts, "   "))
	for _, u := range Unknowns(g) {
		s := u.Summary
		if u.Known != "" {
			s += t.o.Lang.Say("; ") + u.Known
			if g.Line != "" && strings.Contains(u.Known, "rigs.hcl") {
				s += " (" + g.Line + ")"
			}
		}
		names := strings.Join(u.Checks, ", ")
		if u.Many() {
			names = t.say("%d other checks", len(u.Checks))
		}
		t.wrapped("      "+t.mark(checks.Unknown)+" ", 8, names+": "+Safe(s))
	}
}

// UnknownGroup is checks that could not decide for one reason, and what would make all of them known.
type UnknownGroup struct {
	Checks         []string
	Summary, Known string
	LeftOut        bool // by the user's choice
}

// Many says that the checks of a group are too many to be named: whoever left them out knows.
func (u UnknownGroup) Many() bool { return u.LeftOut && len(u.Checks) > 6 }

// Unknowns are the first unknown of each check, those of one reason together.
func Unknowns(g Rig) []UnknownGroup {
	var out []UnknownGroup
	said, at := map[string]bool{}, map[string]int{}
	for _, f := range g.Findings {
		if f.Verdict != checks.Unknown || said[f.Check] {
			continue
		}
		said[f.Check] = true
		key := f.Summary + "\x00" + f.Known
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, UnknownGroup{Summary: f.Summary, Known: f.Known, LeftOut: checks.LeftOut(f)})
		}
		out[i].Checks = append(out[i].Checks, f.Check)
	}
	return out
}

// fix writes how to mend one kind of fault. What an earlier rig was told in the same words is not told again.
func (t *textWriter) fix(g Rig, f Fix) {
	t.line("")
	t.wrapped(t.paint(text.Colors{text.Bold}, t.say("fix %d", f.Number))+"  ", 7, fmt.Sprintf("%s  (%s)", Safe(f.Title), t.o.Lang.Say(rebootLabel(f.Reboot))))
	words := f.Title + fmt.Sprint(f.Steps)
	if before, told := t.told[words]; told {
		t.line("  %s", t.say("the same steps as %s", before))
		f.Steps = nil
	} else {
		t.told[words] = t.say("fix %d of %s", f.Number, Safe(g.Name))
	}
	for i, s := range f.Steps {
		t.wrapped(fmt.Sprintf("  %d. ", i+1), 5, Safe(s.Text))
		if s.Menu != "" {
			t.wrapped("     ", 7, t.label("BIOS, usually under")+t.paint(text.Colors{text.FgCyan}, Safe(s.Menu)))
		}
		for _, c := range strings.Split(strings.TrimRight(s.Command, "\n"), "\n") {
			if c != "" {
				t.line("       %s", t.paint(text.Colors{text.FgCyan}, "$ "+Safe(c)))
			}
		}
	}
	t.wrapped("  "+t.label("clears:"), 10, Safe(clears(f)))
	t.wrapped("  "+t.label("verify:"), 10, Safe(f.Verify))
}

// clears names the checks whose findings a fix mends, with their number where it is more than one.
func clears(f Fix) string {
	var order []string
	n := map[string]int{}
	for _, id := range f.Clears {
		check, _, _ := strings.Cut(id, "@")
		if n[check]++; n[check] == 1 {
			order = append(order, check)
		}
	}
	for i, check := range order {
		if n[check] > 1 {
			order[i] = fmt.Sprintf("%s ×%d", check, n[check])
		}
	}
	return strings.Join(order, ", ")
}

// rebootLabel is the answer of a fix to "does it need a reboot?".
func rebootLabel(reboot string) string {
	switch reboot {
	case "no":
		return "no reboot"
	case "yes":
		return "reboot"
	}
	return "reboot: " + reboot
}

// tail ends the report with what no tool can see.
func (t *textWriter) tail(r *Report) {
	if r.Acceptance != nil {
		t.answers(r)
		return
	}
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
	t.line("%s", t.say("Only hands and eyes can tell:"))
	for _, s := range Checklist(cards) {
		t.wrapped("  [ ] ", 6, t.o.Lang.Say(s))
	}
}

// answers tells what somebody answered for.
func (t *textWriter) answers(r *Report) {
	t.line("")
	t.line("%s", t.say("What hands and eyes found, answered by %s:", Safe(r.Acceptance.Answers.By)))
	for _, g := range r.Rigs {
		t.line("  %s", Safe(g.Name))
		for _, a := range r.Acceptance.Answers.Rigs[g.Name] {
			text := t.o.Lang.Say(a.Item)
			if a.Note != "" {
				text += t.o.Lang.Say(": ") + a.Note
			}
			t.wrapped("    "+AnswerMark(a.Answer)+" ", 8, Safe(text))
		}
	}
}

// AnswerMark is how an answer stands in a checklist.
func AnswerMark(answer string) string {
	return map[string]string{"yes": "[x]", "no": "[!]", "none": "[-]"}[answer]
}
