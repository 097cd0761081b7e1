package probe

import (
	"context"
	"fmt"
	"time"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// heard takes a sample, and ends the load at once where it says that going on would do harm.
func (x *burning) heard(it sample.Item) error {
	if x.b.Heard != nil {
		x.b.Heard(it)
	}
	x.mu.Lock()
	x.series.Add(it)
	if it.Card != nil {
		x.lastAt = time.Now()
		if x.first.IsZero() {
			x.first = x.lastAt
			close(x.sampled)
		}
	}
	stop := x.stop
	x.mu.Unlock()
	if word, text := danger(it, x.b); word != "" {
		x.end(word, "", text)
		if stop != nil {
			stop()
		}
	}
	return nil
}

// danger says why a sample forbids load, "" when it does not.
func danger(it sample.Item, b BurnOptions) (word, text string) {
	switch {
	case it.Card != nil && it.Card.Lost:
		return facts.BurnLostCard, fmt.Sprintf("%s: the driver answers that the card is lost", it.Card.BDF)
	case it.Card != nil:
		if t, ok := it.Card.Values.Get(sample.Temperature); ok && t >= b.Core {
			return facts.BurnHot, fmt.Sprintf("%s reached %.0f °C; the load is aborted at %.0f", it.Card.BDF, t, b.Core)
		}
		if t, ok := it.Card.Values.Get(sample.MemoryTemp); ok && t >= b.MemoryTemp {
			return facts.BurnHot, fmt.Sprintf("%s: its memory reached %.0f °C; the load is aborted at %.0f", it.Card.BDF, t, b.MemoryTemp)
		}
	case it.Kernel != nil && it.Kernel.Xid == fellOffTheBus:
		return facts.BurnXid, it.Kernel.Text
	}
	return "", ""
}

// fellOffTheBus is the Xid of a card that the driver cannot reach any more.
const fellOffTheBus = 79

// watchdog ends the load when the cards are not sampled any more, and notices a host that says nothing at all. It also tells
// whoever waits how far the load is.
func (x *burning) watchdog(ctx context.Context, lost func(), over <-chan struct{}) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.mu.Lock()
		begun, blind, stop := x.result.Begin > 0, time.Since(x.lastAt), x.stop
		x.mu.Unlock()
		if !begun {
			continue
		}
		x.o.tell(x.progress())
		if blind < blindAfter {
			continue
		}
		if stop != nil {
			stop()
		}
		select { // a host that is there still says how the helper ended
		case <-over:
			x.end(facts.BurnBlind, "", fmt.Sprintf("nvidia-smi gave no sample for %.0f s", blind.Seconds()))
		case <-time.After(blindAfter):
			x.end(facts.BurnLostHost, "", fmt.Sprintf("nothing was heard of the host for %.0f s", time.Since(x.lastAt).Seconds()))
			lost()
		}
		return
	}
}

// hottest is the highest of the cards' last core temperatures, °C.
func hottest(s *sample.Series) (float64, bool) {
	return lastOf(s, sample.Temperature, func(a, b float64) float64 { return max(a, b) })
}

// drawn is what the cards draw together by their last samples, W.
func drawn(s *sample.Series) float64 {
	w, _ := lastOf(s, sample.Power, func(a, b float64) float64 { return a + b })
	return w
}

func lastOf(s *sample.Series, m sample.Metric, join func(a, b float64) float64) (float64, bool) {
	out, known := 0.0, false
	for _, t := range s.Cards {
		if len(t.Values) == 0 {
			continue
		}
		if v, ok := t.Values[len(t.Values)-1].Get(m); ok {
			if known {
				v = join(out, v)
			}
			out, known = v, true
		}
	}
	return out, known
}
