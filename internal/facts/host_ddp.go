package facts

import (
	"encoding/json"

	"preflight/internal/sample"
)

// ProbeDDPPath holds a [DDP].
const ProbeDDPPath = "probe/ddp.json"

// DDP is a short training of a synthetic model, on each card alone and on more and more cards together, or the observation of
// a command of the user's own. Times are milliseconds a step, means after a warm-up.
type DDP struct {
	Ended      string         `json:"ended"` // one of the DDP… words
	Text       string         `json:"text,omitempty"`
	Python     string         `json:"python,omitempty"`
	Torch      string         `json:"torch,omitempty"`
	NCCL       string         `json:"nccl,omitempty"`
	Parameters int64          `json:"parameters,omitempty"` // of the model
	Gradient   int64          `json:"gradient,omitempty"`   // bytes that each card sends a step
	Tokens     int            `json:"tokens,omitempty"`     // rows of a card's batch
	Stages     []DDPStage     `json:"stages,omitempty"`
	Observed   *DDPObserved   `json:"observed,omitempty"` // instead of stages
	Series     *sample.Series `json:"series,omitempty"`
	Source     string         `json:"source"`
}

// Ways in which a scaling test ends.
const (
	DDPDone    = "done"
	DDPStopped = "stopped"
	DDPHang    = "hang"
	DDPError   = "error"
	DDPCut     = "cut"     // the connection went
	DDPBusy    = "busy"    // not run: cards are at work
	DDPMissing = "missing" // not run: no torch, no driver
)

// DDPStage is one set of cards at work.
type DDPStage struct {
	Cards   []string `json:"cards"`              // BDF
	Step    float64  `json:"step_ms"`            // with the gradients synchronised; of the slowest card
	NoSync  float64  `json:"no_sync_ms"`         // without; what is between them is communication
	Wait    float64  `json:"wait_ms,omitempty"`  // of a step for its data, when it comes from files
	Peak    int64    `json:"peak_mib,omitempty"` // of memory on one card, allocated by torch
	Begin   float64  `json:"begin"`              // s since the series' first sample
	End     float64  `json:"end"`
	Fetched int64    `json:"fetched,omitempty"` // bytes of data that a step reads from files
}

// DDPObserved is a command of the user's own that was watched while it ran.
type DDPObserved struct {
	Command string  `json:"command"`
	Seconds float64 `json:"seconds"`
	Exit    int     `json:"exit"` // of the command; -1 when it was ended at the limit
	Tail    string  `json:"tail,omitempty"`
}

// readDDP takes a scaling test from its file.
func readDDP(b *builder) {
	raw, ok := b.read(ProbeDDPPath)
	if !ok {
		b.gap(KindDDP, "no scaling test was run")
		return
	}
	var d DDP
	if err := json.Unmarshal(raw, &d); err != nil {
		b.gap(KindDDP, "%s could not be read: %v", ProbeDDPPath, err)
		return
	}
	for _, st := range d.Stages {
		if st.Step < 0 || st.Step > 0 && st.Step < 1e-3 || st.NoSync < 0 || st.Step > longestBurnIn*1e3 || st.Begin < 0 || st.End > longestBurnIn || len(st.Cards) > 64 {
			b.gap(KindDDP, "%s could not be read: a step of %g ms on %d cards", ProbeDDPPath, st.Step, len(st.Cards))
			return
		}
	}
	d.Text = clipped(d.Text)
	d.Source = firstNonEmpty(d.Source, "file:"+ProbeDDPPath)
	b.host.DDP = &d
}
