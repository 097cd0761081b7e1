package workload

import "fmt"

const (
	srcStored = "GPTQ: arXiv 2210.17323; AWQ: arXiv 2306.00978; embedding and head 16-bit"
	srcCache  = "Pope 2022: arXiv 2211.05102, §2; Ainslie 2023, GQA: arXiv 2305.13245"
	srcPrompt = "one layer at work on a prompt: s·(8h + 4·(a + k)·d + 8f) B"
)

// kvBytes are the bytes of the KV cache of one token: 2 · layers · KV heads · size of a head · bytes of a value.
func (m Model) kvBytes(each float64) float64 {
	return 2 * float64(m.Layers) * float64(m.KVHeads) * float64(m.HeadDim) * each
}

// serving is what a card holds that answers requests. Data parallelism is copies of the model that share the requests.
func serving(w Workload, strategy string, n int) []Line {
	m := w.Model
	all, each := m.weightBytes(w.Precision)
	formula := fmt.Sprintf("%.4g B·%s", each, SizeName(m.Parameters))
	source := srcStored
	if each < 2 {
		e := m.embedding()
		formula = fmt.Sprintf("%.4g B·%s + 2 B·%s", each, SizeName(m.Parameters-e), SizeName(e))
	} else {
		source = "Kaplan 2020: arXiv 2001.08361, §2.1"
	}
	requests, part := w.Requests, 1.0
	if strategy == "tensor" || strategy == "pipeline" {
		part = 1 / float64(n)
	} else {
		requests = (w.Requests + n - 1) / n
	}
	kv := 2.0
	if w.Precision == "fp32" {
		kv = 4
	}
	cache := m.kvBytes(kv) * float64(w.Sequence) * float64(requests)
	whole, split := m.layerBytes()
	prompt := kv / 2 * (whole + split) * float64(w.Sequence) * float64(m.Hidden)
	return []Line{
		{Weights, all * part, divided(formula, part), source},
		{Cache, cache * part, divided(fmt.Sprintf("2·L·k·d·%g B·s·r = 2·%d·%d·%d·%g B·%d·%d", kv, m.Layers, m.KVHeads, m.HeadDim, kv, w.Sequence, requests), part), srcCache},
		{Activations, prompt, fmt.Sprintf("s·h·%.3g = %d·%d·%.3g", whole+split, w.Sequence, m.Hidden, whole+split), srcPrompt},
		{Logits, 4 * float64(requests*m.Vocabulary), fmt.Sprintf("4 B·r·v = 4 B·%d·%d", requests, m.Vocabulary), srcPrompt},
	}
}
