package facts

import (
	"encoding/json"
	"time"
)

// Fact is one observed value together with the place it was read from.
// The zero Fact is absent: a value that could not be read is never 0, "" or false.
type Fact[T any] struct {
	Value  T
	Source string // "sysfs:sys/bus/pci/…/current_link_width", "nvidia-smi:pci/…"; "" means absent
}

// Of is a known fact. An empty source would make it absent, so it panics: every value has an origin.
func Of[T any](value T, source string) Fact[T] {
	if source == "" {
		panic("facts.Of: a fact needs a source")
	}
	return Fact[T]{Value: value, Source: source}
}

// Known says whether the value was observed.
func (f Fact[T]) Known() bool { return f.Source != "" }

// IsZero makes an absent fact vanish from JSON under `omitzero`.
func (f Fact[T]) IsZero() bool { return f.Source == "" }

// Get returns the value and whether it is known.
func (f Fact[T]) Get() (T, bool) { return f.Value, f.Known() }

// Or returns the value, or the fallback when it is absent.
func (f Fact[T]) Or(fallback T) T {
	if f.Known() {
		return f.Value
	}
	return fallback
}

// First returns the first known fact of several, best source first.
func First[T any](candidates ...Fact[T]) Fact[T] {
	for _, c := range candidates {
		if c.Known() {
			return c
		}
	}
	return Fact[T]{}
}

// Leaf is how a fact looks in JSON. Unit comes from the struct tag of the field that holds the fact.
type Leaf struct {
	Value  any        `json:"value"`
	Unit   string     `json:"unit,omitempty"`
	Source string     `json:"source"`
	At     *time.Time `json:"at,omitempty"`
}

// MarshalJSON writes the leaf without its unit; Tree adds units and time.
func (f Fact[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(Leaf{Value: f.Value, Source: f.Source})
}

// leaf lets Tree and the expression types reach a fact through reflection.
func (f Fact[T]) leaf() (value any, source string) { return f.Value, f.Source }
