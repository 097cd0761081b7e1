package workload

import (
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// The table of the ZeRO paper (arXiv 1910.02054, figure 1): 7.5B parameters on 64 cards, GB.
func TestZeROTable(t *testing.T) {
	p, ok := PresetOf("adamw", "fp16")
	if !ok {
		t.Fatal("no preset")
	}
	for _, row := range []struct {
		strategy string
		gb       float64
	}{{"ddp", 120}, {"zero-1", 31.4}, {"zero-2", 16.6}, {"zero-3", 1.9}, {"fsdp", 1.9}} {
		got := ModelStates(7.5e9, p, row.strategy, 64) / 1e9
		if math.Round(got*10)/10 != row.gb {
			t.Errorf("%s: %.2f GB, the paper has %.1f", row.strategy, got, row.gb)
		}
	}
}

// Sums of builders and papers for one card, GB.
func TestPublishedStates(t *testing.T) {
	for _, row := range []struct {
		name, optimizer, precision string
		parameters, gb             float64
	}{
		{"7B at 2+2+6, about 70 GB", "adamw-10", "bf16", 7e9, 70},
		{"7B at 2+2+6+4, 98 GB", "adamw-10-master", "bf16", 7e9, 98},
		{"7B at 2+4+8, 98 GB", "adamw-14", "bf16", 7e9, 98},
		{"mixed precision, 16 a parameter", "adamw", "bf16", 1e9, 16},
		{"autocast over fp32 weights, 18 a parameter", "adamw-amp", "fp16", 1e9, 18},
		{"fp32 Adam, 16 a parameter", "adamw", "fp32", 1e9, 16},
	} {
		p, ok := PresetOf(row.optimizer, row.precision)
		if got := ModelStates(row.parameters, p, "ddp", 1) / 1e9; !ok || !near(got, row.gb, 1e-9) {
			t.Errorf("%s: %.1f GB", row.name, got)
		}
	}
}

func job(model, method string, set func(*Workload)) Workload {
	m, ok := Named(model)
	if !ok {
		m = OfSize(map[string]float64{"7B": 7e9, "13B": 13e9, "14B": 14e9, "70B": 70e9}[model])
	}
	w := Workload{Model: m, Method: method}
	if set != nil {
		set(&w)
	}
	return w.Complete()
}

func cards(n int, set func(*Rig)) Rig {
	r := Rig{
		Names: []string{"rig"}, Cards: n, Policy: DefaultPolicy(),
		Card:      Card{Name: "RTX 4090", Slug: "rtx-4090", Memory: 24564 << 20, TFLOPS: 165.2, MemoryGBs: 1008},
		Bandwidth: []Bandwidth{{Cards: 4, GBs: 15.1}, {Cards: 16, GBs: 13.9}},
	}
	if set != nil {
		set(&r)
	}
	return r
}

func TestWeightsOfMethods(t *testing.T) {
	for _, row := range []struct {
		name string
		w    Workload
		gb   float64
		by   float64
	}{
		{"LoRA 7B: about 14 GB of weights", job("7B", "lora", nil), 14, 0.001},
		{"QLoRA 7B: 0.5 a parameter, scales, 16-bit embedding", job("7B", "qlora", nil), 3.99, 0.01},
	} {
		if got := MemoryOf(row.w, cards(1, nil), "single", 1).of(Weights) / 1e9; !near(got, row.gb, row.by) {
			t.Errorf("%s: %.2f GB", row.name, got)
		}
	}
}

// Memory of Qwen2.5-32B while it wrote 2048 tokens, GiB (its documentation, speed benchmark with Transformers, batch 1):
// weights and cache, of which the library needs a little more.
func TestPublishedServing(t *testing.T) {
	for _, row := range []struct {
		precision string
		gib       float64
		by        float64
	}{{"bf16", 61.58, 0.005}, {"4bit", 18.67, 0.015}} {
		w := job("qwen2.5-32b", "inference", func(w *Workload) { w.Precision = row.precision })
		m := MemoryOf(w, cards(1, nil), "single", 1)
		if got := (m.of(Weights) + m.of(Cache)) / (1 << 30); !near(got, row.gib, row.by) {
			t.Errorf("%s: %.2f GiB, published are %.2f", row.precision, got, row.gib)
		}
	}
}

// What builders say of their rigs holds.
func TestPublishedRigs(t *testing.T) {
	four := func(w *Workload) { w.Precision, w.Sequence = "4bit", 4096 }
	for _, row := range []struct {
		name  string
		w     Workload
		cards int
		fit   string
	}{
		{"7B full does not start on one 24 GB card", job("7B", "full", nil), 1, FitsNot},
		{"7B full on four cards, changed", job("7B", "full", nil), 4, FitsChanged},
		{"7B full at 10 bytes on four cards with ZeRO/FSDP", job("7B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), 4, FitsAsIs},
		{"13B full on eight cards", job("13B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), 8, FitsAsIs},
		{"70B full on eight cards", job("70B", "full", nil), 8, FitsNot},
		{"LoRA 7B on one card", job("7B", "lora", nil), 1, FitsAsIs},
		{"QLoRA of 33B on four cards", job("llama-33b", "qlora", nil), 4, FitsAsIs},
		{"14B in 4 bits, 8 requests, two cards", job("14B", "inference", func(w *Workload) { four(w); w.Requests = 8 }), 2, FitsAsIs},
		{"70B in 4 bits on eight cards", job("70B", "inference", func(w *Workload) { four(w); w.Requests = 8 }), 8, FitsAsIs},
		{"70B in 4 bits on one card", job("70B", "inference", four), 1, FitsNot},
	} {
		if a := Assess(row.w, cards(row.cards, nil)); a.Fit != row.fit {
			t.Errorf("%s: %s (%s; %v)", row.name, a.Fit, a.Summary, a.Changes)
		}
	}
}

// Activations of a layer, Korthikanti 2022: 34 bytes a value with dropout and a feed-forward of 4h, of which tensor
// parallelism splits 24; storing the attention matrix costs 5·a·s/h = 80 more for GPT-3, 70 % of all (§5).
func TestActivationsOfGPT3(t *testing.T) {
	m, _ := Named("gpt-3-175b")
	if whole, split := m.layerBytes(); whole != 10 || split != 24 {
		t.Errorf("%g + %g, the paper has 10 + 24", whole, split)
	}
	w := job("gpt-3-175b", "full", func(w *Workload) { w.Attention = "eager" })
	sbh := float64(w.Sequence*w.MicroBatch) * float64(m.Hidden)
	if got := scores(w) / sbh; got != 80 {
		t.Errorf("5as/h is %g, the paper has 80", got)
	}
	stored := activations(w, "single", 1)[0].Bytes
	w.Checkpointing = "selective"
	if saved := 1 - activations(w, "single", 1)[0].Bytes/stored; math.Round(100*saved) != 70 {
		t.Errorf("selective recomputation saves %.1f %%, the paper has 70", 100*saved)
	}
	w.Checkpointing = "full"
	if kept := activations(w, "single", 1)[0].Bytes; kept > stored*0.05 || kept < 2*sbh*96 {
		t.Errorf("full recomputation keeps %.1f GB of %.1f", kept/1e9, stored/1e9)
	}
	w.Checkpointing = "none"
	split := activations(w, "tensor", 8)[0].Bytes / 96 / sbh
	if want := 10 + 24.0/8 + 80.0/8; !near(split, want, 1e-9) {
		t.Errorf("tensor parallel over 8: %g a value, the paper has %g", split, want)
	}
}

// 2 · layers · KV heads · size of a head · bytes · tokens · requests.
func TestKVCache(t *testing.T) {
	for _, row := range []struct {
		model string
		each  float64 // bytes of a token at 16 bits
	}{{"llama-2-7b", 524288}, {"llama-3-8b", 131072}, {"llama-3-70b", 327680}, {"qwen2.5-14b", 196608}} {
		m, _ := Named(row.model)
		if got := m.kvBytes(2); got != row.each {
			t.Errorf("%s: %g bytes a token, want %g", row.model, got, row.each)
		}
		w := job(row.model, "inference", func(w *Workload) { w.Sequence, w.Requests = 4096, 8 })
		if got := MemoryOf(w, cards(1, nil), "single", 1).of(Cache); got != row.each*4096*8 {
			t.Errorf("%s: %g bytes for 8 requests", row.model, got)
		}
		if got := MemoryOf(w, cards(2, nil), "ddp", 2).of(Cache); got != row.each*4096*4 {
			t.Errorf("%s: copies on two cards share the requests, %g bytes", row.model, got)
		}
	}
}

// ZeRO §7: stages 1 and 2 move as much as data parallelism (2Ψ), stage 3 half as much again (3Ψ).
func TestVolumes(t *testing.T) {
	w := job("7B", "full", nil)
	volume := func(strategy string, n, k int) float64 {
		var sum float64
		for _, f := range TrafficOf(w, strategy, n, k) {
			sum += f.Bytes
		}
		return sum / (2 * 7e9) // in Ψ values of 2 bytes
	}
	for _, row := range []struct {
		strategy string
		psi      float64
	}{{"ddp", 2}, {"zero-1", 2}, {"zero-2", 2}, {"zero-3", 3}, {"fsdp", 3}} {
		if got := volume(row.strategy, 1<<20, 1); !near(got, row.psi, 1e-3) {
			t.Errorf("%s moves %.2fΨ, the paper has %gΨ", row.strategy, got, row.psi)
		}
	}
	if got := volume("ddp", 4, 1); !near(got, 1.5, 1e-9) {
		t.Errorf("all-reduce over four cards moves %.2fΨ, want 2·3/4", got)
	}
	if volume("ddp", 4, 16) != volume("ddp", 4, 1) || volume("zero-2", 4, 16) <= volume("zero-2", 4, 1) {
		t.Error("accumulation spares ddp all but one exchange, and not zero-2")
	}
}

// Megatron-LM §3: 4 all-reduces of b·s·h a layer, forward and backward.
func TestTensorTraffic(t *testing.T) {
	w := job("llama-2-7b", "full", nil)
	f := TrafficOf(w, "tensor", 2, 1)[0]
	if want := 4.0 * 32 * 1 * 2048 * 4096 * 2; f.Bytes != want || !f.Waits {
		t.Errorf("%g bytes, want %g", f.Bytes, want)
	}
}

// Narayanan 2021 §2.2: the bubble is (p − 1) ÷ m of the computing.
func TestPipelineBubble(t *testing.T) {
	w := job("7B", "full", func(w *Workload) { w.GlobalBatch, w.MicroBatch = 32, 1 })
	s, _ := StepOf(w, cards(4, nil), "pipeline", 4)
	if got := s.Bubble / s.Compute; !near(got, 3.0/32, 1e-9) {
		t.Errorf("bubble %.4f of the computing, want 3/32", got)
	}
}

// 6 FLOP a parameter and token for training (Kaplan 2020), 8 with full recomputation (Narayanan 2021, §5.1).
func TestFLOPs(t *testing.T) {
	w := job("gpt-3-175b", "full", func(w *Workload) { w.Sequence = 1 })
	if got := w.FLOPs() / w.Model.Parameters; !near(got, 6, 0.001) {
		t.Errorf("%.3f a parameter", got)
	}
	w.Checkpointing = "full"
	if got := w.FLOPs() / w.Model.Parameters; !near(got, 8, 0.001) {
		t.Errorf("%.3f a parameter with recomputation", got)
	}
}

// The speed-ups that builders call healthy, over one card.
func TestHealthy(t *testing.T) {
	for n, want := range map[int][2]float64{2: {1.7, 1.9}, 4: {2.55, 3.23}, 8: {4.25, 5.7}} {
		if !near(healthy[n][0], want[0], 1e-9) || !near(healthy[n][1], want[1], 1e-9) {
			t.Errorf("%d cards: %v, want %v", n, healthy[n], want)
		}
	}
}

// 64 ÷ (4 × 4) = 4, the example of the field.
func TestAccumulation(t *testing.T) {
	w := job("7B", "lora", func(w *Workload) { w.GlobalBatch, w.MicroBatch = 64, 4 })
	for _, row := range []struct {
		strategy string
		n, want  int
	}{{"ddp", 4, 4}, {"fsdp", 8, 2}, {"ddp", 3, 6}, {"tensor", 4, 16}, {"ddp", 64, 1}} {
		if got := accumulation(w, row.strategy, row.n); got != row.want {
			t.Errorf("%s on %d cards: %d, want %d", row.strategy, row.n, got, row.want)
		}
	}
}
