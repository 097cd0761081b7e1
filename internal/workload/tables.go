package workload

import (
	"bytes"
	_ "embed" // the tables
	"encoding/csv"
	"fmt"
	"strconv"
	"sync"
)

//go:embed data/models.csv
var modelsCSV []byte

//go:embed data/presets.csv
var presetsCSV []byte

// tables are the embedded files, read once; nothing changes them.
type tables struct {
	models  []Model
	presets []Preset
}

var loaded = sync.OnceValue(func() tables {
	t, err := readTables()
	if err != nil {
		panic(err) // a mistake of the build; the package test reads the tables first
	}
	return t
})

func readTables() (tables, error) {
	var t tables
	rows, err := rowsOf(modelsCSV)
	if err != nil {
		return t, fmt.Errorf("models.csv: %w", err)
	}
	for _, r := range rows {
		m := Model{
			Name: r["name"], Parameters: figure(r["parameters"]), Layers: count(r["layers"]), Hidden: count(r["hidden"]), Heads: count(r["heads"]),
			KVHeads: count(r["kv_heads"]), HeadDim: count(r["head_dim"]), FeedForward: count(r["feed_forward"]), Vocabulary: count(r["vocabulary"]),
			Gated: r["gated"] == "yes", Tied: r["tied"] == "yes", QKVBias: r["bias"] == "qkv", QKNorm: r["bias"] == "qk-norm",
			Experts: count(r["experts"]), ActiveExperts: count(r["active_experts"]), Source: r["source"], typical: r["typical"] == "yes",
		}
		if err := m.Validate(); err != nil {
			return t, fmt.Errorf("models.csv: %s: %w", m.Name, err)
		}
		t.models = append(t.models, m)
	}
	if rows, err = rowsOf(presetsCSV); err != nil {
		return t, fmt.Errorf("presets.csv: %w", err)
	}
	for _, r := range rows {
		t.presets = append(t.presets, Preset{
			Optimizer: r["optimizer"], Bits: count(r["precision"]), Weights: figure(r["weights"]), Gradients: figure(r["gradients"]),
			States: figure(r["states"]), Rule: r["rule"], Source: r["source"],
		})
	}
	return t, nil
}

func rowsOf(raw []byte) ([]map[string]string, error) {
	all, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	for _, cells := range all[1:] {
		r := map[string]string{}
		for i, name := range all[0] {
			r[name] = cells[i]
		}
		out = append(out, r)
	}
	return out, nil
}

// figure reads a number of a table; an empty cell is 0. The package test refuses rows whose needed cells are none.
func figure(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

func count(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
