package watch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"preflight/internal/sample"
)

// Phase is what the connection to a rig is at.
type Phase int

// The phases of a rig.
const (
	Connecting Phase = iota
	Live             // the reader runs
	Away             // the connection was lost, or never made
)

// Card is what was seen last of one card.
type Card struct {
	BDF, Name string
	Index     int
	Values    sample.Values
	Seen      time.Time // this machine's clock
	Lost      bool      // the driver says so, or it is missing beside its neighbours
	Widest    float64   // lanes, the most that was seen
	Xids      []int     // since the watch began, each once
}

// Rig is one rig as it is now.
type Rig struct {
	Name    string
	Phase   Phase
	Since   time.Time // of the phase
	Why     string    // why it is away, or what nvidia-smi said when it ended
	Cards   []Card    // by index, then address
	CPU     float64   // °C
	HasCPU  bool
	Links   int       // lines of the kernel about links, since the watch began
	LastAt  time.Time // of the last sample, this machine's clock
	Notes   []string  // what cannot be watched
	Sensors map[string]sample.Sensor
}

// Fleet is all rigs. Its methods may be called from several goroutines.
type Fleet struct {
	mu   sync.Mutex
	rigs []*Rig
	now  func() time.Time
}

// New makes a fleet of rigs that are being connected to.
func New(names []string, now func() time.Time) *Fleet {
	f := &Fleet{now: now}
	for _, n := range names {
		f.rigs = append(f.rigs, &Rig{Name: n, Since: now(), Sensors: map[string]sample.Sensor{}})
	}
	return f
}

// Enter notes that a rig's connection is at another phase.
func (f *Fleet) Enter(i int, p Phase, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rigs[i]
	if r.Phase != p {
		r.Phase, r.Since = p, f.now()
	}
	r.Why = why
}

// Hear notes what a rig's reader said.
func (f *Fleet) Hear(i int, it sample.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rigs[i]
	switch {
	case it.Card != nil:
		r.card(*it.Card, f.now())
	case it.CPU != nil:
		r.CPU, r.HasCPU = *it.CPU, true
	case it.Kernel != nil && it.Kernel.Xid > 0:
		r.xid(*it.Kernel)
	case it.Kernel != nil:
		r.Links++
	case it.Sensor != nil && len(r.Sensors) < mostSensors:
		r.Sensors[it.Sensor.Name] = *it.Sensor
	case it.Ended != "":
		r.Why = it.Ended
	case it.Note != "" && !slices.Contains(r.Notes, it.Note) && len(r.Notes) < mostSensors:
		r.Notes = append(r.Notes, it.Note)
	}
}

// Bounds on what a host can make us keep.
const (
	mostSensors = 32
	mostCards   = 64
	mostXids    = 16
)

func (r *Rig) find(bdf string) *Card {
	for i := range r.Cards {
		if r.Cards[i].BDF == bdf {
			return &r.Cards[i]
		}
	}
	return nil
}

func (r *Rig) card(s sample.Card, now time.Time) {
	c := r.find(s.BDF)
	if c == nil {
		if len(r.Cards) >= mostCards {
			return
		}
		r.Cards = append(r.Cards, Card{BDF: s.BDF, Index: s.Index})
		slices.SortFunc(r.Cards, func(a, b Card) int {
			if a.Index != b.Index {
				return a.Index - b.Index
			}
			return strings.Compare(a.BDF, b.BDF)
		})
		c = r.find(s.BDF)
	}
	c.Name, c.Values, c.Seen, c.Lost = s.Name, s.Values, now, s.Lost
	if w, ok := s.Values.Get(sample.LinkWidth); ok {
		c.Widest = max(c.Widest, w)
	}
	r.LastAt, r.Why = now, ""
}

func (r *Rig) xid(k sample.Kernel) {
	c := r.find(k.BDF)
	if c == nil {
		if len(r.Cards) >= mostCards || k.BDF == "" {
			return
		}
		r.Cards = append(r.Cards, Card{BDF: k.BDF, Index: mostCards, Values: sample.NoValues()})
		c = r.find(k.BDF)
	}
	if !slices.Contains(c.Xids, k.Xid) && len(c.Xids) < mostXids {
		c.Xids = append(c.Xids, k.Xid)
	}
}

// Rigs are copies of all rigs, in the order in which they were declared.
func (f *Fleet) Rigs() []Rig {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Rig, len(f.rigs))
	for i, r := range f.rigs {
		out[i] = *r
		out[i].Cards = slices.Clone(r.Cards)
		out[i].Notes = slices.Clone(r.Notes)
		for j := range out[i].Cards {
			out[i].Cards[j].Xids = slices.Clone(r.Cards[j].Xids)
		}
		out[i].Sensors = nil
		if len(r.Sensors) > 0 {
			out[i].Sensors = map[string]sample.Sensor{}
			for k, v := range r.Sensors {
				out[i].Sensors[k] = v
			}
		}
	}
	return out
}

// Model names what a rig has: "8× GeForce RTX 4090".
func (r Rig) Model() string {
	var names []string
	count := map[string]int{}
	for _, c := range r.Cards {
		if c.Name == "" {
			continue
		}
		if count[c.Name]++; count[c.Name] == 1 {
			names = append(names, c.Name)
		}
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%d× %s", count[n], n)
	}
	return strings.Join(names, ", ")
}
