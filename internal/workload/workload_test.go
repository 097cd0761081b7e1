package workload

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The shapes make the published numbers of parameters, to the last one. GPT-3's report rounds, and leaves its biases out.
func TestModelsCount(t *testing.T) {
	if _, err := readTables(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range Models() {
		tolerance := 0.0
		if m.Name == "gpt-3-175b" {
			tolerance = 0.005
		}
		n := m
		n.Parameters = 0
		if got := n.Count(); !near(got, m.Parameters, tolerance) {
			t.Errorf("%s: the shape makes %.0f parameters, published are %.0f", m.Name, got, m.Parameters)
		}
		if m.Source == "" || seen[m.Name] {
			t.Errorf("%s: no source, or twice", m.Name)
		}
		seen[m.Name] = true
	}
	for _, p := range loaded().presets {
		if p.Source == "" || p.Rule == "" || p.Total() < 6 || p.Bits != 16 && p.Bits != 32 {
			t.Errorf("preset %+v", p)
		}
	}
}

func TestOfSize(t *testing.T) {
	for _, row := range []struct {
		parameters   float64
		name, source string
		layers       int
	}{
		{7e9, "7B", "shape of llama-2-7b", 32},
		{13e9, "13B", "shape of llama-2-13b", 40},
		{70e9, "70B", "shape of llama-3-70b", 80},
		{1.3e9, "1.3B", "shape of llama-3.2-1b", 16},
		{350e6, "350M", "shape scaled: h = 128·L, P = 12·L·h² (Kaplan 2020)", 12},
		{1e12, "1T", "shape scaled: h = 128·L, P = 12·L·h² (Kaplan 2020)", 172},
	} {
		m := OfSize(row.parameters)
		if m.Name != row.name || m.Source != row.source || m.Layers != row.layers || m.Parameters != row.parameters {
			t.Errorf("%s: %+v", row.name, m)
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestFromConfig(t *testing.T) {
	for _, row := range []struct {
		file    string
		count   float64
		assumed string
	}{
		{"llama-3-8b.json", 8030261248, ""},
		{"qwen2.5-0.5b.json", 494032768, ""},
		{"qwen3-30b-a3b.json", 30532122624, ""},
		{"mixtral-8x7b.json", 46702792704, ""},
		{"vision.json", 8030261248, "only the text model is counted"},
		{"unheard-of.json", 6738415616, "three matrices"},
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", row.file))
		if err != nil {
			t.Fatal(err)
		}
		m, assumed, err := FromConfig(raw, row.file, 0)
		if err != nil || m.Parameters != row.count {
			t.Errorf("%s: %.0f parameters, %v; want %.0f", row.file, m.Parameters, err, row.count)
		}
		if got := strings.Join(assumed, "; "); !strings.Contains(got, row.assumed) || (row.assumed == "" && got != "") {
			t.Errorf("%s: assumed %q", row.file, got)
		}
		if given, _, _ := FromConfig(raw, "x", 9e9); given.Parameters != 9e9 {
			t.Errorf("%s: a number that was given is not kept", row.file)
		}
	}
}

func TestFromConfigRefuses(t *testing.T) {
	for _, row := range []struct{ name, raw, says string }{
		{"no JSON", "hello", "is no config.json of a model"},
		{"a list", "[1]", "it is a JSON array, not an object"},
		{"another JSON", `{"schema": "preflight/report/v1"}`, "it has no hidden_size, num_hidden_layers, num_attention_heads, vocab_size"},
		{"a tokenizer's", `{"vocab_size": 32000, "model_max_length": 4096}`, "it has no hidden_size"},
		{"words for numbers", `{"hidden_size": "big"}`, "hidden_size is a JSON string; a whole number belongs there"},
		{"parts of a layer", `{"num_hidden_layers": 32.5}`, "num_hidden_layers is a JSON number 32.5; a whole number belongs there"},
		{"a text model of another kind", `{"text_config": 7}`, "text_config cannot be a JSON number"},
		{"heads do not divide", `{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 30, "vocab_size": 32000, "intermediate_size": 11008}`, "4096 does not divide among 30 heads"},
		{"KV heads do not divide", `{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 5, "vocab_size": 32000, "intermediate_size": 11008}`, "32 heads do not divide among 5"},
		{"negative", `{"hidden_size": -4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}`, "hidden_size is -4096"},
		{"beyond any model", `{"hidden_size": 4096, "num_hidden_layers": 99999999, "num_attention_heads": 32, "vocab_size": 32000}`, "layers: 99999999 is out of range"},
		{"more experts than there are", `{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "num_local_experts": 4, "num_experts_per_tok": 8}`, "experts: 8 of 4"},
		{"latent attention", `{"hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "vocab_size": 129280, "kv_lora_rank": 512}`, "kv_lora_rank"},
	} {
		if _, _, err := FromConfig([]byte(row.raw), "m", 0); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.name, err, row.says)
		}
	}
}

func FuzzFromConfig(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, _, err := FromConfig(raw, "m", 0)
		if err != nil {
			return
		}
		a := Assess(Workload{Model: m, Method: "full"}.Complete(), cards(4, nil))
		for _, o := range a.Options {
			for _, l := range o.Memory.Lines {
				if l.Bytes < 0 || l.Bytes != l.Bytes {
					t.Fatalf("%s: %g bytes of %+v", l.Part, l.Bytes, m)
				}
			}
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	})
}

func TestValidate(t *testing.T) {
	good := job("7B", "full", nil)
	for _, row := range []struct {
		name string
		set  func(*Workload)
		says string
	}{
		{"sound", func(*Workload) {}, ""},
		{"method", func(w *Workload) { w.Method = "magic" }, `method "magic" is not known`},
		{"optimizer", func(w *Workload) { w.Optimizer = "adam" }, `optimizer "adam" is not known`},
		{"4-bit training", func(w *Workload) { w.Precision = "4bit" }, "method qlora"},
		{"a 16-bit rule", func(w *Workload) { w.Optimizer, w.Precision = "adamw-14", "fp32" }, "rule for 16-bit weights"},
		{"sequence", func(w *Workload) { w.Sequence = -1 }, "sequence -1 is out of range"},
		{"tokens", func(w *Workload) { w.Tokens = -5 }, "tokens -5"},
		{"hours", func(w *Workload) { w.Hours = -5 }, "hours -5"},
		{"heads", func(w *Workload) { w.Model.KVHeads = 5 }, "32 heads do not divide among 5"},
	} {
		w := good
		row.set(&w)
		err := w.Validate()
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.says)
		}
	}
}

func TestAssess(t *testing.T) {
	nvlink := func(r *Rig) { r.NVLink, r.P2P, r.Bandwidth = true, true, []Bandwidth{{Cards: 16, GBs: 230}} }
	for _, row := range []struct {
		name                 string
		w                    Workload
		r                    Rig
		fit, speed, strategy string
	}{
		{"LoRA without P2P", job("7B", "lora", nil), cards(4, nil), FitsAsIs, Suited, "ddp"},
		{"full tuning that must be shared out", job("7B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), cards(4, nil), FitsAsIs, Suited, "fsdp"},
		{"a sick link", job("7B", "full", func(w *Workload) { w.Optimizer, w.Strategy = "adamw-10", "fsdp" }), cards(4, func(r *Rig) { r.Bandwidth[0].GBs = 0.9 }), FitsAsIs, Unsuited, "fsdp"},
		{"a sick link, with a way around it", job("7B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), cards(4, func(r *Rig) { r.Bandwidth[0].GBs = 0.9 }), FitsAsIs, Suited, "pipeline"},
		{"tensor parallelism over PCIe", job("llama-3-8b", "full", func(w *Workload) { w.Optimizer, w.Strategy = "adamw-bf16", "tensor" }), cards(8, nil), FitsAsIs, Unsuited, "tensor"},
		{"the same over NVLink", job("llama-3-8b", "full", func(w *Workload) { w.Optimizer, w.Strategy = "adamw-bf16", "tensor" }), cards(8, nvlink), FitsAsIs, Suited, "tensor"},
		{"one card", job("7B", "qlora", nil), cards(1, nil), FitsAsIs, Suited, "single"},
		{"links nobody knows", job("7B", "lora", nil), cards(2, func(r *Rig) { r.Bandwidth = nil }), FitsAsIs, Unclear, "ddp"},
		{"a card of unknown speed", job("7B", "lora", nil), cards(2, func(r *Rig) { r.Card.TFLOPS = 0 }), FitsAsIs, Unclear, "ddp"},
		{"a fixed strategy that does not fit", job("7B", "full", func(w *Workload) { w.Optimizer, w.Strategy = "adamw-10", "ddp" }), cards(4, nil), FitsChanged, Suited, "fsdp"},
		{"serving that is split", job("70B", "inference", func(w *Workload) { w.Precision = "4bit" }), cards(4, nil), FitsAsIs, Suited, "pipeline"},
		{"zero of serving", job("7B", "inference", func(w *Workload) { w.Strategy = "zero-2" }), cards(2, nil), FitsChanged, Suited, "ddp"},
		{"four models of PPO", job("llama-3.2-1b", "ppo", nil), cards(4, nil), FitsAsIs, Suited, "zero-2"},
	} {
		a := Assess(row.w, row.r)
		strategy := ""
		if a.Chosen != nil {
			strategy = a.Chosen.Strategy
		}
		if a.Fit != row.fit || a.Speed != row.speed || strategy != row.strategy {
			t.Errorf("%s: %s, %s, %s; want %s, %s, %s\n%s %v", row.name, a.Fit, a.Speed, strategy, row.fit, row.speed, row.strategy, a.Summary, a.Changes)
		}
		if len(a.Steps) != 4 {
			t.Errorf("%s: %d steps", row.name, len(a.Steps))
		}
		if b := Assess(row.w, row.r); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs differ", row.name)
		}
	}
}

// Changes are no more than what is needed, and what is asked for is kept otherwise.
func TestChangesAreFew(t *testing.T) {
	a := Assess(job("7B", "full", nil), cards(4, nil))
	if len(a.Changes) != 1 || a.Changes[0] != "8-bit AdamW" {
		t.Errorf("%v", a.Changes)
	}
	if a.Workload.Optimizer != "adamw" || a.Applied.Optimizer != "adamw-8bit" {
		t.Errorf("asked %s, applied %s", a.Workload.Optimizer, a.Applied.Optimizer)
	}
	// Micro-batch 1 would do with tensor parallelism, which these links do not suit.
	a = Assess(job("13B", "full", func(w *Workload) { w.Optimizer, w.MicroBatch, w.Checkpointing = "adamw-10", 4, "none" }), cards(8, nil))
	if a.Speed != Suited || a.Chosen.Strategy == "tensor" || a.Applied.Checkpointing != "full" || a.Applied.Optimizer != "adamw-10" {
		t.Errorf("%s, %s, %v", a.Speed, a.Chosen.Strategy, a.Changes)
	}
	a = Assess(job("7B", "lora", func(w *Workload) { w.MicroBatch, w.Sequence = 64, 4096 }), cards(1, nil))
	if a.Fit != FitsChanged || a.Applied.MicroBatch != 1 {
		t.Errorf("%s %v", a.Fit, a.Changes)
	}
}

// Sharing more out never takes more states, and every order of magnitude of bandwidth helps.
func TestMonotone(t *testing.T) {
	w := job("13B", "full", nil)
	for _, n := range []int{2, 4, 8} {
		last := -1.0
		for _, s := range []string{"fsdp", "zero-2", "zero-1", "ddp"} {
			m := MemoryOf(w, cards(n, nil), s, n)
			if got := m.of(Weights) + m.of(Gradients) + m.of(States); got < last {
				t.Errorf("%d cards: %s holds less than what shares more out", n, s)
			} else {
				last = got
			}
		}
	}
	for _, s := range []string{"ddp", "zero-1", "zero-2", "fsdp", "tensor"} {
		last := 0.0
		for _, gbs := range []float64{1, 10, 100, 1000} {
			step, _ := StepOf(w, cards(4, func(r *Rig) { r.Bandwidth = []Bandwidth{{Cards: 4, GBs: gbs}} }), s, 4)
			if e := step.Efficiency(); e < last || e > 1 {
				t.Errorf("%s at %g GB/s: %.2f after %.2f", s, gbs, e, last)
			} else {
				last = e
			}
		}
	}
}

func TestMisjudgements(t *testing.T) {
	claims := func(a Assessment) (out []string) {
		for _, x := range a.Answers {
			out = append(out, x.Claim)
		}
		return out
	}
	got := claims(Assess(job("7B", "full", nil), cards(8, func(r *Rig) { r.Bandwidth = []Bandwidth{{Cards: 16, GBs: 2}} })))
	want := []string{"memory of several cards adds up", "24 GB cannot train", "more cards are linearly faster"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := claims(Assess(job("7B", "qlora", nil), cards(1, nil))); len(got) != 0 {
		t.Errorf("a job without any of them: %v", got)
	}
	slow := Assess(job("7B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), cards(4, func(r *Rig) { r.Bandwidth[0].GBs = 3 }))
	big := Assess(job("7B", "full", func(w *Workload) { w.Optimizer = "adamw-10" }), cards(1, func(r *Rig) { r.Card = Card{Name: "A100", Memory: 81920 << 20, TFLOPS: 312} }))
	if x, ok := Versus(slow, big); !ok || !strings.Contains(x.Text, "2.1 times the peak") {
		t.Errorf("%+v %v", x, ok)
	}
	if _, ok := Versus(big, big); ok {
		t.Error("a machine against itself")
	}
}

func TestMeasuredSpeedUps(t *testing.T) {
	r := cards(8, func(r *Rig) {
		r.Card.Measured = 1000
		r.Card.MoreCards = []Rate{{1, 1000}, {2, 1800}, {4, 4200}, {8, 2000}}
	})
	remarks := map[int]string{}
	for _, p := range Assess(job("7B", "lora", nil), r).Scaling {
		remarks[p.Cards] = p.Remark
	}
	for n, want := range map[int]string{1: "", 2: "healthy", 4: "4.20 over one card is above linear: a mistake of the measuring", 8: "below what healthy rigs reach"} {
		if remarks[n] != want {
			t.Errorf("%d cards: %q, want %q", n, remarks[n], want)
		}
	}
}

func TestLaunch(t *testing.T) {
	r := cards(4, func(r *Rig) {
		r.Launch = Surround{PortsSeen: true, Busy: []int{22, 29500, 29501}, Env: []Setting{{Name: "NCCL_P2P_DISABLE", Value: "1", Why: "it hangs"}}}
	})
	l := Assess(job("7B", "lora", nil), r).Launch
	if want := "NCCL_P2P_DISABLE=1 torchrun --nnodes=1 --nproc-per-node=4 --master-addr=127.0.0.1 --master-port=29502 train.py"; l.Command != want {
		t.Errorf("%s", l.Command)
	}
	if !strings.Contains(l.Docker, "--shm-size=64g") {
		t.Errorf("%s", l.Docker)
	}
	if l := Assess(job("7B", "lora", nil), cards(4, nil)).Launch; l.Command != "torchrun --standalone --nproc-per-node=4 train.py" {
		t.Errorf("%s", l.Command)
	}
	if l := Assess(job("7B", "inference", nil), cards(4, nil)).Launch; l != nil {
		t.Errorf("%+v", l)
	}
}

func TestCosts(t *testing.T) {
	w := job("7B", "full", func(w *Workload) { w.Optimizer, w.Strategy, w.Hours, w.HoursOn = "adamw-10", "fsdp", 10, "a100" })
	desk := cards(4, func(r *Rig) { r.Bandwidth[0].GBs, r.Price, r.Buy = 1, &Price{PerCard: 0.4}, 8000 })
	a100 := cards(1, func(r *Rig) {
		r.Names, r.Card, r.Price = []string{"a100"}, Card{Name: "A100", Memory: 81920 << 20, TFLOPS: 312}, &Price{PerCard: 2}
	})
	list := []Assessment{Assess(w, desk), Assess(w, a100)}
	rows := Costs(list)
	if len(rows) != 3 {
		t.Fatalf("%+v", rows)
	}
	ratio := list[1].Chosen.Step.Rate() / list[0].Chosen.Step.Rate()
	if !near(rows[0].HoursLow, 10*ratio, 1e-9) || !near(rows[0].CostLow, 4*0.4*10*ratio, 1e-9) || rows[0].BreakEven != 8000/1.6 {
		t.Errorf("the rig: %+v", rows[0])
	}
	if rows[1].HoursLow != 30 || rows[1].HoursHigh != 40 || !strings.Contains(rows[1].Origin, "3–4 T") {
		t.Errorf("the rule: %+v", rows[1])
	}
	if rows[2].HoursLow != 10 || rows[2].CostLow != 20 || rows[2].Origin != "measured" {
		t.Errorf("the base: %+v", rows[2])
	}
	if rows := Costs([]Assessment{Assess(job("7B", "lora", nil), cards(4, nil))}); len(rows) != 0 {
		t.Errorf("no price, no length: %+v", rows)
	}
	w = job("7B", "lora", func(w *Workload) { w.Tokens = 1e9 })
	a := Assess(w, cards(2, nil))
	if rows := Costs([]Assessment{a}); len(rows) != 1 || !near(rows[0].HoursLow, 1e9/a.Chosen.Step.Rate()/3600, 1e-9) || rows[0].CostLow != 0 {
		t.Errorf("tokens alone: %+v", rows)
	}
}
