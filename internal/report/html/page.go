package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"time"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/report"
)

//go:embed *.gohtml style.css
var files embed.FS

// foldFrom is the number of rigs from which those without a fault or a warning are folded.
const foldFrom = 9

// page is what the template draws.
type page struct {
	Lang    string
	Title   string
	Style   template.CSS // our own file, embedded
	Policy  string       // Content-Security-Policy
	Report  *report.Report
	At      string
	Groups  []string
	Fleet   []fleetRow
	Counts  []count
	Rigs    []rig
	Changes *changes // since another run; nil for none
	Fit     []fitJob // the jobs, each on the rigs
	Hands   []string // the checklist; nil for a hand-over, whose answers stand with each rig
}

// changes are those since another run.
type changes struct {
	Before, After string
	Rigs          []changedRig
}

type changedRig struct {
	Name  string
	Lines []report.ChangeLine
}

// count is one verdict with its rigs.
type count struct {
	Verdict checks.Verdict
	N       int
}

// Write writes a report, already in the language l (report.Report.In), as one HTML file.
func Write(w io.Writer, r *report.Report, l lang.Language) error {
	style, err := files.ReadFile("style.css")
	if err != nil {
		return err
	}
	t, err := template.New("").Funcs(functions(l)).ParseFS(files, "*.gohtml")
	if err != nil {
		return err
	}
	p := page{
		Lang: map[lang.Language]string{lang.Zh: "zh-CN"}[l], Title: title(r, l), Style: template.CSS(style), Policy: policy(style), //nolint:gosec // ours
		Report: r, At: r.Run.At.UTC().Format("2006-01-02 15:04 UTC"), Groups: groups(r),
	}
	if p.Lang == "" {
		p.Lang = "en"
	}
	cards := 0
	for i, g := range r.Rigs {
		x := newRig(r, i, l)
		x.Folded = len(r.Rigs) >= foldFrom && g.Error == nil && g.Verdict != checks.Fail && g.Verdict != checks.Warn
		p.Rigs = append(p.Rigs, x)
		p.Fleet = append(p.Fleet, fleetRowOf(x, p.Groups))
		if g.Host != nil {
			cards = max(cards, len(g.Host.Cards))
		}
	}
	if d := r.Changes; d != nil {
		p.Changes = &changes{Before: d.Before, After: d.After}
		for _, g := range d.Rigs {
			p.Changes.Rigs = append(p.Changes.Rigs, changedRig{g.Name, report.ChangeLines(g, l)})
		}
	}
	p.Fit = fitJobs(r, l)
	if r.Acceptance == nil && cards > 0 {
		p.Hands = report.Checklist(cards)
	}
	for _, v := range []checks.Verdict{checks.Fail, checks.Warn, checks.Unknown, checks.Pass, checks.Skip} {
		if n := r.Summary.Rigs[v]; n > 0 {
			p.Counts = append(p.Counts, count{v, n})
		}
	}
	return t.ExecuteTemplate(w, "page.gohtml", p)
}

// policy lets the page have its own style and nothing else: no script, no network, no form, no frame.
func policy(style []byte) string {
	sum := sha256.Sum256(style)
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

func title(r *report.Report, l lang.Language) string {
	name := l.Sayf("%d rigs", len(r.Rigs))
	switch {
	case len(r.Rigs) == 0 && len(r.Fit) > 0:
		name = l.Say("fit") + " " + report.Safe(r.Fit[0].Title)
	case len(r.Rigs) == 1:
		name = report.Safe(r.Rigs[0].Name)
	}
	return "preflight · " + name + " · " + r.Run.At.UTC().Format(time.DateOnly)
}

// functions are what the templates call. say is the one way to a label, so that a test can find them all.
func functions(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"say":   l.Say,
		"sayf":  func(format string, args ...any) string { return l.Sayf(format, args...) },
		"safe":  report.Safe,
		"num":   num,
		"upper": func(v checks.Verdict) string { return l.Say(strings.ToUpper(string(v))) },
		"sign":  sign,
		"mid":   func(a, b float64) float64 { return a + b/2 },
		"add":   func(a, b float64) float64 { return a + b },
		"seq":   func(i int) int { return i + 1 },
		"lines": func(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") },
		"mark":  report.AnswerMark,
	}
}

// sign is a verdict for those who do not see colours.
func sign(v checks.Verdict) string {
	return map[checks.Verdict]string{checks.Fail: "✗", checks.Warn: "!", checks.Unknown: "?", checks.Pass: "✓", checks.Skip: "–"}[v]
}
