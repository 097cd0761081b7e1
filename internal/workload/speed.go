package workload

import "fmt"

const (
	srcMeasured = "measured throughput of one card"
	srcPasses   = "Kaplan 2020: arXiv 2001.08361, §2.1: 2 FLOP a parameter forward, 4 backward; attention 4·L·a·d·s forward"
)

// Step is the time of one optimizer step on the rig, seconds (of serving: of one token of each request).
type Step struct {
	Compute       float64 `json:"compute_s"`
	Communication float64 `json:"communication_s"`   // on the links
	Exposed       float64 `json:"exposed_s"`         // of it, what nothing hides
	Bubble        float64 `json:"bubble_s"`          // stages of a pipeline that wait
	Tokens        float64 `json:"tokens"`            // of the step, over all cards
	Formula       string  `json:"formula,omitempty"` // of the computing
	Source        string  `json:"source,omitempty"`
	Overlap       float64 `json:"overlap"` // share of the computing behind which communication can hide
	Known         bool    `json:"known"`
	Why           string  `json:"why,omitempty"` // why it is not known
}

// Total is the whole step, seconds.
func (s Step) Total() float64 { return s.Compute + s.Exposed + s.Bubble }

// Efficiency is the share of the step in which cards compute.
func (s Step) Efficiency() float64 {
	if s.Total() <= 0 {
		return 0
	}
	return s.Compute / s.Total()
}

// Rate is tokens a second over all cards.
func (s Step) Rate() float64 {
	if s.Total() <= 0 {
		return 0
	}
	return s.Tokens / s.Total()
}

// passes is how often the model is gone through, counted in forward passes: three for training (the backward pass is two),
// two where weights are frozen (no gradient of a weight is computed), one more with full checkpointing, which computes the
// forward pass again. PPO trains two models and asks two; writing the answers is not counted.
func (w Workload) passes() float64 {
	n := 3.0
	switch {
	case w.Serving():
		return 1
	case w.adapted():
		n = 2
	case w.Method == "ppo":
		n = 8
	}
	if w.Checkpointing == "full" {
		if w.Method == "ppo" {
			return n + 2
		}
		return n + 1
	}
	return n
}

// FLOPs are the operations of one token.
func (w Workload) FLOPs() float64 {
	m := w.Model
	forward := 2*m.Active() + 4*float64(m.Layers)*float64(m.Heads*m.HeadDim)*float64(w.Sequence)
	return w.passes() * forward
}

// microSeconds is the computing of one micro-batch on one card that holds the whole model.
func microSeconds(w Workload, r Rig) (float64, bool) {
	tokens := float64(w.Sequence * w.MicroBatch)
	switch {
	case r.Card.Measured > 0:
		return tokens / r.Card.Measured, true
	case r.Card.TFLOPS <= 0 || r.Policy.Busy <= 0:
		return 0, false
	}
	return tokens * w.FLOPs() / (r.Card.TFLOPS * 1e12 * r.Policy.Busy), true
}

// computing is where the time of a token on one card comes from: the formula, and its source.
func (w Workload) computing(r Rig) (formula, source string) {
	if r.Card.Measured > 0 {
		return fmt.Sprintf("1 ÷ %.0f tokens a second", r.Card.Measured), srcMeasured
	}
	return fmt.Sprintf("%.1f GFLOP a token ÷ (%.2f × %.4g TFLOPS)", w.FLOPs()/1e9, r.Policy.Busy, r.Card.TFLOPS), srcPasses
}

// accumulation is the micro-batches of a step on each card: target ÷ (micro-batch × cards), rounded up. Cards that share
// one model (tensor, pipeline) work on the same micro-batches.
func accumulation(w Workload, strategy string, n int) int {
	at := w.MicroBatch
	if strategy != "tensor" && strategy != "pipeline" {
		at *= n
	}
	return max(1, (w.GlobalBatch+at-1)/at)
}

// StepOf is the time of a step on n cards, and what goes over the links in it.
func StepOf(w Workload, r Rig, strategy string, n int) (Step, []Flow) {
	if w.Serving() {
		return tokenOf(w, r, strategy, n)
	}
	k := accumulation(w, strategy, n)
	flows := TrafficOf(w, strategy, n, k)
	micro, ok := microSeconds(w, r)
	if !ok {
		return Step{Why: "the speed of a card is not known: --tokens-per-second says what one reaches"}, flows
	}
	s := Step{Compute: float64(k) * micro, Tokens: float64(k * n * w.MicroBatch * w.Sequence), Known: true, Overlap: r.Policy.Overlap}
	s.Formula, s.Source = w.computing(r)
	if strategy == "tensor" || strategy == "pipeline" {
		s.Compute, s.Tokens = s.Compute/float64(n), s.Tokens/float64(n)
	}
	if strategy == "pipeline" && n > 1 {
		s.Bubble = float64(n-1) * micro / float64(n) // (p − 1) ÷ m of the computing: Narayanan 2021, §2.2
	}
	if len(flows) == 0 {
		return s, flows
	}
	b, ok := r.bus(n)
	if !ok {
		return Step{Why: "what the links carry is not known: preflight probe nccl measures it"}, flows
	}
	hides := r.Policy.Overlap * micro // gradients go out while the last micro-batch is in its backward pass
	if strategy == "zero-2" || strategy == "zero-3" || strategy == "fsdp" || strategy == "pipeline" {
		hides = r.Policy.Overlap * s.Compute // these talk in every micro-batch
	}
	s.expose(flows, b.GBs, hides)
	return s, flows
}

// expose adds the communication, of which so many seconds are hidden behind computing.
func (s *Step) expose(flows []Flow, gbs, hides float64) {
	var quiet float64
	for _, f := range flows {
		t := f.Bytes / (gbs * 1e9)
		s.Communication += t
		if f.Waits {
			s.Exposed += t
		} else {
			quiet += t
		}
	}
	s.Exposed += max(0, quiet-hides)
}

// tokenOf is the least time in which every request gets its next token: weights and cache are read once (Pope 2022, §2). The
// delay of each message comes on top and is not known.
func tokenOf(w Workload, r Rig, strategy string, n int) (Step, []Flow) {
	flows := TrafficOf(w, strategy, n, 1)
	if r.Card.MemoryGBs <= 0 {
		return Step{Why: "how fast the card's memory is, is not known"}, flows
	}
	var read float64
	for _, l := range serving(w, strategy, n) {
		if l.Part == Weights || l.Part == Cache {
			read += l.Bytes
		}
	}
	if strategy == "pipeline" {
		read *= float64(n) // the stages read one after the other
	}
	s := Step{Compute: read / (r.Card.MemoryGBs * 1e9), Tokens: float64(w.Requests), Known: true, Source: srcServe}
	s.Formula = fmt.Sprintf("%s ÷ %.0f GB/s", gb(read), r.Card.MemoryGBs)
	if len(flows) == 0 {
		return s, flows
	}
	b, ok := r.bus(n)
	if !ok {
		return Step{Why: "what the links carry is not known: preflight probe nccl measures it"}, flows
	}
	s.expose(flows, b.GBs, 0)
	return s, flows
}
