package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Series is what was seen of a host's cards over a time, in the order in which it came.
type Series struct {
	Start  time.Time // of the first sample, the host's clock
	Cards  []*Track  // by BDF
	CPU    []Point   // °C
	BMC    []*Sensed // by name: inlet air, supplies
	Events []Event
}

// Track is one card.
type Track struct {
	BDF, Name string
	At        []time.Duration // since Start
	Values    []Values
}

// Sensed is one sensor of the BMC.
type Sensed struct {
	Name, Unit string
	Points     []Point
}

// Point is one value of the host.
type Point struct {
	At    time.Duration
	Value float64
}

// Event is something that happened at a time: a line of the kernel, nvidia-smi that ended, a card that was lost.
type Event struct {
	At   time.Duration `json:"-"`
	Kind string        `json:"kind"` // xid, link, smi, lost, note
	Xid  int           `json:"xid,omitempty"`
	BDF  string        `json:"bdf,omitempty"`
	Text string        `json:"text"`
}

// What a series may grow to: a day of eight cards at two seconds is 43,200 samples a card.
const (
	mostSamples = 50_000 // a card
	mostCards   = 64
	mostEvents  = 2_000
	mostSensors = 64
)

// Add notes an item. What has no clock of its own stands at the time of the last sample. When it is full, nothing is added.
func (s *Series) Add(it Item) {
	switch {
	case it.Card != nil:
		s.card(*it.Card)
	case it.CPU != nil && len(s.CPU) < mostSamples:
		s.CPU = append(s.CPU, Point{s.last(), *it.CPU})
	case it.Sensor != nil:
		s.sensor(*it.Sensor)
	case it.Kernel != nil && it.Kernel.Xid > 0:
		s.event(Event{Kind: "xid", Xid: it.Kernel.Xid, BDF: it.Kernel.BDF, Text: it.Kernel.Text})
	case it.Kernel != nil:
		s.event(Event{Kind: "link", BDF: it.Kernel.BDF, Text: it.Kernel.Text})
	case it.Ended != "":
		s.event(Event{Kind: "smi", Text: it.Ended})
	case it.Note != "":
		s.event(Event{Kind: "note", Text: it.Note})
	}
}

func (s *Series) sensor(r Sensor) {
	i := slices.IndexFunc(s.BMC, func(o *Sensed) bool { return o.Name == r.Name })
	if i < 0 {
		if len(s.BMC) >= mostSensors {
			return
		}
		i = len(s.BMC)
		s.BMC = append(s.BMC, &Sensed{Name: r.Name, Unit: r.Unit})
	}
	if x := s.BMC[i]; len(x.Points) < mostSamples {
		x.Points = append(x.Points, Point{s.last(), r.Value})
	}
}

func (s *Series) event(e Event) {
	e.At = s.last()
	if len(s.Events) < mostEvents && !slices.ContainsFunc(s.Events, func(o Event) bool { return e.Kind != "xid" && o.Kind == e.Kind && o.Text == e.Text }) {
		s.Events = append(s.Events, e)
	}
}

// last is the time of the latest sample.
func (s *Series) last() time.Duration {
	var at time.Duration
	for _, t := range s.Cards {
		if n := len(t.At); n > 0 {
			at = max(at, t.At[n-1])
		}
	}
	return at
}

func (s *Series) card(c Card) {
	if s.Start.IsZero() {
		s.Start = c.At
	}
	i, found := slices.BinarySearchFunc(s.Cards, c.BDF, func(t *Track, bdf string) int {
		switch {
		case t.BDF < bdf:
			return -1
		case t.BDF > bdf:
			return 1
		}
		return 0
	})
	if !found {
		if len(s.Cards) >= mostCards {
			return
		}
		s.Cards = slices.Insert(s.Cards, i, &Track{BDF: c.BDF, Name: c.Name})
	}
	t := s.Cards[i]
	if c.Lost {
		s.event(Event{Kind: "lost", BDF: c.BDF, Text: "the driver answers that the card is lost or must be reset"})
	}
	at := c.At.Sub(s.Start).Truncate(time.Millisecond)
	if n := len(t.At); n >= mostSamples || n > 0 && at < t.At[n-1] { // a clock that was set back
		return
	}
	t.At, t.Values = append(t.At, at), append(t.Values, c.Values)
}

// Column is one metric of a card over time; absent values are NaN.
func (t *Track) Column(m Metric) []float64 {
	out := make([]float64, len(t.Values))
	for i, v := range t.Values {
		out[i] = v[m]
	}
	return out
}

// file is a series as it is written: a column for each metric, times as steps in milliseconds, values in tenths, and null for
// what was absent. Columns that are absent throughout are left out.
type file struct {
	Schema string       `json:"schema"`
	Start  time.Time    `json:"start"`
	Cards  []fileCard   `json:"cards"`
	CPU    *fileColumn  `json:"cpu,omitempty"`
	BMC    []fileSensor `json:"bmc,omitempty"`
	Events []fileEvent  `json:"events,omitempty"`
}

type fileCard struct {
	BDF     string              `json:"bdf"`
	Name    string              `json:"name,omitempty"`
	Steps   []int64             `json:"steps_ms"`
	Columns map[string][]*int64 `json:"tenths"`
}

type fileSensor struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	fileColumn
}

type fileColumn struct {
	Steps  []int64  `json:"steps_ms"`
	Tenths []*int64 `json:"tenths"`
}

type fileEvent struct {
	At int64 `json:"at_ms"`
	Event
}

const schema = "preflight/samples/v1"

// MarshalJSON writes the compact form.
func (s *Series) MarshalJSON() ([]byte, error) {
	f := file{Schema: schema, Start: s.Start, Cards: []fileCard{}}
	for _, t := range s.Cards {
		c := fileCard{BDF: t.BDF, Name: t.Name, Steps: steps(t.At), Columns: map[string][]*int64{}}
		for m := range Metrics {
			if col := t.Column(m); slices.ContainsFunc(col, func(v float64) bool { return !math.IsNaN(v) }) {
				c.Columns[m.Key()] = tenths(col)
			}
		}
		f.Cards = append(f.Cards, c)
	}
	if len(s.CPU) > 0 {
		c := columnOf(s.CPU)
		f.CPU = &c
	}
	for _, x := range s.BMC {
		f.BMC = append(f.BMC, fileSensor{x.Name, x.Unit, columnOf(x.Points)})
	}
	for _, e := range s.Events {
		f.Events = append(f.Events, fileEvent{e.At.Milliseconds(), e})
	}
	return json.Marshal(f)
}

func columnOf(points []Point) fileColumn {
	at, v := make([]time.Duration, len(points)), make([]float64, len(points))
	for i, p := range points {
		at[i], v[i] = p.At, p.Value
	}
	return fileColumn{steps(at), tenths(v)}
}

// points reads a column back; what names it is told when it does not fit together.
func (c fileColumn) points(of string) ([]Point, error) {
	if len(c.Steps) != len(c.Tenths) || len(c.Steps) > mostSamples {
		return nil, fmt.Errorf("samples of %s: %d times, %d values", of, len(c.Steps), len(c.Tenths))
	}
	var out []Point
	at := times(c.Steps)
	for i, v := range c.Tenths {
		if v != nil {
			out = append(out, Point{at[i], float64(*v) / 10})
		}
	}
	return out, nil
}

func steps(at []time.Duration) []int64 {
	out := make([]int64, len(at))
	var before time.Duration
	for i, t := range at {
		out[i] = (t - before).Milliseconds()
		before = t
	}
	return out
}

func tenths(v []float64) []*int64 {
	out := make([]*int64, len(v))
	for i, x := range v {
		if !math.IsNaN(x) {
			n := int64(math.Round(x * 10))
			out[i] = &n
		}
	}
	return out
}

// UnmarshalJSON reads the compact form; what does not fit together is an error.
func (s *Series) UnmarshalJSON(raw []byte) error {
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f.Schema != schema {
		return fmt.Errorf("samples of schema %q; this version reads %s", f.Schema, schema)
	}
	if len(f.Cards) > mostCards || len(f.Events) > mostEvents {
		return fmt.Errorf("samples of %d cards with %d events: more than were ever written", len(f.Cards), len(f.Events))
	}
	out := Series{Start: f.Start}
	for _, c := range f.Cards {
		t, err := c.track()
		if err != nil {
			return err
		}
		out.Cards = append(out.Cards, t)
	}
	if f.CPU != nil {
		var err error
		if out.CPU, err = f.CPU.points("the processor"); err != nil {
			return err
		}
	}
	for _, x := range f.BMC[:min(len(f.BMC), mostSensors)] {
		points, err := x.points(x.Name)
		if err != nil {
			return err
		}
		out.BMC = append(out.BMC, &Sensed{Name: x.Name, Unit: x.Unit, Points: points})
	}
	for _, e := range f.Events {
		e.Event.At = time.Duration(e.At) * time.Millisecond
		out.Events = append(out.Events, e.Event)
	}
	*s = out
	return nil
}

func (c fileCard) track() (*Track, error) {
	t := &Track{BDF: c.BDF, Name: c.Name, At: times(c.Steps), Values: make([]Values, len(c.Steps))}
	if len(c.Steps) > mostSamples {
		return nil, fmt.Errorf("samples of card %s: %d, more than were ever written", c.BDF, len(c.Steps))
	}
	for i := range t.Values {
		t.Values[i] = NoValues()
	}
	for m := range Metrics {
		col, ok := c.Columns[m.Key()]
		if ok && len(col) != len(c.Steps) {
			return nil, fmt.Errorf("samples of card %s: %d times, %d values of %s", c.BDF, len(c.Steps), len(col), m.Key())
		}
		for i, v := range col {
			if v == nil {
				continue
			}
			if x := float64(*v) / 10; x >= metrics[m].least && x <= metrics[m].most { // as from a host: what cannot be is absent
				t.Values[i][m] = x
			}
		}
	}
	return t, nil
}

func times(steps []int64) []time.Duration {
	out := make([]time.Duration, len(steps))
	var at time.Duration
	for i, s := range steps {
		at += time.Duration(s) * time.Millisecond
		out[i] = at
	}
	return out
}
