package checks

import (
	"fmt"
	"math"
	"slices"
	"time"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// burnTrack is what was sampled of one card while all cards were under load.
type burnTrack struct {
	bdf     string
	at      []float64 // s since the load began
	values  []sample.Values
	seconds float64 // of load
}

// startUp is how long a card takes from the first kernel to steady clocks and power, s; soak is from when on its temperature
// counts, s.
const (
	startUp = 10
	soak    = 60
)

// burnTracks are the cards that train, under load.
func burnTracks(s Subject, b *facts.BurnIn) []burnTrack {
	if b.Series == nil {
		return nil
	}
	var out []burnTrack
	for _, t := range b.Series.Cards {
		if !slices.ContainsFunc(s.Host.Cards, func(c facts.Card) bool { return c.BDF == t.BDF }) {
			continue
		}
		track := burnTrack{bdf: t.BDF, seconds: b.End - b.Begin}
		for i, at := range t.At {
			if sec := at.Seconds() - b.Begin; sec >= 0 && at.Seconds() <= b.End {
				track.at, track.values = append(track.at, sec), append(track.values, t.Values[i])
			}
		}
		out = append(out, track)
	}
	return out
}

// span is the part of a track between two times, s since the load began.
func (t burnTrack) span(from, to float64) burnTrack {
	out := burnTrack{bdf: t.bdf, seconds: t.seconds}
	for i, at := range t.at {
		if at >= from && at <= to {
			out.at, out.values = append(out.at, at), append(out.values, t.values[i])
		}
	}
	return out
}

// steady is a track without the first seconds, in which clocks and power are on their way; of a very short load the later part.
func (t burnTrack) steady() burnTrack { return t.span(min(startUp, t.seconds/2), t.seconds) }

// mean of a metric; false when it was never given.
func (t burnTrack) mean(m sample.Metric) (float64, bool) {
	sum, n := 0.0, 0
	for _, v := range t.values {
		if x, ok := v.Get(m); ok {
			sum += x
			n++
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// peak of a metric; false when it was never given.
func (t burnTrack) peak(m sample.Metric) (float64, bool) {
	out, ok := math.Inf(-1), false
	for _, v := range t.values {
		if x, given := v.Get(m); given {
			out, ok = max(out, x), true
		}
	}
	return out, ok
}

// samplesWith counts the samples in which any of some reasons was set.
func (t burnTrack) samplesWith(bits uint64) int {
	n := 0
	for _, v := range t.values {
		if v.Has(bits) {
			n++
		}
	}
	return n
}

// unburnt is the finding of a check when there was no load to judge; false when there was. A burn-in that somebody stopped, or
// that went blind, is judged by what it found; that it found nothing is no pass.
func unburnt(s Subject) (Finding, bool) {
	b := s.Host.BurnIn
	const run = "put the cards under load: preflight probe burn-in"
	switch {
	case b == nil:
		return unknown(rigSubject, "%s", firstOf(s.Host.Gaps[facts.KindBurnIn], "no burn-in was run")).knownBy(run), true
	case b.Ended == facts.BurnBusy:
		return unknown(rigSubject, "no burn-in: %s", b.Text).because(evs(b.Source, b.Text)).knownBy("run it when the cards are idle"), true
	case !b.Ran() && b.Ended == facts.BurnHot: // hot before any load
		return Finding{}, false
	case !b.Ran() && b.Ended == facts.BurnMissing && b.Text != "": // to run it again as it is would end the same way
		return unknown(rigSubject, "no burn-in: %s", b.Text).because(evs(b.Source, b.Ended)).knownBy("mend that first, and run it again"), true
	case !b.Ran():
		return unknown(rigSubject, "no burn-in: %s", firstOf(b.Text, "it did not begin")).because(evs(b.Source, b.Ended)).knownBy(run), true
	}
	return Finding{}, false
}

// cutShort says why a burn-in without a fault is no pass: it did not last.
func cutShort(b *facts.BurnIn) (Finding, bool) {
	switch b.Ended {
	case facts.BurnDone:
		return Finding{}, false
	case facts.BurnStopped, facts.BurnBlind:
		return unknown(rigSubject, "the load ended after %s: %s", loadTime(b), firstOf(b.Text, "it was stopped")).knownBy("run it again to its end"), true
	}
	return unknown(rigSubject, "the load ended after %s, see burn-in.power", loadTime(b)).knownBy("mend that first, and run it again"), true
}

// loadTime is how long the load lasted, in words.
func loadTime(b *facts.BurnIn) string {
	d := time.Duration((b.End - b.Begin) * float64(time.Second))
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// worst gives findings of cards, or else the one for the whole rig.
func orWhole(cards []Finding, whole Finding) []Finding {
	if len(cards) > 0 {
		return cards
	}
	return []Finding{whole}
}
