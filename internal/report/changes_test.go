package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/lang"
)

// changed is a comparison with every kind of line, and a host that tries to move the cursor.
func changed() diff.Result {
	return diff.Result{Before: "runs/1", After: "2026-12-01 09:00 UTC", Rigs: []diff.Rig{
		{Name: "node-a", Presence: "both", Facts: []diff.Change{
			{Where: "0000:41:00.0 (SLOT1)", What: "BAR1", Before: "32768 MiB", After: "256 MiB", Effect: diff.Worse, Why: "BAR1 shrank: Resizable BAR or Above 4G was lost"},
			{Where: "0000:81:00.0 (SLOT3)", What: "BAR1", Before: "32768 MiB", After: "256 MiB", Effect: diff.Worse, Why: "BAR1 shrank: Resizable BAR or Above 4G was lost"},
			{Where: "module B1", What: "size", Before: "32768 MiB", Effect: diff.Gone, Why: "a memory module is gone or smaller"},
			{What: "PCIe links", Effect: diff.Unseen},
			{What: "BIOS version", Before: "2.4", After: "2.6\x1b[2J", Effect: diff.Changed},
			{Where: "card aaaa", What: "place", Before: "0000:41:00.0 (SLOT1)", After: "0000:81:00.0 (SLOT3)", Effect: diff.Moved},
			{Where: "kernel command line", What: "pci", After: "realloc", Effect: diff.Added},
			{What: "cores", Before: "32", After: "64", Effect: diff.Better},
			{What: "measured all-reduce", Effect: diff.Seen},
		}, Findings: []diff.Verdict{
			{ID: "firmware.resizable-bar@0000:41:00.0", Turn: diff.New, Before: checks.Pass, After: checks.Fail, Summary: "0000:41:00.0 exposes 256 MiB of 24564 MiB"},
			{ID: "firmware.resizable-bar@0000:81:00.0", Turn: diff.New, Before: checks.Pass, After: checks.Fail, Summary: "0000:81:00.0 exposes 256 MiB of 24564 MiB"},
			{ID: "nccl.all-reduce@rig", Turn: diff.New, Before: checks.Pass, After: checks.Warn, Summary: "7.9 GB/s, right for these links; 15.1 if cards and slots ran at their best"},
			{ID: "nccl.all-reduce@process-per-card", Turn: diff.New, Before: checks.Pass, After: checks.Warn, Summary: "7.9 GB/s, right for these links; 15.1 if cards and slots ran at their best"},
			{ID: "cpu.cores@rig", Turn: diff.Known, After: checks.Fail, Summary: "8 physical cores, 32 wanted"},
			{ID: "pcie.width@0000:81:00.0", Turn: diff.Fixed, Before: checks.Fail, After: checks.Pass, Summary: "0000:81:00.0 runs x8, slot and card can do x16"},
		}, Notes: []string{"cards are compared by address: no identity is known on both sides"}},
		{Name: "node-b", Presence: "both", Facts: []diff.Change{}, Findings: []diff.Verdict{}},
		{Name: "node-c", Presence: "lost", Facts: []diff.Change{}, Findings: []diff.Verdict{}},
		{Name: "new", Was: "old", Presence: "both", Facts: []diff.Change{}, Findings: []diff.Verdict{}},
	}}
}

func TestChanges(t *testing.T) {
	for name, o := range map[string]TextOptions{"changes.text": {}, "changes.zh.text": {Lang: lang.Zh, Width: 90}, "changes.color.text": {Color: true, Width: 100}} {
		var b bytes.Buffer
		if err := WriteChanges(&b, changed(), o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
	var b bytes.Buffer
	if err := WriteChangesMarkdown(&b, changed(), lang.En); err != nil {
		t.Fatal(err)
	}
	golden(t, "changes.md", b.Bytes())
}

func TestChangesFollowTheirSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema, err := c.Compile("../../docs/diff.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []diff.Result{changed(), {}} {
		var b bytes.Buffer
		if err := WriteChangesJSON(&b, d); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Error(err)
		}
	}
}

// Every fixed word of a comparison is said in Chinese, but for names that are the same in every language.
func TestPhrasesOfAComparison(t *testing.T) {
	same := "nvidia-persistenced NVreg_EnableResizableBar no-cgroups /dev/shm"
	for _, p := range diff.Phrases() {
		if !lang.Zh.Speaks(p) && !strings.Contains(same, p) {
			t.Errorf("%q has no Chinese", p)
		}
	}
}
