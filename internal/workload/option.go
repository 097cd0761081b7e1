package workload

import "fmt"

// Option is one strategy on a rig.
type Option struct {
	Strategy     string  `json:"strategy"`
	Rank         int     `json:"rank"`
	Impossible   string  `json:"impossible,omitempty"` // why the model cannot be shared so
	MicroBatch   int     `json:"micro_batch,omitempty"`
	Accumulation int     `json:"accumulation,omitempty"`
	Recompute    string  `json:"checkpointing,omitempty"`
	Memory       Memory  `json:"memory"`
	Fits         bool    `json:"fits"`
	Traffic      []Flow  `json:"traffic"`
	Step         Step    `json:"step"`
	Efficiency   float64 `json:"efficiency,omitempty"`
	Speed        string  `json:"speed"`
	Reason       string  `json:"reason"` // why it has its place
}

// Words for how well the links suit a strategy.
const (
	Suited   = "suited"
	Bound    = "communication-bound"
	Unsuited = "not suited"
	Unclear  = "unknown"
)

// ranking is the order of strategies and the reason for each place. Where cards reach each other only through the
// processor, what talks least comes first, and what talks in every layer last.
func ranking(w Workload, r Rig) []Option {
	if r.Cards == 1 {
		return []Option{{Strategy: "single", Reason: "one card talks to nobody"}}
	}
	if w.Serving() {
		out := []Option{
			{Strategy: "ddp", Reason: "a copy on each card; requests are shared out, and cards never talk"},
			{Strategy: "pipeline", Reason: "layers are shared out: one message a token from card to card"},
			{Strategy: "tensor", Reason: "two all-reduces in each layer of each token: only where a model fits no other way"},
		}
		if r.NVLink {
			out[1], out[2] = out[2], out[1]
			out[1].Reason = "two all-reduces in each layer of each token: NVLink carries them"
		}
		return out
	}
	out := []Option{
		{Strategy: "ddp", Reason: "one all-reduce a step, hidden behind the backward pass; accumulation makes it rarer"},
		{Strategy: "zero-1", Reason: "as ddp, with optimizer states shared out; the new weights are gathered once a step"},
		{Strategy: "zero-2", Reason: "gradients shared out too, so they travel in every micro-batch"},
		{Strategy: "fsdp", Reason: "everything shared out: weights travel twice in every micro-batch (ZeRO-3)"},
		{Strategy: "pipeline", Reason: "little to send, but stages wait for each other unless there are many micro-batches"},
		{Strategy: "tensor", Reason: "all-reduces in every layer, for which computing waits: the links decide"},
	}
	if r.NVLink {
		out[4], out[5] = out[5], out[4]
		out[4].Reason = "all-reduces in every layer, for which computing waits: NVLink carries them"
	}
	return out
}

// options works every strategy out on all cards of a rig.
func options(w Workload, r Rig) []Option {
	list := ranking(w, r)
	if w.Strategy != "auto" && r.Cards > 1 {
		list = only(list, w.Strategy)
	}
	for i := range list {
		list[i].Rank = i + 1
		list[i] = worked(list[i], w, r)
	}
	return list
}

// only is the one strategy that was asked for.
func only(list []Option, strategy string) []Option {
	for _, o := range list {
		if o.Strategy == strategy || o.Strategy == "fsdp" && strategy == "zero-3" {
			o.Strategy = strategy
			return []Option{o}
		}
	}
	return []Option{{Strategy: strategy, Impossible: "it shares out what only training has"}}
}

// worked fills one option in. Where nobody said whether activations are computed again, the way that fits and is faster is
// taken: a larger micro-batch can be worth it.
func worked(o Option, w Workload, r Rig) Option {
	plain := filled(o, w, r)
	if !w.chooseCheckpointing || plain.Impossible != "" {
		return plain
	}
	again := w
	again.Checkpointing = "full"
	full := filled(o, again, r.slowed(w, again))
	switch {
	case !plain.Fits && full.Memory.Total() < plain.Memory.Total():
		return full
	case full.Fits && full.Step.Known && full.Step.Rate() > plain.Step.Rate():
		return full
	}
	return plain
}

// filled fills one option in, with the workload as it is.
func filled(o Option, w Workload, r Rig) Option {
	if o.Impossible == "" {
		o.Impossible = impossible(w, r, o.Strategy)
	}
	if o.Impossible != "" {
		o.Speed, o.Traffic, o.Memory.Lines = Unclear, []Flow{}, []Line{}
		return o
	}
	if w.chooseBatch {
		w.MicroBatch = largest(w, r, o.Strategy)
	}
	if !w.Serving() {
		o.MicroBatch, o.Accumulation, o.Recompute = w.MicroBatch, accumulation(w, o.Strategy, r.Cards), w.Checkpointing
	}
	o.Memory = MemoryOf(w, r, o.Strategy, r.Cards)
	o.Fits = o.Memory.Fits()
	if o.Step, o.Traffic = StepOf(w, r, o.Strategy, r.Cards); o.Traffic == nil {
		o.Traffic = []Flow{}
	}
	o.Efficiency = o.Step.Efficiency()
	o.Speed = r.speed(o.Step)
	return o
}

// speed judges the share of a step in which cards compute.
func (r Rig) speed(s Step) string {
	switch from := r.Policy.suitedFrom(r.Cards); {
	case !s.Known:
		return Unclear
	case s.Efficiency() >= from:
		return Suited
	case s.Efficiency() >= from-r.Policy.Below:
		return Bound
	}
	return Unsuited
}

// impossible says why a model cannot be shared in a way, or "".
func impossible(w Workload, r Rig, strategy string) string {
	n, m := r.Cards, w.Model
	switch {
	case n < 2:
		return ""
	case strategy == "tensor" && m.Heads%n != 0:
		return fmt.Sprintf("%d heads do not divide among %d cards", m.Heads, n)
	case strategy == "tensor" && m.KVHeads%n != 0 && n%m.KVHeads != 0:
		return fmt.Sprintf("%d key-value heads do not divide among %d cards", m.KVHeads, n)
	case strategy == "pipeline" && m.Layers < n:
		return fmt.Sprintf("%d layers are fewer than %d cards", m.Layers, n)
	case w.Method == "qlora" && (strategy == "tensor" || strategy == "zero-2"):
		return "4-bit weights are not shared out so by the usual libraries"
	}
	return ""
}

// largest is the largest micro-batch, a power of two, that fits and is no more than each card's part of the target. One that
// makes the step slower, as stages that wait longer for each other, is not taken.
func largest(w Workload, r Rig, strategy string) int {
	part := w.GlobalBatch
	if strategy != "tensor" && strategy != "pipeline" {
		part /= r.Cards
	}
	best, rate := 1, 0.0
	for b := 1; b == 1 || b <= part; b *= 2 {
		w.MicroBatch = b
		if b > 1 && !MemoryOf(w, r, strategy, r.Cards).Fits() {
			break
		}
		if s, _ := StepOf(w, r, strategy, r.Cards); b == 1 || !s.Known || s.Rate() >= 0.999*rate {
			best, rate = b, s.Rate()
		}
	}
	return best
}
