package workload

import "fmt"

const (
	srcActivations = "Korthikanti 2022: arXiv 2205.05198, eq. 1–2, 5; per matrix for other shapes"
	srcRecompute   = "Chen 2016: arXiv 1604.06174; Korthikanti 2022: arXiv 2205.05198, §5"
	srcLogits      = "Korthikanti 2022: arXiv 2205.05198, §4.3: 4 B for the logits, as much for their gradient"
)

// layerBytes are the activations of one layer that the backward pass needs, for each of s·b·h values: as they lie on every
// card under tensor parallelism (whole) and those that are split among its cards (split), 16 bits wide. Of a GPT block with a
// feed-forward of 4h and dropout they are 10 and 24, together the 34 of Korthikanti 2022.
//
//	input of attention and of feed-forward     2 + 2      whole
//	two norms                                  4          whole
//	two dropout masks, where there are any     2          whole (models without a gate)
//	Q, and what attention gives                2·a·d/h + 2·a·d/h
//	K, V                                       2·2·k·d/h
//	feed-forward: first result, second input   4·f/h; with a gate 8·f/h (gate, up, gate after its function, product)
func (m Model) layerBytes() (whole, split float64) {
	h := float64(m.Hidden)
	whole, split = 8, (4*float64(m.Heads*m.HeadDim)+4*float64(m.KVHeads*m.HeadDim))/h
	if m.Gated {
		return whole, split + 8*m.fedWidth()/h
	}
	return whole + 2, split + 4*m.fedWidth()/h
}

// scores are the bytes of one layer's attention matrix: 5·a·s²·b, unless it is never stored (FlashAttention, arXiv
// 2205.14135) or recomputed (selective).
func scores(w Workload) float64 {
	if w.Attention == "flash" || w.Checkpointing != "none" {
		return 0
	}
	s, b := float64(w.Sequence), float64(w.MicroBatch)
	return 5 * float64(w.Model.Heads) * s * s * b
}

// activations of one micro-batch, and the logits. Under pipeline parallelism the first stage holds n micro-batches of L/n
// layers: as much as without (Korthikanti 2022, §4.2.3).
func activations(w Workload, strategy string, n int) []Line {
	m := w.Model
	s, b, h, layers := float64(w.Sequence), float64(w.MicroBatch), float64(m.Hidden), float64(m.Layers)
	wide := 1.0
	if w.Precision == "fp32" {
		wide = 2
	}
	whole, split := m.layerBytes()
	inner, logits := scores(w), 8*s*b*float64(m.Vocabulary)
	words := fmt.Sprintf("%.3g", whole+split)
	if strategy == "tensor" && n > 1 {
		split, inner, logits = split/float64(n), inner/float64(n), logits/float64(n)
		words = fmt.Sprintf("(%.3g + %.3g÷%d)", whole, split*float64(n), n)
	}
	layer := wide * ((whole+split)*s*b*h + inner)
	line := Line{Activations, layer * layers, fmt.Sprintf("L·s·b·h·%s = %d·%d·%d·%d·%s", words, m.Layers, w.Sequence, w.MicroBatch, m.Hidden, words), srcActivations}
	if inner > 0 {
		line.Formula += fmt.Sprintf(" + 5·a·s²·b·L = 5·%d·%d²·%d·%d", m.Heads, w.Sequence, w.MicroBatch, m.Layers)
	}
	if w.Checkpointing == "full" {
		kept := wide * 2 * s * b * h * layers
		one := w
		one.Checkpointing = "none"
		again := wide * ((whole+split)*s*b*h + scores(one)/tensorShare(strategy, n))
		line = Line{Activations, kept + again, fmt.Sprintf("2·s·b·h·L = 2·%d·%d·%d·%d, + %s", w.Sequence, w.MicroBatch, m.Hidden, m.Layers, gb(again)), srcRecompute}
	}
	if wide > 1 {
		line.Formula = "2·(" + line.Formula + ")"
	}
	out := []Line{line, {Logits, logits, divided(fmt.Sprintf("8·s·b·v = 8·%d·%d·%d", w.Sequence, w.MicroBatch, m.Vocabulary), 8*s*b*float64(m.Vocabulary)/logits), srcLogits}}
	if strategy == "tensor" && n > 1 {
		out[1].Formula = divided(fmt.Sprintf("8·s·b·v = 8·%d·%d·%d", w.Sequence, w.MicroBatch, m.Vocabulary), 1/float64(n))
	}
	if w.Method == "ppo" { // answers are written token by token first
		out = append(out, Line{Cache, m.kvBytes(2) * s * b, fmt.Sprintf("2·L·k·d·2 B·s·b = 2·%d·%d·%d·2 B·%d·%d", m.Layers, m.KVHeads, m.HeadDim, w.Sequence, w.MicroBatch), srcCache})
	}
	return out
}

func tensorShare(strategy string, n int) float64 {
	if strategy == "tensor" {
		return float64(n)
	}
	return 1
}
