package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a report with every kind of line: grouped cards, a consequence, an unknown, an unreachable rig, and a
// product name that tries to move the cursor.
func sample() *Report {
	cause := "pcie.width@0000:81:00.0"
	h := &facts.Host{At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
	for range 8 {
		h.Cards = append(h.Cards, facts.Card{Name: facts.Of("GeForce RTX 4090", "t")})
	}
	h.Board.Vendor, h.Board.Name = facts.Of("Supermicro", "t"), facts.Of("H12\x1b[2JDSG-O-CPU", "t")
	h.CPU.Model, h.CPU.Sockets = facts.Of("AMD EPYC 7542 32-Core Processor", "t"), facts.Of(2, "t")
	find := func(check, subject string, v checks.Verdict, summary, remedy string) checks.Finding {
		f := checks.Finding{ID: check + "@" + subject, Check: check, Subject: subject, Verdict: v, Summary: summary, Remedy: remedy, Fingerprint: "0123456789abcdef", Evidence: []checks.Evidence{{Source: "sysfs:x", Value: "8"}}}
		if v == checks.Unknown {
			f.Known = "declare chassis { slot … } in rigs.hcl"
		}
		return f
	}
	guest := func(check string) checks.Finding { // several checks that lack the same
		f := find(check, "rig", checks.Unknown, "this is a virtual machine: it does not show the machine beneath", "")
		f.Known = "run the check on the host itself"
		return f
	}
	slow := find("nccl.all-reduce", "rig", checks.Warn, "7.1 GB/s, right for these links; 13.8 if cards and slots ran at their best", "nccl.all-reduce/slow")
	slow.Cause = &cause
	a := Rig{
		Name: "node-a", Address: "192.0.2.10", Verdict: checks.Fail, Host: h, Facts: facts.Tree(h), Line: "rigs.hcl:31", Required: []string{}, Findings: []checks.Finding{
			find("firmware.resizable-bar", "0000:01:00.0", checks.Fail, "0000:01:00.0 exposes 256 MiB of 24564 MiB", "firmware.resizable-bar/enable"),
			find("firmware.resizable-bar", "0000:21:00.0", checks.Fail, "0000:21:00.0 exposes 256 MiB of 24564 MiB", "firmware.resizable-bar/enable"),
			find("pcie.width", "0000:81:00.0", checks.Fail, "0000:81:00.0 runs x8, slot and card can do x16", "pcie.width/slot-fault"),
			slow,
			find("chassis.slot-spacing", "rig", checks.Unknown, "the board gives no slot order", ""),
			guest("pcie.acs"), guest("ram.channels"), guest("pcie.errors"),
			find("cpu.cores", "rig", checks.Pass, "64 physical cores, 32 wanted", ""),
		},
		Fixes: []Fix{{
			Number: 1, Code: "firmware.resizable-bar/enable", Title: "Enable Re-Size BAR", Reboot: "yes", Verify: "preflight check --only firmware",
			Steps:  []Step{{Text: "Turn it on.", Menu: "Advanced > PCI Subsystem Settings > Re-Size BAR Support = Enabled"}, {Text: "Or let the driver do it.", Command: "echo options nvidia NVreg_EnableResizableBar=1"}},
			Clears: []string{"firmware.resizable-bar@0000:01:00.0"},
		}},
	}
	b := Rig{Name: "node-b", Address: "192.0.2.11", Verdict: checks.Unknown, Facts: map[string]any{}, Findings: []checks.Finding{}, Fixes: []Fix{}, Required: []string{}, Error: &Failure{Phase: "connect", Summary: "connection refused", Advice: []string{"start sshd on the host"}}}
	r := &Report{Schema: Schema, Tool: Tool{"preflight", "test"}, Run: Run{At: h.At, Source: "ssh", Exit: 3}, Rigs: []Rig{a, b}}
	r.Finish()
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (go test ./internal/report -update rewrites it):\n%s", path, d)
	}
}

func TestText(t *testing.T) {
	for name, o := range map[string]TextOptions{
		"fleet.plain.text":   {},
		"fleet.wide.text":    {Width: 120},
		"fleet.narrow.text":  {Width: 60},
		"fleet.quiet.text":   {Quiet: true},
		"fleet.verbose.text": {Verbose: true, Width: 100},
		"fleet.color.text":   {Color: true, Width: 100},
		"fleet.zh.text":      {Lang: lang.Zh},
		"fleet.zh.wide.text": {Lang: lang.Zh, Width: 72, Verbose: true},
	} {
		var b bytes.Buffer
		if err := WriteText(&b, sample().In(o.Lang), o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, l := range []lang.Language{lang.En, lang.Zh} {
		var b bytes.Buffer
		if err := WriteText(&b, sample().In(l), TextOptions{Width: 72, Verbose: true, Lang: l}); err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(b.String(), "\n") {
			if w := visible(l); w > 72 && !strings.Contains(l, "$ ") {
				t.Errorf("%d columns: %s", w, l)
			}
		}
	}
}

// A language changes what is said, and nothing that a program reads.
func TestLanguageLeavesIdentitiesAlone(t *testing.T) {
	en, zh := sample(), sample().In(lang.Zh)
	for i, g := range en.Rigs {
		for j, f := range g.Findings {
			z := zh.Rigs[i].Findings[j]
			if f.ID != z.ID || f.Verdict != z.Verdict || f.Remedy != z.Remedy || f.Fingerprint != z.Fingerprint || !cmp.Equal(f.Evidence, z.Evidence) {
				t.Errorf("%s became %+v", f.ID, z)
			}
			if f.Summary == z.Summary {
				t.Errorf("%s is not said in Chinese: %s", f.ID, f.Summary)
			}
		}
	}
	if en.Rigs[0].Findings[0].Summary != sample().Rigs[0].Findings[0].Summary {
		t.Error("the original changed")
	}
}

func TestFoldChinese(t *testing.T) {
	for _, row := range []struct {
		name, in string
		want     []string
	}{
		{"between characters", "全部卡运行在满宽度", []string{"全部卡运", "行在满宽", "度"}},
		{"no mark begins a line", "运行在满，好", []string{"运行在", "满，好"}},
		{"words stay whole", "运行在 x16 上", []string{"运行在", "x16 上"}},
		{"no bracket ends one", "运行在（满）", []string{"运行在", "（满）"}},
	} {
		if got := fold(row.in, 8, 8); !cmp.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestHostTextCannotReachTheTerminal(t *testing.T) {
	var b bytes.Buffer
	if err := WriteText(&b, sample(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("an escape sequence of the host came through")
	}
	for in, want := range map[string]string{"a\x1b[2Jb": `a\x1b[2Jb`, "a\nb": "a b", "\u202Eabc": `\u202eabc`, "中文": "中文", "\x9b": "\uFFFD"} {
		if got := Safe(in); got != want {
			t.Errorf("Safe(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestJSONFollowsItsSchema validates a whole report against the file that users get.
func TestJSONFollowsItsSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema, err := c.Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	var broken map[string]any
	_ = json.Unmarshal(b.Bytes(), &broken)
	broken["rigs"].([]any)[0].(map[string]any)["verdict"] = "fine"
	if schema.Validate(broken) == nil {
		t.Error("the schema accepts a verdict that does not exist")
	}
}

// Cards with the same fault share a line only when it says the same of each.
func TestRowsKeepDifferentObservationsApart(t *testing.T) {
	width := func(bdf, seen string) checks.Finding {
		return checks.Finding{ID: "pcie.width@" + bdf, Check: "pcie.width", Subject: bdf, Verdict: checks.Fail, Observed: seen, Expected: "x16", Summary: bdf + " runs " + seen, Remedy: "pcie.width/slot-fault"}
	}
	got := Rows(Rig{Findings: []checks.Finding{width("0000:01:00.0", "x8"), width("0000:21:00.0", "x4"), width("0000:41:00.0", "x8")}})
	var lines []string
	for _, r := range got {
		lines = append(lines, r.Text(lang.En, 4))
	}
	if diff := cmp.Diff([]string{"2 of 4 cards: runs x8", "0000:21:00.0 runs x4"}, lines); diff != "" {
		t.Error(diff)
	}
}

func TestSafeShowsWhatCouldHide(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\x1b[2Jb": `a\x1b[2Jb`, "a\u2028b": `a\u2028b`, "a\u202eb": `a\u202eb`, "a\u061cb": `a\u061cb`, "a\x9bb": "a\uFFFDb", "a\r\nb": "a  b", "×8 – GB/s": "×8 – GB/s",
	} {
		if got := Safe(in); got != want {
			t.Errorf("Safe(%q) = %q, want %q", in, got, want)
		}
	}
}

// A fix that an earlier rig was told in the same words is named, not told again; many rigs end with a count.
func TestManyRigs(t *testing.T) {
	r := sample()
	a, b := r.Rigs[0], r.Rigs[1]
	c, d := a, a
	c.Name, d.Name, d.Verdict = "node-c", "node-d", checks.Pass
	d.Findings, d.Fixes = nil, nil
	r.Rigs = []Rig{a, c, b, d}
	var out bytes.Buffer
	if err := WriteText(&out, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "NVreg_EnableResizableBar") != 1 || !strings.Contains(text, "the same steps as fix 1 of node-a") {
		t.Errorf("steps are told %d times:\n%s", strings.Count(text, "NVreg_EnableResizableBar"), text)
	}
	if !strings.Contains(text, "4 rigs: 2 fail, 1 pass, 1 not reached\n") {
		t.Errorf("no count:\n%s", text)
	}
	out.Reset()
	if err := WriteText(&out, r.In(lang.Zh), TextOptions{Lang: lang.Zh}); err != nil || !strings.Contains(out.String(), "4 台主机：2 台不通过，1 台通过，1 台未连接") || !strings.Contains(out.String(), "步骤与node-a 的修复 1相同") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
