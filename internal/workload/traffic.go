package workload

import "fmt"

const (
	srcReduce   = "Patarasu 2009; nccl-tests, doc/PERFORMANCE.md"
	srcMegatron = "Shoeybi 2019, Megatron-LM: arXiv 1909.08053, §3"
	srcPipeline = "Narayanan 2021: arXiv 2104.04473, §2.2"
	srcServe    = "Pope 2022: arXiv 2211.05102, §3"
)

// Flow is one kind of communication in an optimizer step (of serving: for one token of each request). Bytes are what each
// card sends, and receives: what divided by the bus bandwidth gives the time.
type Flow struct {
	What    string  `json:"what"` // "all-reduce", "reduce-scatter", "all-gather", "send"
	Bytes   float64 `json:"bytes"`
	Formula string  `json:"formula"`
	Source  string  `json:"source"`
	Waits   bool    `json:"waits"` // computing waits for it: nothing hides it
}

// TrafficOf is what goes over the links in one step. Accumulation is the micro-batches of a step on a card.
//
//	ddp        all-reduce of the gradients 2(n−1)/n·G, once a step (no_sync before)
//	zero-1     reduce-scatter of gradients, once, and all-gather of the new weights, for which the next step waits
//	zero-2     the same; gradients are scattered in every micro-batch, since no card keeps them whole
//	zero-3     all-gather of the weights for forward and backward and reduce-scatter of gradients, in every micro-batch
//	tensor     four all-reduces of s·b·h a layer and micro-batch (six with full checkpointing); computing waits
//	pipeline   s·b·h to the next stage and back, in every micro-batch
func TrafficOf(w Workload, strategy string, n, accumulation int) []Flow {
	if n < 2 {
		return nil
	}
	if w.Serving() {
		return servingTraffic(w, strategy, n)
	}
	trained, bytes := w.trained()
	g, k, share := trained*bytes, float64(accumulation), float64(n-1)/float64(n)
	moved := trained * min(bytes, 2) // weights that are gathered: 16 bits, unless they are wider
	if w.Precision == "fp32" || w.adapted() {
		moved = g
	}
	ring := func(what string, factor, volume float64, waits bool, words, source string) Flow {
		return Flow{what, factor * share * volume, words, source, waits}
	}
	scatter := func(times float64) Flow {
		return ring("reduce-scatter", times, g, false, fmt.Sprintf("%g·(n−1)/n·%s, n = %d", times, gb(g), n), srcZeRO)
	}
	activation := float64(w.Sequence*w.MicroBatch) * float64(w.Model.Hidden) * 2
	switch strategy {
	case "zero-1":
		return []Flow{scatter(1), ring("all-gather", 1, moved, true, fmt.Sprintf("(n−1)/n·%s, n = %d", gb(moved), n), srcZeRO)}
	case "zero-2":
		return []Flow{scatter(k), ring("all-gather", 1, moved, true, fmt.Sprintf("(n−1)/n·%s, n = %d", gb(moved), n), srcZeRO)}
	case "zero-3", "fsdp":
		all := w.gathered()
		return []Flow{scatter(k), ring("all-gather", 2*k, all, false, fmt.Sprintf("2·%g·(n−1)/n·%s, n = %d", k, gb(all), n), srcZeRO)}
	case "tensor":
		times := 4.0
		if w.Checkpointing == "full" {
			times = 6
		}
		return []Flow{ring("all-reduce", 2*times*float64(w.Model.Layers)*k, activation, true, fmt.Sprintf("%g·L·%g·2(n−1)/n·s·b·h·2 B = %g·%d·%g·2·%d/%d·%s", times, k, times, w.Model.Layers, k, n-1, n, gb(activation)), srcMegatron)}
	case "pipeline":
		return []Flow{{"send", 2 * k * activation, fmt.Sprintf("2·%g·s·b·h·2 B = 2·%g·%s", k, k, gb(activation)), srcPipeline, false}}
	}
	return []Flow{ring("all-reduce", 2, g, false, fmt.Sprintf("2(n−1)/n·%s = 2·%d/%d·%s", gb(g), n-1, n, gb(g)), srcReduce)}
}

// gathered are the bytes of all weights that zero-3 brings together for a pass.
func (w Workload) gathered() float64 {
	switch w.Method {
	case "qlora":
		all, _ := w.Model.weightBytes("nf4")
		return all
	case "ppo":
		return 4 * stored[w.Precision] * w.Model.Parameters
	}
	return stored[w.Precision] * w.Model.Parameters
}

// servingTraffic is for one token of each request.
func servingTraffic(w Workload, strategy string, n int) []Flow {
	values := float64(w.Requests) * float64(w.Model.Hidden) * 2
	switch strategy {
	case "tensor":
		return []Flow{{"all-reduce", 2 * float64(w.Model.Layers) * 2 * float64(n-1) / float64(n) * values, fmt.Sprintf("2·L·2(n−1)/n·r·h·2 B = 2·%d·2·%d/%d·%d·%d·2 B", w.Model.Layers, n-1, n, w.Requests, w.Model.Hidden), srcServe, true}}
	case "pipeline":
		return []Flow{{"send", values, fmt.Sprintf("r·h·2 B = %d·%d·2 B", w.Requests, w.Model.Hidden), srcServe, true}}
	}
	return nil
}
