package workload

import "fmt"

// Answer is a common misjudgement that the job invites, and what the numbers say to it.
type Answer struct {
	Claim string `json:"claim"`
	Text  string `json:"answer"`
}

// misjudgements are those that apply.
//
//	adding up memory               the job is larger than one card and smaller than all together
//	"24 GB cannot train"           a card of the 24 GB class cannot hold full tuning, and can train all the same
//	"more cards, linearly faster"  the efficiency is below 0.95
//
// The fourth, judging by peak FLOPS, needs another machine: see [Versus].
func (a Assessment) misjudgements(alone Memory) []Answer {
	out := []Answer{}
	r, n := a.Rig, float64(a.Rig.Cards)
	if sum := n * r.Card.Memory; n > 1 && alone.Total() > r.Card.Memory && alone.Total() <= sum {
		text := fmt.Sprintf("%d × %s are not one pool of %s: data parallelism puts a copy on each card, %s", r.Cards, gb(r.Card.Memory), gb(sum), gb(alone.Total()))
		out = append(out, Answer{"memory of several cards adds up", text})
	}
	if r.Card.Memory > 20e9 && r.Card.Memory < 26.5e9 && !alone.Fits() {
		for _, m := range a.Methods {
			if m.Fits {
				out = append(out, Answer{"24 GB cannot train", fmt.Sprintf("%s trains this model in %s of a card", m.Method, gb(m.Bytes))})
				break
			}
		}
	}
	for _, p := range a.Scaling {
		if p.Cards == r.Cards && p.Cards > 1 && p.Efficiency < 0.95 {
			out = append(out, Answer{"more cards are linearly faster", fmt.Sprintf("%d cards do the work of %.1f", p.Cards, p.SpeedUp)})
		}
	}
	return out
}

// Versus answers the judgement by peak FLOPS: what the peaks of two machines say, and what their throughputs do.
func Versus(a, other Assessment) (Answer, bool) {
	peak := a.Rig.Card.TFLOPS * float64(a.Rig.Cards)
	theirs := other.Rig.Card.TFLOPS * float64(other.Rig.Cards)
	if a.Workload.Serving() || peak == 0 || theirs == 0 || a.Chosen == nil || other.Chosen == nil || !a.Chosen.Step.Known || !other.Chosen.Step.Known {
		return Answer{}, false
	}
	paper, real := peak/theirs, a.Chosen.Step.Rate()/other.Chosen.Step.Rate()
	if real > 0.9*paper {
		return Answer{}, false
	}
	return Answer{"peak FLOPS tell which machine is faster", fmt.Sprintf("%s has %.1f times the peak of %s, and does %.1f times its work", a.Rig.Label(), paper, other.Rig.Label(), real)}, true
}

// Label is the rig in a few words: "4× GeForce RTX 4090".
func (r Rig) Label() string { return fmt.Sprintf("%d× %s", r.Cards, r.Card.Name) }
