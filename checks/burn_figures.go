package checks

import (
	"preflight/internal/facts"
	"preflight/internal/sample"
)

// BurnFigure is a burn-in in a few numbers: what each card did while all of them were under load.
type BurnFigure struct {
	Seconds  float64         `json:"seconds"` // of load
	Asked    float64         `json:"asked"`   // s
	Ended    string          `json:"ended"`   // done, stopped, too-hot, xid, lost-card, lost-host, blind, hang, error
	Text     string          `json:"text,omitempty"`
	Quick    bool            `json:"quick"` // too short for heat soak
	Watts    float64         `json:"watts,omitempty"`
	Cards    []BurnCard      `json:"cards"`
	Caps     []facts.CapStep `json:"caps,omitempty"`
	Advice   float64         `json:"advice,omitempty"`   // W: the cap that a sweep recommends
	Restored string          `json:"restored,omitempty"` // of a sweep: what is not as it was
	Hot      float64         `json:"hot"`                // °C: from here it fails
}

// BurnCard is one card under load. Absent is what was not told.
type BurnCard struct {
	BDF       string  `json:"bdf"`
	Slot      string  `json:"slot,omitempty"` // where it sits, and beside whom, when it was declared
	Peak      float64 `json:"peak_c,omitempty"`
	Mean      float64 `json:"mean_c,omitempty"` // of the last quarter
	Watts     float64 `json:"watts,omitempty"`  // mean
	PeakWatts float64 `json:"peak_watts,omitempty"`
	Limit     float64 `json:"limit_watts,omitempty"`
	Clock     float64 `json:"clock_mhz,omitempty"` // mean
	Held      int     `json:"held_back"`           // samples in which heat or a brake held it back
	Samples   int     `json:"samples"`
	Kernel    string  `json:"kernel,omitempty"`
	TFLOPS    float64 `json:"tflops,omitempty"`
	GBs       float64 `json:"gbs,omitempty"`
	Rounds    int64   `json:"rounds"`
	Different int64   `json:"different"`
	GiB       float64 `json:"gib"` // of memory under check
	Passes    int64   `json:"passes"`
	Wrong     int64   `json:"wrong"`
}

// burnFigure is nil where no card was under load.
func burnFigure(s Subject) *BurnFigure {
	b := s.Host.BurnIn
	if b == nil || !b.Ran() {
		return nil
	}
	f := &BurnFigure{
		Seconds: b.End - b.Begin, Asked: b.Asked, Ended: b.Ended, Text: b.Text, Quick: b.Quick, Cards: []BurnCard{},
		Caps: b.Caps, Advice: b.Advice, Restored: b.Restored, Hot: s.Policy.BurnHot,
	}
	at := map[string]int{}
	card := func(bdf string) *BurnCard {
		i, seen := at[bdf]
		if !seen {
			i = len(f.Cards)
			at[bdf] = i
			f.Cards = append(f.Cards, BurnCard{BDF: bdf, Slot: slotOf(s, bdf)})
		}
		return &f.Cards[i]
	}
	for _, t := range burnTracks(s, b) {
		c := card(t.bdf)
		steady := t.steady()
		c.Peak, c.Mean = given(t.peak(sample.Temperature)), given(t.span(t.seconds*3/4, t.seconds).mean(sample.Temperature))
		c.Watts, c.PeakWatts, c.Limit = given(steady.mean(sample.Power)), given(steady.peak(sample.Power)), given(steady.peak(sample.PowerLimit))
		c.Clock, c.Held, c.Samples = given(steady.mean(sample.CoreClock)), t.samplesWith(sample.ReasonBad), len(t.values)
		f.Watts += c.Watts
	}
	for _, k := range b.Cards {
		c := card(k.BDF)
		c.Kernel, c.TFLOPS, c.GBs, c.Rounds, c.Different = k.Kernel, k.TFLOPS, k.GBs, k.Rounds, k.Different
		c.GiB, c.Passes, c.Wrong = float64(k.Bytes)/(1<<30), k.Passes, k.Wrong
	}
	return f
}

// given is a figure, or 0 when it was not told.
func given(v float64, ok bool) float64 {
	if !ok {
		return 0
	}
	return v
}
