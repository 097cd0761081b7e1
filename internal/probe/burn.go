package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
	"preflight/internal/sample"
)

// BurnOptions are what a user may choose of a burn-in.
type BurnOptions struct {
	Load       time.Duration // of all cards
	Quick      bool          // too short for heat soak
	Every      time.Duration // between two samples
	Cool       time.Duration // idle time before the load
	CoolDown   time.Duration // idle time after it, at most: it ends once the cards are as cool as before
	Memory     float64       // share of the free memory; 0 means the helper's own
	Core       float64       // °C at which the load is aborted
	MemoryTemp float64       // the same of a card's memory
	Silence    time.Duration // without a word from here the host stops the load
	Caps       []float64     // W: a power cap sweep, in this order; empty for none

	Started func(context.Context) (func(), error) // asked before the load begins, for circuits that several rigs share; nil for none
	Heard   func(sample.Item)                     // hears every sample; nil for nobody
}

// Policy of a burn-in. The abort temperatures lie above what a sound card reaches and below where it would shut itself off
// (GeForce: about 90 °C slowdown of the core, 105 to 110 °C of GDDR6X).
const (
	BurnCore       = 90
	BurnMemoryTemp = 105
	BurnSilence    = 2 * time.Second
)

// blindAfter is how long samples may stay away under load; lostAfter the same of samples and helper together.
const (
	blindAfter  = 20 * time.Second
	firstSample = 40 * time.Second // nvidia-smi without persistence mode takes seconds a card
	coolEnough  = 5.0              // K above the baseline
)

// burning is one burn-in of one host.
type burning struct {
	host Host
	h    *facts.Host
	o    Options
	b    BurnOptions

	mu      sync.Mutex
	result  facts.BurnIn
	series  sample.Series
	first   time.Time // of the first sample, our clock
	lastAt  time.Time // of the last sample, our clock
	cards   map[int]*facts.BurnInCard
	totals  []capReport // of a sweep: what all cards computed, over time
	sweep   *sweep
	stop    func() // ends the load; nil before and after
	sampled chan struct{}
}

// burnIn puts a host's cards under load and adds what was seen to its snapshot. What goes wrong on the host is a result, not an
// error; an error says that the host did not answer at all.
func burnIn(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) error {
	x := &burning{host: host, h: h, o: o, b: *o.Burn, cards: map[int]*facts.BurnInCard{}, sweep: &sweep{}, sampled: make(chan struct{})}
	x.result = facts.BurnIn{Quick: x.b.Quick, Asked: x.b.Load.Seconds(), Abort: x.b.Core, Source: "probe:burn-in"}
	err := x.whole(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.series.Cards) > 0 {
		x.result.Series = &x.series
	}
	for _, c := range x.cards {
		x.result.Cards = append(x.result.Cards, *c)
	}
	sortCards(x.result.Cards)
	if x.result.Ran() {
		x.result.Caps, x.result.Advice = x.judgeCaps(x.sweep)
	}
	raw, jerr := json.Marshal(x.result)
	s.Files[facts.ProbeBurnInPath] = raw
	return errors.Join(err, jerr)
}

// whole goes: can it run; samples; a cool baseline; the load; the way back to cool.
func (x *burning) whole(ctx context.Context) error {
	if word, why := notBurnable(x.h, x.o); word != "" {
		x.end(word, "", why)
		return nil
	}
	var err error
	if x.sweep, err = x.openSweep(ctx); err != nil {
		x.end(facts.BurnMissing, "", err.Error())
		return nil
	}
	reading, enough := context.WithCancel(ctx)
	defer enough()
	read := make(chan error, 1)
	go func() { read <- sample.Read(reading, x.host, x.b.Every, x.heard) }()
	if err := x.baseline(ctx, read); err != nil {
		return err
	}
	if x.ended() != "" {
		return nil
	}
	if x.b.Started != nil {
		x.o.tell("waiting for a circuit that other rigs are on")
		release, err := x.b.Started(ctx)
		if err != nil {
			x.end(facts.BurnMissing, "", err.Error())
			return nil
		}
		defer release()
	}
	err = x.load(ctx)
	x.result.Restored = "the host went silent before its power limits were put back; a boot sets them to their defaults"
	if len(x.b.Caps) == 0 || x.ended() != facts.BurnLostHost {
		x.result.Restored = x.sweep.close(ctx)
	}
	x.coolDown(ctx, read)
	enough()
	return err
}

func (o Options) tell(what string) {
	if o.Tell != nil {
		o.Tell(what)
	}
}

// end notes how it ended. The first word stays: what follows from it comes later.
func (x *burning) end(word, key, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.result.Ended == "" {
		x.result.Ended, x.result.Key, x.result.Text = word, key, text
	}
}

func (x *burning) ended() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result.Ended
}

// notBurnable says why a host gets no load: its cards are at work, or there is no driver to ask.
func notBurnable(h *facts.Host, o Options) (word, why string) {
	attached := 0
	for _, c := range h.Cards {
		if c.Index.Known() {
			attached++
		}
	}
	switch {
	case h.Driver.SMIHung.Value:
		return facts.BurnMissing, "the driver does not answer; load would hang as well"
	case attached == 0:
		return facts.BurnMissing, "the driver shows no card"
	}
	if busy := Busy(h); busy != "" { // --force is no excuse: load would ruin what runs, and what runs the result
		return facts.BurnBusy, busy
	}
	return "", ""
}

// baseline samples the idle cards. Without samples there is no load: nobody would see the heat.
func (x *burning) baseline(ctx context.Context, read <-chan error) error {
	x.o.tell("sampling the cool cards")
	wait := time.NewTimer(firstSample)
	defer wait.Stop()
	select {
	case <-x.sampled:
	case err := <-read:
		x.end(facts.BurnMissing, "", "the cards cannot be sampled: "+err.Error())
		return nil
	case <-wait.C:
		x.end(facts.BurnMissing, "", fmt.Sprintf("nvidia-smi gave no sample within %.0f s", firstSample.Seconds()))
		return nil
	case <-ctx.Done():
		x.end(facts.BurnStopped, "", "interrupted before the load")
		return context.Cause(ctx)
	}
	select {
	case <-time.After(x.b.Cool):
	case err := <-read:
		x.end(facts.BurnMissing, "", "the cards cannot be sampled: "+err.Error())
	case <-ctx.Done():
		x.end(facts.BurnStopped, "", "interrupted before the load")
		return context.Cause(ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result.Baseline, _ = hottest(&x.series)
	return nil
}

// coolDown samples on until the cards are about as cool as they were, so that what is measured next is not measured hot, and
// the series shows how fast the heat leaves.
func (x *burning) coolDown(ctx context.Context, read <-chan error) {
	if ended := x.ended(); ended == facts.BurnLostHost || ctx.Err() != nil {
		return
	}
	x.o.tell("cooling down")
	over := time.NewTimer(x.b.CoolDown)
	defer over.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			x.mu.Lock()
			t, known := hottest(&x.series)
			x.mu.Unlock()
			if known && t <= x.result.Baseline+coolEnough {
				return
			}
		case <-over.C:
			return
		case <-read:
			return
		case <-ctx.Done():
			return
		}
	}
}

// helperWords is why the helper refused, in words for a person.
func helperWords(e *wire.Error) string {
	text := e.Error()
	switch e.Key {
	case wire.KeyNoJIT:
		text += " (libnvidia-ptxjitcompiler.so.1 is missing)"
	case wire.KeyPTX:
		text += " (the driver does not take the kernels)"
	}
	return strings.TrimSpace(text)
}
