package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/lang"
)

// DiffSchema names the layout of a comparison as JSON; docs/diff.schema.json describes it.
const DiffSchema = "preflight/diff/v1"

// changeMarks are the signs of what happened to a fact.
var changeMarks = map[diff.Effect]struct {
	sign  string
	color text.Colors
}{
	diff.Worse:   {"↓", text.Colors{text.FgRed}},
	diff.Gone:    {"✗", text.Colors{text.FgRed}},
	diff.Unseen:  {"?", text.Colors{text.FgCyan}},
	diff.Changed: {"·", nil},
	diff.Moved:   {"→", nil},
	diff.Added:   {"+", nil},
	diff.Better:  {"↑", text.Colors{text.FgGreen}},
	diff.Seen:    {"+", text.Colors{text.FgCyan}},
}

// turnMarks are the signs of what happened to a finding.
var turnMarks = map[diff.Turn]struct {
	sign  string
	color text.Colors
}{
	diff.New:       {"✗", text.Colors{text.FgRed}},
	diff.Risen:     {"✗", text.Colors{text.FgRed}},
	diff.Lost:      {"?", text.Colors{text.FgCyan}},
	diff.Unchanged: {"=", text.Colors{text.FgYellow}},
	diff.Fallen:    {"!", text.Colors{text.FgYellow}},
	diff.Fixed:     {"✓", text.Colors{text.FgGreen}},
	diff.Known:     {"✓", text.Colors{text.FgGreen}},
}

// presences say what became of a rig that is not on both sides.
var presences = map[string]string{
	"gone":  "was compared with, and is not there now",
	"new":   "was not there before",
	"lost":  "not reached now: nothing can be compared",
	"found": "not reached before: nothing can be compared",
}

// WriteChanges writes a comparison for a terminal: what got worse first.
func WriteChanges(w io.Writer, d diff.Result, o TextOptions) error {
	t := &textWriter{o: o, told: map[string]string{}}
	t.changes(d)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textWriter) changes(d diff.Result) {
	t.line("%s", t.say("changes from %s to %s", Safe(d.Before), Safe(d.After)))
	for _, g := range d.Rigs {
		t.line("")
		name := t.paint(text.Colors{text.Bold}, Safe(g.Name))
		if g.Was != "" {
			name += "  " + t.say("(was %s)", Safe(g.Was))
		}
		switch {
		case presences[g.Presence] != "":
			t.line("%s  %s", name, t.o.Lang.Say(presences[g.Presence]))
			continue
		case len(g.Facts) == 0 && !slices.ContainsFunc(g.Findings, func(v diff.Verdict) bool { return v.Turn != diff.Unchanged }):
			t.line("%s  %s", name, t.o.Lang.Say("nothing changed"))
		default:
			t.line("%s", name)
		}
		for _, c := range changeLines(g, t.o.Lang) {
			line := "  " + t.paint(c.color, c.sign) + " "
			if c.turn != "" {
				line += c.turn + "  "
			}
			t.wrapped(line, 6, strings.TrimPrefix(c.id+": ", ": ")+c.text)
		}
		for _, n := range g.Notes {
			t.wrapped("  "+t.label("note:"), 8, Safe(t.o.Lang.Say(n)))
		}
	}
}

// changeLine is one thing that changed: a finding with its turn and id, or a fact.
type changeLine struct {
	sign           string
	color          text.Colors
	turn, id, text string
	worse          bool
}

// changeLines are what changed on one rig: what got worse first, then the other findings, then the other facts.
func changeLines(g diff.Rig, l lang.Language) []changeLine {
	var out []changeLine
	for _, v := range mergeVerdicts(g.Findings, l) {
		m := turnMarks[v.Turn]
		if v.Turn == diff.Known && v.After != checks.Pass { // known, and not well
			m = turnMarks[diff.Unchanged]
		}
		out = append(out, changeLine{m.sign, m.color, l.Say(string(v.Turn)), v.ID, v.Summary, v.Turn == diff.New || v.Turn == diff.Risen})
	}
	for _, c := range mergeChanges(g.Facts, l) {
		m := changeMarks[c.Effect]
		out = append(out, changeLine{m.sign, m.color, "", "", changeWords(c, l), c.Effect == diff.Worse || c.Effect == diff.Gone})
	}
	slices.SortStableFunc(out, func(a, b changeLine) int {
		switch {
		case a.worse == b.worse:
			return 0
		case a.worse:
			return -1
		}
		return 1
	})
	return out
}

// parts are the kinds of things that can come and go, as a comparison begins their names.
var parts = []struct{ prefix, word string }{{"module ", "memory module"}, {"disk ", "disk"}, {"supply ", "power supply"}, {"card ", "card"}}

// place is what a change is about, in the language.
func place(where string, l lang.Language) string {
	for _, p := range parts {
		if name, is := strings.CutPrefix(where, p.prefix); is && l == lang.Zh {
			return l.Say(p.word) + " " + name
		}
	}
	return l.Say(where)
}

// mergeChanges puts what happened alike to several things into one line, which names them all.
func mergeChanges(all []diff.Change, l lang.Language) []diff.Change {
	var out []diff.Change
	at := map[diff.Change]int{}
	for _, c := range all {
		key := c
		key.Where = ""
		c.Where = place(c.Where, l)
		i, seen := at[key]
		if !seen || c.Where == "" || c.Effect == diff.Moved {
			at[key] = len(out)
			out = append(out, c)
			continue
		}
		out[i].Where += ", " + c.Where
	}
	return out
}

// mergeVerdicts does the same for findings of one check that say the same of several subjects; texts come out safe and in
// the language.
func mergeVerdicts(all []diff.Verdict, l lang.Language) []diff.Verdict {
	var out []diff.Verdict
	at := map[string]int{}
	for _, v := range all {
		check, subject, _ := strings.Cut(v.ID, "@")
		summary := Safe(l.Say(v.Summary))
		said := summary
		if strings.Contains(subject, ":") { // an address; "rig" is a part of many words
			said = strings.ReplaceAll(summary, subject, "")
		}
		key := strings.Join([]string{check, string(v.Turn), said}, "\x00")
		if i, seen := at[key]; seen {
			out[i].ID += ", " + Safe(subject)
			continue
		}
		at[key] = len(out)
		v.ID, v.Summary = Safe(v.ID), summary
		out = append(out, v)
	}
	return out
}

// changeWords is "0000:41:00.0 in SLOT1, BAR1: 32768 MiB → 256 MiB (BAR1 shrank …)".
func changeWords(c diff.Change, l lang.Language) string {
	what := l.Say(c.What)
	if c.Where != "" {
		what = c.Where + l.Say(", ") + what
	}
	switch {
	case c.Before != "" && c.After != "":
		what += ": " + c.Before + " → " + c.After
	case c.Before != "" && c.Effect == diff.Unseen:
		what += l.Sayf(": no longer seen (was %s)", c.Before)
	case c.Before != "":
		what += l.Sayf(": gone (was %s)", c.Before)
	case c.After != "" && c.Effect == diff.Seen:
		what += l.Sayf(": %s, not seen before", c.After)
	case c.After != "":
		what += ": " + c.After + l.Say(", new")
	case c.Effect == diff.Unseen:
		what += l.Say(": no longer seen")
	case c.Effect == diff.Seen:
		what += l.Say(": not seen before")
	}
	if c.Why != "" && c.Effect == diff.Worse {
		what += l.Sayf(" (%s)", l.Say(c.Why))
	}
	return Safe(what)
}

// WriteChangesJSON writes a comparison for programs.
func WriteChangesJSON(w io.Writer, d diff.Result) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Schema string `json:"schema"`
		diff.Result
	}{DiffSchema, d})
}

// WriteChangesMarkdown writes a comparison for an issue or a pull request.
func WriteChangesMarkdown(w io.Writer, d diff.Result, l lang.Language) error {
	m := &markdown{l: l}
	m.line("## preflight: %s", m.say("changes from %s to %s", md(d.Before), md(d.After)))
	m.changes(d)
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (m *markdown) changes(d diff.Result) {
	for _, g := range d.Rigs {
		m.line("")
		name := md(g.Name)
		if g.Was != "" {
			name += " " + m.say("(was %s)", md(g.Was))
		}
		m.line("### %s", name)
		m.line("")
		if p := presences[g.Presence]; p != "" {
			m.line("%s", m.l.Say(p))
			continue
		}
		if len(g.Facts)+len(g.Findings) == 0 {
			m.line("%s", m.l.Say("nothing changed"))
		}
		for _, c := range changeLines(g, m.l) {
			if c.id == "" {
				m.bullet("%s %s", c.sign, md(c.text))
			} else {
				m.bullet("%s %s `%s`: %s", c.sign, c.turn, strings.ReplaceAll(c.id, "`", "'"), md(c.text))
			}
		}
		for _, n := range g.Notes {
			m.bullet("%s %s", m.say("note:"), md(m.l.Say(n)))
		}
	}
}

// State is a rig of a report that was read as a comparison takes it.
func (g Rig) State(tool string) diff.State {
	return diff.State{Name: g.Name, Facts: g.Facts, Findings: g.Findings, Lost: g.Error != nil || len(g.Facts) == 0, Tool: tool}
}

// Round tells in one line what a comparison of two rounds of a run says: "2 fixed, 1 new".
func Round(d diff.Result, l lang.Language) string {
	n := map[diff.Turn]int{}
	for _, g := range d.Rigs {
		for _, v := range g.Findings {
			n[v.Turn]++
		}
	}
	var parts []string
	for _, t := range []diff.Turn{diff.New, diff.Risen, diff.Lost, diff.Fallen, diff.Fixed, diff.Known} {
		if n[t] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[t], l.Say(string(t))))
		}
	}
	if len(parts) == 0 {
		return l.Say("nothing changed")
	}
	return strings.Join(parts, l.Say(", "))
}

// ChangeLine is one line of a comparison for a page.
type ChangeLine struct {
	Sign, Text string
	Verdict    checks.Verdict // whose colour it has
}

// ChangeLines are what changed on one rig, in the order of the text view.
func ChangeLines(g diff.Rig, l lang.Language) []ChangeLine {
	if p := presences[g.Presence]; p != "" {
		return []ChangeLine{{"?", l.Say(p), checks.Unknown}}
	}
	colour := map[string]checks.Verdict{"✗": checks.Fail, "↓": checks.Fail, "?": checks.Unknown, "✓": checks.Pass, "↑": checks.Pass, "!": checks.Warn, "=": checks.Warn}
	verdict := func(sign string) checks.Verdict {
		if v, ok := colour[sign]; ok {
			return v
		}
		return checks.Skip
	}
	var out []ChangeLine
	for _, c := range changeLines(g, l) {
		words := c.text
		if c.id != "" {
			words = c.turn + " " + c.id + ": " + c.text
		}
		out = append(out, ChangeLine{c.sign, words, verdict(c.sign)})
	}
	if len(out) == 0 {
		out = append(out, ChangeLine{"✓", l.Say("nothing changed"), checks.Pass})
	}
	for _, n := range g.Notes {
		out = append(out, ChangeLine{"·", l.Say(n), checks.Skip})
	}
	return out
}
