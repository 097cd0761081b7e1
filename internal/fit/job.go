package fit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"preflight/internal/workload"
	"preflight/inventory"
)

// configLimit bounds a config.json, bytes. Real ones have a few thousand.
const configLimit = 4 << 20

// Ask is a workload as somebody asks for it; zero values were not said.
type Ask struct {
	Model  string // a size ("7B") or a name ("llama-3-8b")
	Size   float64
	Config string // path of a config.json

	Workload workload.Workload // the rest
}

// Read makes a complete and valid workload of what was asked for. The error names what is wrong and what is taken.
func (a Ask) Read() (workload.Workload, error) {
	w := a.Workload
	m, assumed, err := a.model()
	if err != nil {
		return w, err
	}
	w.Model, w.Assumed = m, append(w.Assumed, assumed...)
	w = w.Complete()
	if err := w.Validate(); err != nil {
		var word *workload.WordError
		if errors.As(err, &word) {
			return w, fmt.Errorf("%s %q is not known%s; it takes %s", word.Field, word.Given, meant(word.Given, word.Takes), strings.Join(word.Takes, ", "))
		}
		return w, err
	}
	return w, nil
}

func meant(given string, known []string) string {
	if n := inventory.Nearest(strings.ToLower(given), known); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}

// model finds the model, and what was assumed of it.
func (a Ask) model() (workload.Model, []string, error) {
	size := a.Size
	name := ""
	if a.Model != "" {
		n, problem := inventory.ParameterCount(a.Model)
		switch m, ok := workload.Named(a.Model); {
		case ok && a.Config != "":
			return m, nil, fmt.Errorf("%s has a shape of its own, and %s another: give one of them", a.Model, a.Config)
		case ok:
			if size > 0 {
				m.Parameters = size
			}
			return m, nil, m.Validate()
		case problem == "":
			size = n
		case a.Config != "":
			name = a.Model // a name of one's own for it
		default:
			return m, nil, fmt.Errorf("no model is called %q%s; write a size (7B), or one of %s; or give its config.json with --config", a.Model, meant(a.Model, workload.ModelNames()), strings.Join(workload.ModelNames(), ", "))
		}
	}
	if a.Config != "" {
		return readConfig(a.Config, name, size)
	}
	if size <= 0 {
		return workload.Model{}, nil, fmt.Errorf("no model is given: --model 7B, --model llama-3-8b or --config config.json")
	}
	m := workload.OfSize(size)
	if err := m.Validate(); err != nil {
		return m, nil, err
	}
	return m, []string{m.Source}, nil
}

func readConfig(path, name string, size float64) (workload.Model, []string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	f, err := os.Open(path)
	if err != nil {
		return workload.Model{}, nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, configLimit+1))
	if err != nil {
		return workload.Model{}, nil, err
	}
	if len(raw) > configLimit {
		return workload.Model{}, nil, fmt.Errorf("%s is larger than %d bytes: no config.json is", path, configLimit)
	}
	if name == "" {
		name = filepath.Base(filepath.Dir(absolute(path)))
	}
	m, assumed, err := workload.FromConfig(raw, name, size)
	if err != nil {
		return m, nil, fmt.Errorf("%s %w", path, err)
	}
	return m, assumed, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// FromBlock is the workload of an inventory's block; the error begins with where the block stands.
func FromBlock(b *inventory.Workload) (workload.Workload, error) {
	w, err := Ask{Model: b.Model, Size: b.Parameters, Config: b.Config, Workload: workload.Workload{
		Name: b.Name, Method: b.Method, Precision: b.Precision, Optimizer: b.Optimizer, Sequence: b.Sequence, MicroBatch: b.Batch, GlobalBatch: b.GlobalBatch,
		Checkpointing: b.Checkpointing, Attention: b.Attention, Strategy: b.Strategy, Requests: b.Requests, Rank: b.LoRARank, Tokens: b.Tokens,
	}}.Read()
	if err != nil {
		return w, fmt.Errorf("%s: workload %q: %w", inventory.Position(b.Range), b.Name, err)
	}
	return w, nil
}
