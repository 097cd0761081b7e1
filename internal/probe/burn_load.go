package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// loadSlack is what a burn may take beyond its load: libraries, contexts, kernels and memory of eight cards.
const loadSlack = 5 * time.Minute

// heartbeat is how often the host hears that somebody still watches.
const heartbeat = 400 * time.Millisecond

// load has the helper burn, and ends when it does, when a sample says so, or when nothing is heard any more.
func (x *burning) load(ctx context.Context) error {
	nonce := newNonce()
	total := x.b.Load + loadSlack
	script := fillNative(x.h, nonce, total)
	ctx, cancel := context.WithTimeoutCause(ctx, total+grace, errors.New("the host did not answer in time"))
	defer cancel()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	c := &conversation{nonce: nonce, find: Helper, tell: x.o.Tell}
	if x.o.helper != nil {
		c.find = x.o.helper
	}
	c.order = func(c *conversation) error { return x.orders(ctx, c) }
	x.mu.Lock()
	x.stop = c.hangUp
	x.mu.Unlock()
	watched := make(chan struct{})
	go func() { x.watchdog(ctx, func() { lost(errLost) }, watched) }()
	err := x.host.Talk(ctx, script, c.talk)
	close(watched)
	x.mu.Lock()
	x.stop = nil
	if x.result.Begin > 0 && x.result.End == 0 {
		x.result.End = x.now()
	}
	begun := x.result.Begin > 0
	x.mu.Unlock()
	return x.outcome(ctx, c, begun, err)
}

// outcome decides how the load ended, where nothing said so yet.
func (x *burning) outcome(ctx context.Context, c *conversation, begun bool, err error) error {
	switch {
	case x.ended() != "":
		return nil
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLost):
		x.end(facts.BurnStopped, "", "interrupted")
		return context.Cause(ctx)
	case begun && (err != nil || errors.Is(context.Cause(ctx), errLost)):
		x.end(facts.BurnLostHost, "", firstNonEmpty(reason(err), "nothing was heard of the host any more"))
		return nil
	case err != nil:
		x.end(facts.BurnError, "", err.Error())
		return err
	case c.ended.How == wire.EndedNever:
		x.end(facts.BurnMissing, "", c.ended.Why)
	default:
		x.end(facts.BurnError, "", firstNonEmpty(c.silence(Options{}), "the helper ended before its time: "+c.ended.How))
	}
	return nil
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errLost is the cause of a context that ended because a host went silent.
var errLost = errors.New("nothing was heard of the host any more")

// orders asks what is there, and then for the burn, with a sign of life twice a second.
func (x *burning) orders(ctx context.Context, c *conversation) error {
	hello, gone, err := c.put(wire.Request{Command: wire.CommandHello, Limit: helloLimit}, nil)
	if gone || err != nil {
		return err
	}
	if hello.outcome != wire.OutcomeOK {
		return x.refused(hello)
	}
	addresses := map[int]string{}
	for _, l := range hello.lines {
		if l.Hello != nil {
			for _, d := range l.Hello.Devices {
				addresses[d.Ordinal] = strings.ToLower(d.BDF)
			}
		}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := c.in.Write([]byte("\n")); err != nil {
					return
				}
			case <-done:
				return
			}
		}
	}()
	r := wire.Request{Command: wire.CommandBurn, Limit: (x.b.Load + loadSlack).Seconds(), Burn: &wire.BurnRequest{Seconds: x.b.Load.Seconds(), Memory: x.b.Memory, Silence: x.b.Silence.Seconds()}}
	a, gone, err := c.put(r, func(l wire.Line) { x.line(ctx, l, addresses) })
	if gone || err != nil {
		return err
	}
	if a.outcome == wire.OutcomeOK {
		x.end(facts.BurnDone, "", "")
		return nil
	}
	return x.refused(a)
}

// refused takes the first error of an answer for how it ended.
func (x *burning) refused(a answer) error {
	for _, l := range a.lines {
		if l.Error == nil {
			continue
		}
		word := facts.BurnError
		switch {
		case l.Error.Key == wire.KeyHang || l.Error.Key == wire.KeyWedged:
			word = facts.BurnHang
		case wire.Lacking(l.Error.Key) || l.Error.Key == wire.KeyNoJIT || l.Error.Key == wire.KeyPTX || l.Error.Key == wire.KeyLittleMemory || l.Error.Key == wire.KeyNoDevice:
			word = facts.BurnMissing
		}
		if word == facts.BurnError {
			x.explained(2*x.b.Every + time.Second)
		}
		x.end(word, l.Error.Key, helperWords(l.Error))
		return nil
	}
	x.end(facts.BurnError, "", "the helper ended with "+a.outcome)
	return nil
}

// line takes what the helper says while it burns.
func (x *burning) line(ctx context.Context, l wire.Line, addresses map[int]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case l.Phase == wire.PhaseBurn && l.State == wire.StateBegin:
		x.result.Begin = x.now()
		go x.sweep.run(ctx, x)
	case l.Phase == wire.PhaseBurn && l.State == wire.StateEnd:
		x.result.End = x.now()
	case l.Error != nil && l.Error.Key == wire.KeySilent:
		x.result.Ended, x.result.Key, x.result.Text = facts.BurnStopped, l.Error.Key, l.Error.Text
	}
	if l.Burn == nil || l.Card == nil {
		return
	}
	b := l.Burn
	card := &facts.BurnInCard{
		BDF: addresses[*l.Card], Kernel: b.Kernel, Rounds: b.Rounds, Different: b.Different, Bytes: b.Bytes, Passes: b.Passes,
		Wrong: b.Wrong, First: b.First, Bits: b.Bits, TFLOPS: b.TFLOPS, GBs: b.GBs,
	}
	if l.Error != nil {
		card.Error, card.Key = helperWords(l.Error), l.Error.Key
	}
	x.cards[*l.Card] = card
	x.totals = append(x.totals, capReport{at: x.now(), card: *l.Card, tflops: b.TFLOPS})
}

// now is the time since the first sample, seconds. x.mu is held.
func (x *burning) now() float64 {
	if x.first.IsZero() {
		return 0
	}
	return time.Since(x.first).Seconds()
}

func sortCards(cards []facts.BurnInCard) {
	slices.SortFunc(cards, func(a, b facts.BurnInCard) int { return strings.Compare(a.BDF, b.BDF) })
}

// progress is what a person who waits is told.
func (x *burning) progress() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, _ := hottest(&x.series)
	return fmt.Sprintf("under load %.0f of %.0f s, hottest %.0f °C, %.0f W", max(0, x.now()-x.result.Begin), x.b.Load.Seconds(), t, drawn(&x.series))
}

// explained waits for a sample that says more than an error of the driver does: a lost card is named by the kernel or by
// nvidia-smi, a moment later.
func (x *burning) explained(limit time.Duration) {
	for until := time.Now().Add(limit); x.ended() == "" && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
}
