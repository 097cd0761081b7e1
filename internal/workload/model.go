package workload

import (
	"fmt"
	"math"
	"strings"
)

// Model is the shape of a decoder-only transformer. Sizes are in elements; Parameters is their number in all.
type Model struct {
	Name          string  `json:"name"`
	Parameters    float64 `json:"parameters"`
	Layers        int     `json:"layers"`
	Hidden        int     `json:"hidden"`
	Heads         int     `json:"heads"`
	KVHeads       int     `json:"kv_heads"`
	HeadDim       int     `json:"head_dim"`
	FeedForward   int     `json:"feed_forward"` // of one expert
	Vocabulary    int     `json:"vocabulary"`
	Gated         bool    `json:"gated"` // three matrices in the feed-forward (SwiGLU), not two
	Tied          bool    `json:"tied"`  // the head is the embedding
	QKVBias       bool    `json:"qkv_bias,omitempty"`
	QKNorm        bool    `json:"qk_norm,omitempty"`
	Experts       int     `json:"experts,omitempty"`        // of each layer; 0 for a dense model
	ActiveExperts int     `json:"active_experts,omitempty"` // that a token goes through
	Source        string  `json:"source"`                   // where the shape comes from

	typical bool // stands for models of its size
}

// Models are the models known by name, smallest first.
func Models() []Model { return append([]Model{}, loaded().models...) }

// ModelNames lists the names that [Named] takes.
func ModelNames() []string {
	var out []string
	for _, m := range loaded().models {
		out = append(out, m.Name)
	}
	return out
}

// Named finds a model by its name; case does not matter.
func Named(name string) (Model, bool) {
	for _, m := range loaded().models {
		if strings.EqualFold(m.Name, name) {
			return m, true
		}
	}
	return Model{}, false
}

// sizeTolerance is how far a published model may lie from a size that it stands for.
const sizeTolerance = 0.15

// OfSize is a dense model of so many parameters. Its shape is that of a published model of the size, else a scaled one:
// h = 128·L and P = 12·L·h² (Kaplan 2020, arXiv 2001.08361, §2.1; the ratio of GPT-3 and LLaMA). The shape decides only
// activations, logits, KV cache and what goes between cards within a layer.
func OfSize(parameters float64) Model {
	best, distance := Model{}, math.Inf(1)
	for _, m := range loaded().models {
		if d := math.Abs(math.Log(m.Parameters / parameters)); m.typical && d < distance {
			best, distance = m, d
		}
	}
	name := SizeName(parameters)
	if distance <= math.Log(1+sizeTolerance) {
		source := fmt.Sprintf("shape of %s", best.Name)
		best.Name, best.Parameters, best.Source, best.typical = name, parameters, source, false
		return best
	}
	layers := max(2, int(math.Round(math.Cbrt(parameters/(12*128*128)))))
	return Model{
		Name: name, Parameters: parameters, Layers: layers, Hidden: 128 * layers, Heads: layers, KVHeads: layers, HeadDim: 128, FeedForward: 4 * 128 * layers,
		Vocabulary: 32000, Tied: true, Source: "shape scaled: h = 128·L, P = 12·L·h² (Kaplan 2020)",
	}
}

// SizeName is a number of parameters as people say it: 7B, 350M.
func SizeName(p float64) string {
	for _, u := range []struct {
		unit  float64
		label string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if p >= u.unit {
			return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", p/u.unit), "0"), ".") + u.label
		}
	}
	return fmt.Sprintf("%.0f", p)
}

// Most sizes that a shape may have: far beyond any model, far below what floats cannot hold.
const (
	mostLayers = 10_000
	mostWidth  = 10_000_000
)

// Validate finds shapes that no transformer has. The error names the field and what it must be.
func (m Model) Validate() error {
	for _, x := range []struct {
		name  string
		value int
		most  int
	}{
		{"layers", m.Layers, mostLayers},
		{"hidden size", m.Hidden, mostWidth},
		{"attention heads", m.Heads, mostWidth},
		{"key-value heads", m.KVHeads, mostWidth},
		{"head size", m.HeadDim, mostWidth},
		{"feed-forward size", m.FeedForward, mostWidth},
		{"vocabulary", m.Vocabulary, mostWidth},
	} {
		if x.value < 1 || x.value > x.most {
			return fmt.Errorf("%s: %d is out of range; it must be 1 to %d", x.name, x.value, x.most)
		}
	}
	switch {
	case m.Heads%m.KVHeads != 0:
		return fmt.Errorf("key-value heads: %d heads do not divide among %d", m.Heads, m.KVHeads)
	case m.Experts < 0 || m.Experts > mostLayers || m.ActiveExperts < 0 || m.ActiveExperts > m.Experts:
		return fmt.Errorf("experts: %d of %d for each token cannot be", m.ActiveExperts, m.Experts)
	case m.Parameters < 1e3 || m.Parameters > 1e15:
		return fmt.Errorf("parameters: %g is out of range; it must be 1e3 to 1e15", m.Parameters)
	}
	return nil
}

// Count is the number of parameters that the shape makes: attention, feed-forward (with router), norms, embedding, head.
func (m Model) Count() float64 {
	return float64(m.Layers)*m.layer(max(m.Experts, 1)) + m.embedding() + float64(m.Hidden)
}

// layer is the number of parameters of one layer with so many experts.
func (m Model) layer(experts int) float64 {
	h, q, kv, f := float64(m.Hidden), float64(m.Heads*m.HeadDim), float64(m.KVHeads*m.HeadDim), float64(m.FeedForward)
	n := h*q + 2*h*kv + q*h + m.matrices()*h*f*float64(experts) + 2*h
	if m.Experts > 0 {
		n += h * float64(m.Experts)
	}
	if m.QKVBias {
		n += q + 2*kv
	}
	if m.QKNorm {
		n += 2 * float64(m.HeadDim)
	}
	return n
}

func (m Model) matrices() float64 {
	if m.Gated {
		return 3
	}
	return 2
}

// embedding is the number of parameters of embedding and head together; of a size without a shape of its own, no more
// than half.
func (m Model) embedding() float64 {
	n := float64(m.Vocabulary) * float64(m.Hidden)
	if !m.Tied {
		n *= 2
	}
	if m.Parameters > 0 {
		n = min(n, m.Parameters/2)
	}
	return n
}

// Active is the number of parameters that a token goes through: all of a dense model.
func (m Model) Active() float64 {
	if m.Experts == 0 {
		return m.Parameters
	}
	idle := float64(m.Experts-m.ActiveExperts) * m.matrices() * float64(m.Hidden) * float64(m.FeedForward) * float64(m.Layers)
	return max(m.Parameters-idle, 0)
}

// adapters is the number of parameters of LoRA at a rank on every linear layer: rank·(in + out) of each matrix.
func (m Model) adapters(rank int) float64 {
	h, q, kv, f := float64(m.Hidden), float64(m.Heads*m.HeadDim), float64(m.KVHeads*m.HeadDim), float64(m.FeedForward)
	layer := (h + q) + 2*(h+kv) + (q + h) + m.matrices()*(h+f)*float64(max(m.Experts, 1))
	return float64(rank) * layer * float64(m.Layers)
}

// fedWidth is the width of the feed-forward that one token sees.
func (m Model) fedWidth() float64 { return float64(m.FeedForward) * float64(max(m.ActiveExperts, 1)) }
