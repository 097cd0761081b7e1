package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"preflight/internal/diff"
	"preflight/internal/lang"
)

// FuzzRead: whatever lies in a file that claims to be a report, it is refused or compared, and nothing of it reaches a terminal as
// a control character. A report does not differ from itself.
func FuzzRead(f *testing.F) {
	// Seeds are small: a whole report is minimized for longer than fuzzing lasts.
	f.Add([]byte(`{"schema": "preflight/report/v1", "rigs": [{"name": "a", "facts": {"bios": {"version": {"value": "2.4"}}, "cards": [{"bdf": "0000:41:00.0", "id": {"value": "aaaa"}, "bar1": {"value": 256}}], "os": {"cmdline": {"value": "quiet iommu=pt"}}}}]}`))
	f.Add([]byte(`{"schema": "preflight/report-line/v1", "type": "rig", "rig": {"name": "a", "facts": {"psus": [{"name": "PSU1", "watts": 2000}]}, "findings": [{"id": "x@rig", "check": "x", "verdict": "warn"}]}}
{"schema": "preflight/report-line/v1", "type": "run", "tool": {}, "run": {}}`))
	f.Add([]byte(`{"schema": "preflight/report/v1", "rigs": [{"name": "a\u001b[2J\u202e", "facts": {"bios": {"version": {"value": "\u001b]0;x\u0007"}}, "cards": [{"bdf": "\n", "id": "\u009b"}]},
		"findings": [{"id": "x@\u001b[1m", "check": "x", "verdict": "fail", "summary": "\r\u2028"}, {"verdict": "great"}]}]}`))
	f.Add([]byte(`{"schema": "preflight/report-line/v1", "type": "across"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Read(raw)
		if err != nil {
			return
		}
		var was, is, none []diff.State
		for _, g := range r.Rigs {
			s := g.State("1")
			was = append(was, s)
			s.Facts, s.Findings = nil, nil
			none = append(none, s)
			is = append(is, g.State("1"))
		}
		names := map[string]bool{}
		for _, g := range r.Rigs {
			names[g.Name] = true
		}
		if d := diff.Compare(was, is, nil); !d.Empty() && len(names) == len(was) && !lostIn(was) {
			t.Errorf("a report differs from itself: %+v", d)
		}
		for _, d := range []diff.Result{diff.Compare(was, none, nil), diff.Compare(none, is, nil)} {
			shown(t, d)
		}
	})
}

// The last line of a stream has what changed, as the whole report does.
func TestLinesTellChanges(t *testing.T) {
	r, d := sample(), changed()
	r.Changes = &d
	var b bytes.Buffer
	if err := WriteJSONL(&b, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"changes":{"before":"runs/1"`) {
		t.Error(last)
	}
}

func lostIn(states []diff.State) bool {
	for _, s := range states {
		if s.Lost {
			return true
		}
	}
	return false
}

const wordJoiner = '\u2060' // Markdown puts it behind an @, so that nobody is called

// shown holds that no view of a comparison carries a control character of a host.
func shown(t *testing.T, d diff.Result) {
	t.Helper()
	for _, l := range []lang.Language{lang.En, lang.Zh} {
		var b bytes.Buffer
		if err := WriteChanges(&b, d, TextOptions{Lang: l}); err != nil {
			t.Fatal(err)
		}
		if err := WriteChangesMarkdown(&b, d, l); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool {
			return r != '\n' && r != wordJoiner && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
		}); i >= 0 {
			t.Errorf("a control character came through: %q", b.String()[max(0, i-20):i+4])
		}
	}
}
