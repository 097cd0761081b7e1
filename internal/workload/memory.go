package workload

import (
	"fmt"
	"math"
)

// Parts of a card's memory, in the order in which they are shown.
const (
	Weights     = "weights"
	Frozen      = "frozen weights"
	Adapters    = "adapters"
	Gradients   = "gradients"
	States      = "optimizer"
	Activations = "activations"
	Logits      = "logits"
	Cache       = "KV cache"
	Buffers     = "buffers"
	Context     = "CUDA context"
	Margin      = "margin"
)

// Line is one item: bytes on one card, with the formula that gave it and where the formula is from.
type Line struct {
	Part    string  `json:"part"`
	Bytes   float64 `json:"bytes"`
	Formula string  `json:"formula"`
	Source  string  `json:"source"`
}

// Memory is what one card holds. The most loaded card is meant where they differ.
type Memory struct {
	Lines []Line  `json:"lines"`
	Limit float64 `json:"limit"` // bytes of the card; 0 when it is not known
}

// Total is the sum of the lines, bytes.
func (m Memory) Total() float64 {
	var sum float64
	for _, l := range m.Lines {
		sum += l.Bytes
	}
	return sum
}

// Fits says whether a card holds it all, margin included.
func (m Memory) Fits() bool { return m.Limit > 0 && m.Total() <= m.Limit }

// of is the sum of the lines of one part.
func (m Memory) of(part string) float64 {
	var sum float64
	for _, l := range m.Lines {
		if l.Part == part {
			sum += l.Bytes
		}
	}
	return sum
}

// contextBytes is what the driver and the libraries of one process take on a card before anything is computed: a CUDA
// context with its kernels, and cuBLAS workspaces. Seen 0.3–0.8 GB with nvidia-smi; the upper end is planned for.
const contextBytes = 0.8e9

const (
	srcZeRO    = "Rajbhandari 2020, ZeRO: arXiv 1910.02054, §3–5"
	srcLoRA    = "Hu 2021, LoRA: arXiv 2106.09685, §4"
	srcQLoRA   = "Dettmers 2023, QLoRA: arXiv 2305.14314, §3"
	srcDDP     = "PyTorch, DistributedDataParallel: gradient_as_bucket_view"
	srcBuckets = "DeepSpeed: reduce_bucket_size, allgather_bucket_size"
	srcFSDP    = "Zhao 2023, PyTorch FSDP: arXiv 2304.11277, §3"
	srcContext = "nvidia-smi of a process that computes nothing: 0.3–0.8 GB"
	srcPolicy  = "profile: fit_margin"
)

// shares says how much of each kind of state a card holds under a strategy: 1 is a copy of all.
func shares(strategy string, n int) (weights, gradients, states float64) {
	part := 1 / float64(n)
	switch strategy {
	case "zero-1":
		return 1, 1, part
	case "zero-2":
		return 1, part, part
	case "zero-3", "fsdp", "tensor", "pipeline":
		return part, part, part
	}
	return 1, 1, 1
}

// ModelStates is weights, gradients and optimizer states of one card, bytes: the table of the ZeRO paper.
func ModelStates(parameters float64, p Preset, strategy string, n int) float64 {
	w, g, s := shares(strategy, n)
	return parameters * (p.Weights*w + p.Gradients*g + p.States*s)
}

// MemoryOf is what the most loaded of n cards holds under a strategy.
func MemoryOf(w Workload, r Rig, strategy string, n int) Memory {
	m := Memory{Limit: r.Card.Memory}
	switch {
	case w.Serving():
		m.Lines = serving(w, strategy, n)
	default:
		m.Lines = append(m.Lines, states(w, strategy, n)...)
		m.Lines = append(m.Lines, activations(w, strategy, n)...)
		m.Lines = append(m.Lines, buffers(w, strategy, n)...)
	}
	m.Lines = append(m.Lines,
		Line{Context, contextBytes, "0.8 GB", srcContext},
		Line{Margin, r.Policy.Margin * r.Card.Memory, fmt.Sprintf("%g·%s", r.Policy.Margin, gb(r.Card.Memory)), srcPolicy})
	return m
}

// states are weights, gradients and optimizer states.
func states(w Workload, strategy string, n int) []Line {
	if w.adapted() {
		return adapted(w, strategy, n)
	}
	p, _ := PresetOf(w.Optimizer, w.Precision)
	var out []Line
	copies := 1.0
	if w.Method == "ppo" { // policy and critic are trained, reference and reward are only asked
		copies = 2
	}
	ws, gs, ss := shares(strategy, n)
	of := func(part string, bytes, share float64) Line {
		formula := fmt.Sprintf("%g B·%s", bytes, SizeName(w.Model.Parameters))
		if copies > 1 {
			formula = fmt.Sprintf("2·%s", formula)
		}
		return Line{part, copies * bytes * w.Model.Parameters * share, divided(formula, share), p.Source}
	}
	out = append(out, of(Weights, p.Weights, ws))
	if w.Method == "ppo" {
		each := stored[w.Precision]
		out = append(out, Line{Frozen, 2 * each * w.Model.Parameters * ws, divided(fmt.Sprintf("2·%g B·%s", each, SizeName(w.Model.Parameters)), ws), "Ouyang 2022, InstructGPT: arXiv 2203.02155, §3.4"})
	}
	return append(out, of(Gradients, p.Gradients, gs), of(States, p.States, ss))
}

// adapted are frozen weights, and adapters with 32-bit weights, gradients and Adam states.
func adapted(w Workload, strategy string, n int) []Line {
	ws, gs, ss := shares(strategy, n)
	precision, source := w.Precision, srcLoRA
	if w.Method == "qlora" {
		precision, source = "nf4", srcQLoRA
	}
	all, each := w.Model.weightBytes(precision)
	formula := fmt.Sprintf("%.4g B·%s", each, SizeName(w.Model.Parameters))
	if each < 2 {
		e := w.Model.embedding()
		formula = fmt.Sprintf("%.4g B·%s + 2 B·%s", each, SizeName(w.Model.Parameters-e), SizeName(e))
	}
	a := w.Model.adapters(w.Rank)
	p, _ := PresetOf("adamw", "fp32")
	of := fmt.Sprintf("%d·Σ(in + out)·L = %s", w.Rank, SizeName(a))
	return []Line{
		{Weights, all * ws, divided(formula, ws), source},
		{Adapters, p.Weights * a * ws, divided(fmt.Sprintf("%g B·%s", p.Weights, of), ws), srcLoRA},
		{Gradients, p.Gradients * a * gs, divided(fmt.Sprintf("%g B·%s", p.Gradients, SizeName(a)), gs), srcLoRA},
		{States, p.States * a * ss, divided(fmt.Sprintf("%g B·%s", p.States, SizeName(a)), ss), srcLoRA},
	}
}

// trained is the number of parameters whose gradients the cards exchange, and the bytes of one gradient.
func (w Workload) trained() (parameters, bytes float64) {
	if w.adapted() {
		return w.Model.adapters(w.Rank), 4
	}
	p, _ := PresetOf(w.Optimizer, w.Precision)
	if w.Method == "ppo" {
		return 2 * w.Model.Parameters, p.Gradients
	}
	return w.Model.Parameters, p.Gradients
}

// buffers are what the libraries hold to send.
//
//	ddp        buckets as large as the gradients, unless gradient_as_bucket_view
//	zero-1, 2  two buckets of 5e8 elements, at most the model
//	zero-3     two layers gathered at once: one at work, one on its way
//	others     none that counts
func buffers(w Workload, strategy string, n int) []Line {
	if n < 2 {
		return nil
	}
	trained, bytes := w.trained()
	switch strategy {
	case "ddp":
		return []Line{{Buffers, trained * bytes, fmt.Sprintf("%g B·%s", bytes, SizeName(trained)), srcDDP}}
	case "zero-1", "zero-2":
		bucket := min(5e8, trained)
		return []Line{{Buffers, 2 * bytes * bucket, fmt.Sprintf("2·%g B·%s", bytes, SizeName(bucket)), srcBuckets}}
	case "zero-3", "fsdp":
		layer := w.Model.layer(max(w.Model.Experts, 1))
		each := 2.0
		if w.Precision == "fp32" {
			each = 4
		}
		if w.Method == "qlora" {
			each = stored["nf4"]
		}
		return []Line{{Buffers, 2 * each * layer, fmt.Sprintf("2·%.3g B·%s", each, SizeName(layer)), srcFSDP}}
	}
	return nil
}

// divided writes a share behind a formula.
func divided(formula string, share float64) string {
	if share == 1 {
		return formula
	}
	return fmt.Sprintf("(%s) ÷ %.0f", formula, 1/share)
}

// gb is bytes as GB (10^9), three digits or one decimal.
func gb(bytes float64) string {
	if v := bytes / 1e9; math.Abs(v) < 0.095 {
		return fmt.Sprintf("%.2f GB", v)
	}
	return fmt.Sprintf("%.1f GB", bytes/1e9)
}
