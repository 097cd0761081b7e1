package fit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/internal/workload"
	"preflight/inventory"
)

func TestDescribe(t *testing.T) {
	for _, row := range []struct {
		text, label, says string
		p2p, nvlink       bool
	}{
		{text: "4x4090", label: "4× GeForce RTX 4090"},
		{text: "2 x RTX 3090", label: "2× GeForce RTX 3090"},
		{text: "8*rtx-4090", label: "8× GeForce RTX 4090"},
		{text: "8xa100-80gb-sxm", label: "8× A100 SXM4 80GB", p2p: true, nvlink: true},
		{text: "4090", says: "describes no machine"},
		{text: "0x4090", says: "0 cards are out of range"},
		{text: "-2x4090", says: "-2 cards are out of range"},
		{text: "99999999999999999999x4090", says: "out of range"},
		{text: "4xgtx-4090", says: "did you mean rtx-4090?"},
		{text: "4xa100", says: "is several cards"},
		{text: "4xnothing-like-it", says: "`preflight catalog gpu` lists them"},
	} {
		r, err := Describe(row.text, catalog.MustLoad())
		if row.says != "" {
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v, want %q", row.text, err, row.says)
			}
			continue
		}
		if err != nil || r.Label() != row.label || r.P2P != row.p2p || r.NVLink != row.nvlink {
			t.Errorf("%s: %s, P2P %v, NVLink %v, %v", row.text, r.Label(), r.P2P, r.NVLink, err)
		}
	}
}

// FuzzDescribe: whatever is written, there is a machine with cards and memory, or an error.
func FuzzDescribe(f *testing.F) {
	for _, s := range []string{"4x4090", "-1x4090", "4×rtx 3090", "x", "4x"} {
		f.Add(s)
	}
	cat := catalog.MustLoad()
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Describe(text, cat)
		if err == nil && (r.Cards < 1 || r.Cards > mostCards || r.Card.Memory <= 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

func TestAskModel(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte(`{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000, "tie_word_embeddings": false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, make([]byte, configLimit+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name       string
		ask        Ask
		model      string
		parameters float64
		says       string
	}{
		{name: "a size", ask: Ask{Model: "7B"}, model: "7B", parameters: 7e9},
		{name: "a name", ask: Ask{Model: "LLAMA-3-8B"}, model: "llama-3-8b", parameters: 8030261248},
		{name: "a config", ask: Ask{Config: path}, model: filepath.Base(dir), parameters: 6738415616},
		{name: "its folder", ask: Ask{Config: dir, Model: "mine"}, model: "mine", parameters: 6738415616},
		{name: "a config with a size", ask: Ask{Config: path, Model: "8B"}, parameters: 8e9, model: filepath.Base(dir)},
		{name: "nothing", says: "no model is given"},
		{name: "a name and a config", ask: Ask{Model: "llama-3-8b", Config: path}, says: "give one of them"},
		{name: "a wrong name", ask: Ask{Model: "lama-3-8b"}, says: "did you mean llama-3-8b?"},
		{name: "no such file", ask: Ask{Config: filepath.Join(dir, "none.json")}, says: "none.json"},
		{name: "a file without end", ask: Ask{Config: big}, says: "larger than"},
	} {
		w, err := row.ask.Read()
		switch {
		case row.says != "":
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v, want %q", row.name, err, row.says)
			}
		case err != nil || w.Model.Name != row.model || w.Model.Parameters != row.parameters:
			t.Errorf("%s: %s with %.0f, %v", row.name, w.Model.Name, w.Model.Parameters, err)
		}
	}
}

// A rig that was declared has the catalogue's figures and its own price; one that declares nothing has none.
func TestDeclared(t *testing.T) {
	four, price, margin := 4, 2.0, 0.1
	rig := &inventory.Rig{Name: "node-a", Cards: &four, GPU: "rtx-4090", PricePerHour: &price, Profile: &inventory.Profile{FitMargin: &margin}}
	r, err := Declared(rig, catalog.MustLoad())
	if err != nil || r.Cards != 4 || r.Price.PerCard != 0.5 || r.Policy.Margin != 0.1 || r.Policy.Overlap != 0.6 || r.Bandwidth[0].Measured {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := Declared(&inventory.Rig{Name: "node-b"}, catalog.MustLoad()); err == nil || !strings.Contains(err.Error(), "declare both") {
		t.Errorf("%v", err)
	}
}

// Of a host that was not reached, or shows no card, nothing is said.
func TestJudgedRefuses(t *testing.T) {
	rig := &inventory.Rig{Name: "node-a"}
	for want, host := range map[string]*facts.Host{"not reached": nil, "no NVIDIA card": {}} {
		if _, err := Judged(rig, host, nil, checks.PolicyFor(nil, 1), catalog.MustLoad()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReferencesAreKnown(t *testing.T) {
	for _, text := range References() {
		r, err := Describe(text, catalog.MustLoad())
		if err != nil || r.Card.TFLOPS == 0 || r.Cards > 1 && len(r.Bandwidth) == 0 {
			t.Errorf("%s: %+v %v", text, r, err)
		}
	}
	if w, err := (Ask{Model: "7B", Workload: workload.Workload{Method: "lora"}}).Read(); err != nil || w.Rank != 16 {
		t.Errorf("%+v %v", w, err)
	}
}
