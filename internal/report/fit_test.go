package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/workload"
)

// fitted is a job that fits with changes on one machine, not at all on another, and of a third nothing is known.
func fitted(t *testing.T) *Report {
	t.Helper()
	machine := func(name string, cards int) workload.Rig {
		return workload.Rig{
			Names: []string{name}, Cards: cards, Policy: workload.DefaultPolicy(), Price: &workload.Price{PerCard: 0.4, Origin: "--price"}, Buy: 8000,
			Card:      workload.Card{Name: "GeForce RTX 4090", Slug: "rtx-4090", Memory: 24564 << 20, TFLOPS: 165.2, MemoryGBs: 1008},
			Bandwidth: []workload.Bandwidth{{Cards: cards, GBs: 15.1, Measured: true, Why: "measured on this rig (nccl-tests, 4 cards)"}},
		}
	}
	w := workload.Workload{Name: "sft", Model: workload.OfSize(7e9), Method: "full", Tokens: 1e9}.Complete()
	j := workload.Judge(w, []workload.Rig{machine("node-a", 4), machine("node-b", 1)}, nil, []workload.Open{{Rig: "node-\x1bc", Why: "it was not reached"}})
	r := &Report{Schema: Schema, Tool: Tool{Name: "preflight", Version: "test"}, Rigs: []Rig{}, Fit: []workload.Job{j}, Run: Run{At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Source: "declared"}}
	r.Finish()
	return r
}

func TestFitText(t *testing.T) {
	for _, row := range []struct {
		l    lang.Language
		says []string
	}{
		{lang.En, []string{
			"! node-a  4× GeForce RTX 4090  fits with changes", "with: 8-bit AdamW", "✗ node-b  1× GeForce RTX 4090  does not fit", `? node-\x1bc  it was not reached`,
			"of 25.76 that a card has", "measured on this rig", "overlap: communication hides behind at most 60 %", "torchrun --standalone", "cheaper than rented after 5000 hours",
		}},
		{lang.Zh, []string{"改动后放得下", "放不下", "没有连上", "8 位 AdamW", "在本机实测", "单卡放不下", "使用 5000 小时后，买比租便宜"}},
	} {
		var b bytes.Buffer
		if err := WriteText(&b, fitted(t), TextOptions{Width: 200, Lang: row.l}); err != nil {
			t.Fatal(err)
		}
		for _, want := range row.says {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", row.l, want, b.String())
			}
		}
	}
}

func TestFitMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMarkdown(&b, fitted(t), lang.En); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| fits with changes |", "| does not fit |", "it was not reached", "torchrun"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestFitFollowsItsSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, fitted(t)); err != nil {
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
	broken["fit"].([]any)[0].(map[string]any)["rigs"].([]any)[0].(map[string]any)["fit"] = "perhaps"
	if schema.Validate(broken) == nil {
		t.Error("the schema accepts a verdict that does not exist")
	}
}

func TestFitVerdict(t *testing.T) {
	for _, row := range []struct {
		fit, speed string
		want       checks.Verdict
	}{
		{workload.FitsAsIs, workload.Suited, checks.Pass},
		{workload.FitsAsIs, workload.Bound, checks.Warn},
		{workload.FitsChanged, workload.Suited, checks.Warn},
		{workload.FitsAsIs, workload.Unclear, checks.Unknown},
		{workload.FitsNot, workload.Unclear, checks.Fail},
	} {
		if got := FitVerdict(workload.Assessment{Fit: row.fit, Speed: row.speed}); got != row.want {
			t.Errorf("%s, %s: %s, want %s", row.fit, row.speed, got, row.want)
		}
	}
}
