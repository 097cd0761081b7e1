package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Words for whether a job fits.
const (
	FitsAsIs    = "fits"
	FitsChanged = "fits with changes"
	FitsNot     = "does not fit"
)

// Assessment is what fit says of one workload on one rig.
type Assessment struct {
	Workload Workload `json:"workload"` // as it was asked for
	Rig      Rig      `json:"rig"`
	Fit      string   `json:"fit"`
	Speed    string   `json:"speed"`
	Summary  string   `json:"summary"`
	Changes  []string `json:"changes"` // that make it fit
	Applied  Workload `json:"applied"` // with the changes
	Chosen   *Option  `json:"chosen,omitempty"`
	Options  []Option `json:"options"` // with the changes
	Steps    []Reason `json:"steps"`
	Methods  []Method `json:"methods"`
	Scaling  []Point  `json:"scaling"`
	Answers  []Answer `json:"misjudgements"`
	Launch   *Launch  `json:"launch,omitempty"`
}

// Reason is one of the four steps: its question, the number that answers it, and why.
type Reason struct {
	Step   string `json:"step"`
	Good   bool   `json:"good"`
	Number string `json:"number"`
	Text   string `json:"text"`
}

// Method is what a tuning method needs on one card.
type Method struct {
	Method string  `json:"method"`
	Bytes  float64 `json:"bytes"`
	Fits   bool    `json:"fits"`
}

// Assess works a complete and valid workload out on a rig. The same input gives the same assessment.
func Assess(w Workload, r Rig) Assessment {
	a := Assessment{Workload: w, Rig: r, Applied: w, Changes: []string{}, Answers: []Answer{}, Scaling: []Point{}, Methods: []Method{}}
	a.Options = options(w, r)
	a.Fit = FitsAsIs
	if a.Chosen = choose(a.Options, r.NVLink); a.Chosen == nil {
		a.Fit = FitsNot
		if applied, changes := change(w, r); len(changes) > 0 {
			a.Fit, a.Applied, a.Changes = FitsChanged, applied, changes
			a.Rig = r.slowed(w, applied)
			a.Options = options(applied, a.Rig)
			a.Chosen = choose(a.Options, r.NVLink)
		}
	}
	one := r
	one.Cards = 1
	alone := worked(Option{Strategy: "single"}, w, one).Memory
	a.Methods = methodsOf(w, one)
	a.Speed = Unclear
	if a.Chosen != nil {
		a.Speed = a.Chosen.Speed
		if !w.Serving() {
			a.Rig = a.Rig.slowed(a.Applied, a.Applied.with(a.Chosen))
			a.Applied = a.Applied.with(a.Chosen)
		}
		a.Scaling = scaling(a.Applied, a.Rig, a.Chosen.Strategy)
		a.Launch = launch(a.Applied, r, a.Chosen)
	}
	a.Steps = a.reasons(alone)
	a.Answers = a.misjudgements(alone)
	a.Summary = a.summary()
	return a
}

// with is the workload as an option works it.
func (w Workload) with(o *Option) Workload {
	w.MicroBatch, w.Checkpointing, w.chooseBatch, w.chooseCheckpointing = o.MicroBatch, o.Recompute, false, false
	return w
}

// choose is the first strategy of the ranking that fits and suits the links; else the fastest that fits. Tensor parallelism
// over PCIe is taken only where nothing else fits: each of its all-reduces also costs a delay that is not counted here.
func choose(list []Option, nvlink bool) *Option {
	var best *Option
	for i := range list {
		o := &list[i]
		switch {
		case !o.Fits:
		case o.Strategy == "tensor" && !nvlink && best != nil:
		case o.Speed == Suited:
			return o
		case best == nil || o.Step.Known && o.Step.Rate() > best.Step.Rate():
			best = o
		}
	}
	return best
}

// slowed is the rig with a measured throughput that counts what the changes compute again. Where nobody said how
// activations are kept, the measured job kept them as it ran best: nothing is added.
func (r Rig) slowed(before, after Workload) Rig {
	if r.Card.Measured > 0 && !before.chooseCheckpointing && after.passes() > before.passes() {
		r.Card.Measured *= before.passes() / after.passes()
	}
	return r
}

// step is one change on the ladder that is climbed until a job fits, the gentlest first.
type step struct {
	words string
	plain bool // what is trained, and by which rule, stays the same
	apply func(Workload) (Workload, bool)
}

func ladder() []step {
	return []step{
		{"FlashAttention in place of a stored attention matrix", true, func(w Workload) (Workload, bool) {
			use := w.Attention != "flash"
			w.Attention = "flash"
			return w, use
		}},
		{"another strategy", true, func(w Workload) (Workload, bool) {
			use := w.Strategy != "auto"
			w.Strategy = "auto"
			return w, use
		}},
		{"micro-batch 1, with more accumulation", true, func(w Workload) (Workload, bool) {
			use := !w.Serving() && w.MicroBatch > 1
			w.MicroBatch = 1
			return w, use
		}},
		{"full activation checkpointing", true, func(w Workload) (Workload, bool) {
			use := !w.Serving() && w.Checkpointing != "full" && !w.chooseCheckpointing
			if use {
				w.Checkpointing = "full"
			}
			return w, use
		}},
		{"8-bit AdamW", false, func(w Workload) (Workload, bool) {
			p, ok := PresetOf("adamw-8bit", w.Precision)
			old, _ := PresetOf(w.Optimizer, w.Precision)
			use := ok && !w.Serving() && !w.adapted() && p.Total() < old.Total()
			if use {
				w.Optimizer = "adamw-8bit"
			}
			return w, use
		}},
		{"weights in 8 bits", false, stored8("8bit")},
		{"weights in 4 bits", false, stored8("4bit")},
	}
}

func stored8(precision string) func(Workload) (Workload, bool) {
	return func(w Workload) (Workload, bool) {
		use := w.Serving() && stored[precision] < stored[w.Precision]
		if use {
			w.Precision = precision
		}
		return w, use
	}
}

// change climbs the ladder until the job fits, then takes back every change that is not needed. Where it then fits only in a
// way that the links do not suit, the steps that leave the training what it is are climbed further, for one that suits.
func change(w Workload, r Rig) (Workload, []string) {
	all := ladder()
	taken := climb(w, r, all, func(o *Option) bool { return o != nil })
	if taken == nil {
		return w, nil
	}
	applied := with(w, taken)
	if o := choose(options(applied, r), r.NVLink); o.Step.Known && o.Speed != Suited {
		plain := slices.DeleteFunc(all, func(s step) bool { return !s.plain })
		if better := climb(w, r, plain, func(o *Option) bool { return o != nil && o.Speed == Suited }); better != nil {
			taken, applied = better, with(w, better)
		}
	}
	var words []string
	for _, s := range taken {
		words = append(words, s.words)
	}
	return applied, words
}

// with is a workload with steps taken.
func with(w Workload, steps []step) Workload {
	for _, s := range steps {
		w, _ = s.apply(w)
	}
	return w
}

// climb is the fewest steps, the gentlest first, after which the chosen strategy is good; nil for none.
func climb(w Workload, r Rig, list []step, good func(*Option) bool) []step {
	ok := func(steps []step) bool { return good(choose(options(with(w, steps), r), r.NVLink)) }
	var taken []step
	for _, s := range list {
		if _, use := s.apply(with(w, taken)); !use {
			continue
		}
		if taken = append(taken, s); !ok(taken) {
			continue
		}
		for i := 0; i < len(taken); {
			if less := slices.Delete(slices.Clone(taken), i, i+1); ok(less) {
				taken = less
			} else {
				i++
			}
		}
		return taken
	}
	return nil
}

// methodsOf is what each tuning method needs on one card, with the rest as it was asked for.
func methodsOf(w Workload, one Rig) []Method {
	out := []Method{}
	if w.Serving() || w.Method == "ppo" {
		return out
	}
	w.MicroBatch = 1
	if w.chooseCheckpointing {
		w.Checkpointing = "full"
	}
	for _, method := range []string{"full", "lora", "qlora"} {
		x := w
		x.Method, x.Rank = method, max(w.Rank, 16)
		m := MemoryOf(x, one, "single", 1)
		out = append(out, Method{method, m.Total(), m.Fits()})
	}
	return out
}

// reasons are the four steps in their order.
func (a Assessment) reasons(alone Memory) []Reason {
	w, limit := a.Workload, a.Rig.Card.Memory
	first := Reason{Step: "memory of one card", Good: alone.Fits(), Number: fmt.Sprintf("%s needed, %s there", gb(alone.Total()), gb(limit)), Text: "one card holds it"}
	if !first.Good {
		first.Text = "one card does not hold it"
	}
	return []Reason{first, a.method(w), a.batch(), a.strategy()}
}

func (a Assessment) method(w Workload) Reason {
	r := Reason{Step: "method", Good: a.Chosen != nil, Number: w.Method}
	if len(a.Methods) == 0 {
		r.Text = "nothing is tuned"
		if w.Method == "ppo" {
			r.Text = "four models: policy and critic are trained, reference and reward are asked"
		}
		return r
	}
	var parts, fitting []string
	for _, m := range a.Methods {
		parts = append(parts, m.Method+" "+gb(m.Bytes))
		if m.Fits {
			fitting = append(fitting, m.Method)
		}
	}
	r.Number = strings.Join(parts, " · ")
	r.Text = "none of them fits one card"
	if len(fitting) > 0 {
		r.Text = fmt.Sprintf("on one card fits: %s", strings.Join(fitting, " · "))
	}
	return r
}

func (a Assessment) batch() Reason {
	w := a.Applied
	r := Reason{Step: "sequence and batch", Good: a.Chosen != nil}
	switch {
	case w.Serving():
		r.Number = fmt.Sprintf("%d × %d", w.Requests, w.Sequence)
		r.Text = fmt.Sprintf("%s of cache for %d requests of %d tokens", gb(w.Model.kvBytes(2)*float64(w.Sequence)*float64(w.Requests)), w.Requests, w.Sequence)
	case a.Chosen == nil:
		r.Number = fmt.Sprintf("%d", w.Sequence)
		r.Text = "not even one sequence at a time fits"
	default:
		o, n := a.Chosen, a.Rig.Cards
		if o.Strategy == "tensor" || o.Strategy == "pipeline" {
			n = 1
		}
		r.Number = fmt.Sprintf("%d ÷ (%d × %d) = %d", w.GlobalBatch, o.MicroBatch, n, o.Accumulation)
		r.Text = "target batch ÷ (micro-batch × cards) = accumulation"
		if made := o.MicroBatch * n * o.Accumulation; made != w.GlobalBatch {
			r.Text = fmt.Sprintf("target batch ÷ (micro-batch × cards), rounded up: the real batch is %d", made)
		}
	}
	return r
}

func (a Assessment) strategy() Reason {
	r := Reason{Step: "strategy"}
	o := a.Chosen
	if o == nil {
		r.Number, r.Text = "–", "no way to share it out brings it into the cards"
		return r
	}
	r.Good, r.Number, r.Text = o.Speed == Suited, o.Strategy, o.Reason
	switch {
	case !o.Step.Known:
		r.Number, r.Text = fmt.Sprintf("%s, %s", o.Strategy, Unclear), o.Step.Why
	case a.Rig.Cards > 1 && a.Workload.Serving() && o.Strategy != "ddp" || a.Rig.Cards > 1 && !a.Workload.Serving():
		r.Number = fmt.Sprintf("%s, %.0f %%", o.Strategy, 100*o.Efficiency)
	}
	return r
}

// summary is the answer in one line, after the verdicts.
func (a Assessment) summary() string {
	if a.Chosen == nil {
		least := 0.0
		for _, o := range a.Options {
			if t := o.Memory.Total(); o.Impossible == "" && (least == 0 || t < least) {
				least = t
			}
		}
		for _, m := range a.Methods {
			if m.Fits && m.Method != a.Workload.Method {
				return fmt.Sprintf("at least %s a card, %s there; %s fits one card with %s", gb(least), gb(a.Rig.Card.Memory), m.Method, gb(m.Bytes))
			}
		}
		return fmt.Sprintf("at least %s a card, %s there", gb(least), gb(a.Rig.Card.Memory))
	}
	o := a.Chosen
	return fmt.Sprintf("%s: %s of %s a card", o.Strategy, gb(o.Memory.Total()), gb(a.Rig.Card.Memory))
}
