package report

import (
	"fmt"
	"io"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
)

// WriteMarkdown writes a report for an issue or a pull request: a table of rigs, then for each that is not well its
// faults, its fixes folded, and what is unknown.
func WriteMarkdown(w io.Writer, r *Report, l lang.Language) error {
	m := &markdown{l: l}
	if len(r.Rigs) > 0 {
		m.line("## preflight: %s", tally(r, l))
		m.line("")
		m.line("| | %s | %s | %s |", m.say("rig"), m.say("verdict"), m.say("hardware"))
		m.line("|---|---|---|---|")
	}
	for _, g := range r.Rigs {
		m.line("| %s | %s | %s | %s |", marks[g.Verdict].sign, md(g.Name), m.l.Say(strings.ToUpper(string(g.Verdict))), md(Describe(g)))
	}
	for _, g := range r.Rigs {
		m.rig(g)
	}
	if r.Changes != nil {
		m.line("")
		m.line("## %s", m.say("changes from %s to %s", md(r.Changes.Before), md(r.Changes.After)))
		m.changes(*r.Changes)
	}
	m.fit(r.Fit)
	m.line("")
	m.line("<sub>preflight %s · %s</sub>", md(r.Tool.Version), r.Run.At.UTC().Format("2006-01-02 15:04 UTC"))
	_, err := io.WriteString(w, m.b.String())
	return err
}

type markdown struct {
	b strings.Builder
	l lang.Language
}

func (m *markdown) line(format string, args ...any)       { fmt.Fprintf(&m.b, format+"\n", args...) }
func (m *markdown) say(format string, args ...any) string { return m.l.Sayf(format, args...) }
func (m *markdown) bullet(format string, args ...any)     { m.line("- "+format, args...) }
func (m *markdown) effect(indent, format string, args ...any) {
	m.line(indent+"- └ "+format, args...)
}

func (m *markdown) rig(g Rig) {
	list, open := Rows(g), Unknowns(g)
	if g.Error == nil && len(list) == 0 && len(open) == 0 && len(g.Notes) == 0 {
		return
	}
	m.line("")
	m.line("### %s %s", marks[g.Verdict].sign, md(g.Name))
	m.line("")
	if g.Error != nil {
		m.bullet("%s %s", marks[checks.Unknown].sign, md(m.l.Say(g.Error.Phase)+": "+g.Error.Summary))
		for _, a := range g.Error.Advice {
			m.line("  - %s", md(a))
		}
		return
	}
	cards := 0
	if g.Host != nil {
		cards = len(g.Host.Cards)
	}
	for _, row := range list {
		m.bullet("%s", m.row(row, cards))
		for _, e := range row.Effects {
			m.effect("  ", "%s", m.row(e, cards))
		}
	}
	for _, n := range g.Notes {
		m.bullet("%s %s", m.say("note:"), md(n))
	}
	for _, f := range g.Fixes {
		m.fix(f)
	}
	m.unknown(open)
}

func (m *markdown) row(r Row, cards int) string {
	s := fmt.Sprintf("%s `%s` %s", marks[r.Finding.Verdict].sign, r.Finding.Check, md(r.Text(m.l, cards)))
	if r.Fix > 0 {
		s += " → " + m.say("fix %d", r.Fix)
	}
	return s
}

func (m *markdown) fix(f Fix) {
	m.line("")
	m.line("<details><summary>%s: %s (%s)</summary>", m.say("fix %d", f.Number), html(f.Title), html(m.l.Say(rebootLabel(f.Reboot))))
	m.line("")
	for i, s := range f.Steps {
		m.line("%d. %s", i+1, md(s.Text))
		if s.Menu != "" {
			m.line("   %s %s", m.say("BIOS, usually under"), md(s.Menu))
		}
		if s.Command != "" {
			m.code("   ", s.Command)
		}
	}
	m.line("")
	m.line("%s", m.say("verify:"))
	m.code("", f.Verify)
	m.line("</details>")
}

// code is a fenced block; the fence is longer than any that its text holds.
func (m *markdown) code(indent, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.line("")
	m.line("%s%ssh", indent, fence)
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		m.line("%s%s", indent, Safe(l))
	}
	m.line("%s%s", indent, fence)
}

func (m *markdown) unknown(open []UnknownGroup) {
	if len(open) == 0 {
		return
	}
	n := 0
	for _, u := range open {
		n += len(u.Checks)
	}
	m.line("")
	m.line("<details><summary>%s %s</summary>", marks[checks.Unknown].sign, m.say("%d unknown", n))
	m.line("")
	for _, u := range open {
		s := u.Summary
		if u.Known != "" {
			s += m.l.Say("; ") + u.Known
		}
		names := "`" + strings.Join(u.Checks, "`, `") + "`"
		if u.Many() {
			names = m.say("%d other checks", len(u.Checks))
		}
		m.bullet("%s: %s", names, md(s))
	}
	m.line("")
	m.line("</details>")
}

// md is text that Markdown leaves alone: no markup, no HTML, no table cell's end, and nobody is mentioned.
func md(s string) string {
	var b strings.Builder
	for _, r := range Safe(s) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' || r == '#': // a name or a number after it would be linked
			b.WriteRune(r)
			b.WriteRune('\u2060')
		case strings.ContainsRune("\\`*_{}[]>|~!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// html is text inside an HTML element of Markdown.
func html(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u2060").Replace(Safe(s))
}
