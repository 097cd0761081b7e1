package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
)

// A burn-in stands in the text as tables, a dash for what was not told, and in the JSON as the schema has it.
func TestBurnInInReports(t *testing.T) {
	r := sample()
	f := &checks.BurnFigure{
		Seconds: 60, Asked: 60, Ended: facts.BurnDone, Quick: true, Watts: 720, Hot: 85, Advice: 350,
		Cards: []checks.BurnCard{
			{BDF: "0000:01:00.0", Peak: 71, Mean: 69, Watts: 440, PeakWatts: 450, Limit: 450, Clock: 2520, Samples: 30, Kernel: "mma80", TFLOPS: 160, GBs: 850, Rounds: 200, GiB: 18.5, Passes: 1200},
			{BDF: "0000:21:00.0", Held: 3, Samples: 30, Wrong: 2, Different: 1, GiB: 18.5, Passes: 1200},
			{BDF: "0000:41:00.0", Samples: 1},
		},
		Caps: []facts.CapStep{{Watts: 450, Seconds: 30, TFLOPS: 160, Speed: 1, Drawn: 880, Hottest: 71}, {Watts: 350, Seconds: 30, TFLOPS: 155, Speed: 0.969}},
	}
	r.Rigs[0].Figures = &checks.Figures{Links: []checks.LinkFigure{}, Power: []checks.PowerFigure{}, AllReduce: []checks.ReduceFigure{}, Places: []checks.PlaceFigure{}, BurnIn: f}
	var b bytes.Buffer
	if err := WriteText(&b, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"burn-in  60 s of load on 3 cards, 720 W together; too short to prove anything about heat soak; a cap of 350 W is recommended",
		"0000:01:00.0  71 °C  69 °C  440 W  450 W  2520 MHz  0/30       160 TFLOPS  18.5 GiB × 1200  0",
		"0000:21:00.0  –      –      –      –      –         3/30       –           18.5 GiB × 1200  3",
		"0000:41:00.0  –      –      –      –      –         0/1        –           –                0",
		"450 W  100.0 %  880 W  71 °C", "350 W  96.9 %   –      –",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := WriteText(&b, r, TextOptions{Lang: lang.Zh}); err != nil || !strings.Contains(b.String(), "满载 60 秒，3 张卡，合计 720 W") {
		t.Errorf("%v\n%s", err, b.String())
	}
	schema, err := jsonschema.NewCompiler().Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err == nil {
		err = schema.Validate(doc)
	}
	if err != nil {
		t.Error(err)
	}
}

// Checks that a probe leaves out are counted, not named one by one; a few are named.
func TestLeftOutChecksAreCounted(t *testing.T) {
	r := sample()
	var all []checks.Finding
	for _, id := range checks.IDs() {
		all = append(all, checks.Finding{ID: id + "@rig", Check: id, Subject: "rig", Verdict: checks.Pass, Summary: "x"})
	}
	r.Rigs[0].Findings, _ = checks.Selection{Only: []string{"burn-in"}}.Apply(all, checks.Policy{})
	r.Rigs[0].Fixes = nil
	var b bytes.Buffer
	if err := WriteText(&b, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d other checks: not looked at, by choice", len(checks.IDs())-3); !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	r.Rigs[0].Findings, _ = checks.Selection{Skip: []string{"gpu.count"}}.Apply(all, checks.Policy{})
	b.Reset()
	if err := WriteText(&b, r, TextOptions{}); err != nil || !strings.Contains(b.String(), "gpu.count: not looked at, by choice") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
