package workload

import (
	"fmt"
	"slices"
)

// Workload is a training or serving job.
type Workload struct {
	Name          string  `json:"name"`
	Model         Model   `json:"model"`
	Method        string  `json:"method"`
	Precision     string  `json:"precision"`
	Optimizer     string  `json:"optimizer,omitempty"` // of training
	Sequence      int     `json:"sequence"`            // tokens
	MicroBatch    int     `json:"micro_batch,omitempty"`
	GlobalBatch   int     `json:"global_batch,omitempty"` // sequences of one optimizer step over all cards
	Checkpointing string  `json:"checkpointing,omitempty"`
	Attention     string  `json:"attention"`
	Strategy      string  `json:"strategy"`
	Requests      int     `json:"requests,omitempty"` // served at once
	Rank          int     `json:"lora_rank,omitempty"`
	Tokens        float64 `json:"tokens,omitempty"` // of the whole training; 0: not said
	Hours         float64 `json:"hours,omitempty"`  // measured on HoursOn
	HoursOn       string  `json:"hours_on,omitempty"`

	Assumed []string `json:"assumed"` // what nobody said

	chooseBatch         bool // nobody said the micro-batch: the largest that fits is taken
	chooseCheckpointing bool // nobody said: none or full, whichever gives more tokens a second
}

// The words of a workload.
var (
	methods       = []string{"full", "lora", "qlora", "inference", "ppo"}
	precisions    = []string{"bf16", "fp16", "fp32", "8bit", "4bit"}
	checkpointing = []string{"none", "selective", "full"}
	attentions    = []string{"flash", "eager"}
	strategies    = []string{"auto", "ddp", "zero-1", "zero-2", "zero-3", "fsdp", "pipeline", "tensor"}
)

// Methods, Precisions, Checkpointings, Attentions and Strategies list what the fields of those names take.
func Methods() []string { return slices.Clone(methods) }

// Precisions lists what precision takes.
func Precisions() []string { return slices.Clone(precisions) }

// Checkpointings lists what checkpointing takes.
func Checkpointings() []string { return slices.Clone(checkpointing) }

// Attentions lists what attention takes.
func Attentions() []string { return slices.Clone(attentions) }

// Strategies lists what strategy takes.
func Strategies() []string { return slices.Clone(strategies) }

// Serving says whether nothing is trained.
func (w Workload) Serving() bool { return w.Method == "inference" }

// adapted says whether only adapters are trained.
func (w Workload) adapted() bool { return w.Method == "lora" || w.Method == "qlora" }

// Complete fills what was not said with what is usual, and notes it.
func (w Workload) Complete() Workload {
	note := func(format string, args ...any) { w.Assumed = append(w.Assumed, fmt.Sprintf(format, args...)) }
	text := func(field *string, name, usual string) {
		if *field == "" {
			*field = usual
			note("%s %s", name, usual)
		}
	}
	number := func(field *int, name string, usual int) {
		if *field == 0 {
			*field = usual
			note("%s %d", name, usual)
		}
	}
	text(&w.Method, "method", "full")
	text(&w.Precision, "precision", "bf16")
	text(&w.Attention, "attention", "flash")
	if w.Strategy == "" {
		w.Strategy = "auto"
	}
	number(&w.Sequence, "sequence", 2048)
	if w.Serving() {
		number(&w.Requests, "requests", 1)
		return w
	}
	text(&w.Optimizer, "optimizer", "adamw")
	if w.Checkpointing == "" {
		w.Checkpointing, w.chooseCheckpointing = "none", true
	}
	if w.MicroBatch == 0 {
		w.MicroBatch, w.chooseBatch = 1, true
	}
	number(&w.GlobalBatch, "global batch", max(64, w.MicroBatch))
	if w.adapted() {
		number(&w.Rank, "LoRA rank", 16)
	}
	return w
}

// Validate finds what cannot be; the workload is complete. The error names the field, its value and what it takes.
func (w Workload) Validate() error {
	for _, x := range []struct {
		name, value string
		takes       []string
	}{
		{"method", w.Method, methods},
		{"precision", w.Precision, precisions},
		{"attention", w.Attention, attentions},
		{"strategy", w.Strategy, strategies},
		{"checkpointing", w.Checkpointing, checkpointing},
		{"optimizer", w.Optimizer, Optimizers()},
	} {
		if x.value != "" && !slices.Contains(x.takes, x.value) {
			return &WordError{Field: x.name, Given: x.value, Takes: x.takes}
		}
	}
	for _, x := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"sequence", w.Sequence, 1, 100_000_000},
		{"micro-batch", w.MicroBatch, 0, 1_000_000},
		{"global-batch", w.GlobalBatch, 0, 1_000_000_000},
		{"requests", w.Requests, 0, 1_000_000},
		{"lora-rank", w.Rank, 0, 65536},
	} {
		if x.value < x.least || x.value > x.most {
			return fmt.Errorf("%s %d is out of range; it must be %d to %d", x.name, x.value, max(x.least, 1), x.most)
		}
	}
	switch {
	case w.Tokens < 0 || w.Tokens > 1e18:
		return fmt.Errorf("tokens %g is out of range", w.Tokens)
	case w.Hours < 0 || w.Hours > 1e7:
		return fmt.Errorf("hours %g is out of range", w.Hours)
	case !w.Serving() && (w.Precision == "8bit" || w.Precision == "4bit"):
		return fmt.Errorf("precision %s is for inference; to train over 4-bit weights: method qlora", w.Precision)
	}
	if _, ok := PresetOf(w.Optimizer, w.Precision); !w.Serving() && !ok {
		return fmt.Errorf("optimizer %s is a rule for 16-bit weights, not for %s", w.Optimizer, w.Precision)
	}
	return w.Model.Validate()
}

// WordError is a word that a field does not take.
type WordError struct {
	Field, Given string
	Takes        []string
}

func (e *WordError) Error() string {
	return fmt.Sprintf("%s %q is not known; it takes %v", e.Field, clip(e.Given), e.Takes)
}
