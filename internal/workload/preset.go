package workload

import "slices"

// Preset is the bytes that one trained parameter takes: weights, gradients, and what the optimizer keeps (its states, and
// a 32-bit copy of the weights where it has one).
type Preset struct {
	Optimizer string  `json:"optimizer"`
	Bits      int     `json:"bits"` // of the precision: 16 or 32
	Weights   float64 `json:"weights"`
	Gradients float64 `json:"gradients"`
	States    float64 `json:"states"`
	Rule      string  `json:"rule"` // "2 + 2 + (4 + 4 + 4)"
	Source    string  `json:"source"`
}

// Total is all bytes of one parameter.
func (p Preset) Total() float64 { return p.Weights + p.Gradients + p.States }

// Optimizers lists the names of the presets.
func Optimizers() []string {
	var out []string
	for _, p := range loaded().presets {
		if !slices.Contains(out, p.Optimizer) {
			out = append(out, p.Optimizer)
		}
	}
	return out
}

// PresetOf finds the bytes of an optimizer in a precision.
func PresetOf(optimizer, precision string) (Preset, bool) {
	bits := 16
	if precision == "fp32" {
		bits = 32
	}
	for _, p := range loaded().presets {
		if p.Optimizer == optimizer && p.Bits == bits {
			return p, true
		}
	}
	return Preset{}, false
}

// Stored are the precisions that weights are kept in for serving, or frozen under adapters, with their bytes. Of the small
// ones embedding and head stay 16 bits wide, as the published checkpoints have them.
//
//	8bit   1 B and a 16-bit scale for each 128 values
//	4bit   0.5 B, a 16-bit scale and a 4-bit zero for each 128 values (GPTQ, arXiv 2210.17323; AWQ, arXiv 2306.00978)
//	nf4    0.5 B and 0.127 bits of scales after double quantisation (QLoRA, arXiv 2305.14314, §3)
var stored = map[string]float64{"fp32": 4, "bf16": 2, "fp16": 2, "8bit": 1 + 2.0/128, "4bit": 0.5 + 2.5/128, "nf4": 0.5 + 0.127/8}

// weightBytes are the bytes of a model's weights as they are stored, and of one parameter of its layers.
func (m Model) weightBytes(precision string) (all, each float64) {
	each = stored[precision]
	if each >= 2 {
		return each * m.Parameters, each
	}
	e := m.embedding()
	return each*(m.Parameters-e) + 2*e, each
}
