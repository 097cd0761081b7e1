package html

import (
	"strings"
	"testing"

	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/workload"
)

func fitPage(t *testing.T, w workload.Workload, l lang.Language) string {
	t.Helper()
	rig := workload.Rig{
		Names: []string{"node-<b>"}, Cards: 4, Policy: workload.DefaultPolicy(), Price: &workload.Price{PerCard: 0.4},
		Card:      workload.Card{Name: "GeForce RTX 4090", Slug: "rtx-4090", Memory: 24564 << 20, TFLOPS: 165.2, MemoryGBs: 1008},
		Bandwidth: []workload.Bandwidth{{Cards: 4, GBs: 15.1, Why: "measured on such NVLink machines"}},
	}
	r := &report.Report{Rigs: []report.Rig{}, Fit: []workload.Job{workload.Judge(w.Complete(), []workload.Rig{rig}, nil, nil)}}
	r.Finish()
	var b strings.Builder
	if err := Write(&b, r, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A job has a bar of memory for each strategy with the card's limit, a curve, and the cost.
func TestFitIsDrawn(t *testing.T) {
	w := workload.Workload{Model: workload.OfSize(7e9), Method: "full", Tokens: 1e9}
	page := fitPage(t, w, lang.En)
	for _, want := range []string{`class="fit stack"`, `class="limit"`, `class="fit curve"`, "card: 25.8 GB", ">fsdp<", "8-bit AdamW", "torchrun --standalone", "4 × 0.4 × h", "node-&lt;b&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if n := strings.Count(page, "mem m0"); n < 6 {
		t.Errorf("%d bars have weights, want one a strategy", n)
	}
	if page := fitPage(t, w, lang.Zh); !strings.Contains(page, "每张卡的显存") || !strings.Contains(page, "改动后放得下") {
		t.Error("the Chinese page is not Chinese")
	}
}

// What does not fit has no speed-up to draw, and serving none by the step; the page says why.
func TestFitWithoutACurve(t *testing.T) {
	for want, w := range map[string]workload.Workload{
		"It does not fit, so there is no speed-up.": {Model: workload.OfSize(70e9), Method: "full"},
		"Serving is not scaled by the step.":        {Model: workload.OfSize(7e9), Method: "inference"},
	} {
		page := fitPage(t, w, lang.En)
		if strings.Contains(page, `class="fit curve"`) || !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
