package watch

import (
	"fmt"
	"strings"
	"time"

	"preflight/internal/sample"
)

// Level is how badly a rig wants somebody to look.
type Level int

// The levels, the worst last.
const (
	Well Level = iota
	Look
	Bad
)

// Policy is from where on something is told. Judgements, all of them: the defaults are those of burn-in.
type Policy struct {
	Hot       float64       // core, °C: bad above
	Warm      float64       // core, °C: look above
	MemoryHot float64       // °C: look above
	Late      time.Duration // without a sample: look
	Busy      float64       // utilization, %: a card that idles while all others are above is worth a look

	Xid func(number int) (Level, string) // what an Xid means; nil: all are bad, and have no words
}

// DefaultPolicy is what stands in docs/watch.md.
func DefaultPolicy(interval time.Duration) Policy {
	return Policy{Hot: 85, Warm: 80, MemoryHot: 95, Late: max(5*interval, 15*time.Second), Busy: 80}
}

// Sign is one thing that is wrong with a rig, or one of its cards.
type Sign struct {
	Level Level
	Card  string // "" of the whole rig
	Text  string
}

// Signs are what is wrong, the worst first within a rig and a card.
func (p Policy) Signs(r Rig, now time.Time) []Sign {
	switch {
	case r.Phase == Away:
		return []Sign{{Bad, "", "not reached: " + r.Why}}
	case r.Phase == Connecting:
		return nil
	case len(r.Cards) == 0 && r.Why != "":
		return []Sign{{Bad, "", r.Why}}
	}
	var out []Sign
	quiet := now.Sub(r.LastAt)
	if late := len(r.Cards) > 0 && !r.LastAt.IsZero() && quiet > p.Late; late {
		out = append(out, Sign{Bad, "", fmt.Sprintf("no sample for %s: nvidia-smi hangs or died%s", quiet.Round(time.Second), said(r.Why))})
	} else if r.Why != "" {
		out = append(out, Sign{Bad, "", r.Why})
	}
	if r.Links > 0 {
		out = append(out, Sign{Look, "", counted(r.Links)})
	}
	idle := p.leftBehind(r)
	for i, c := range r.Cards {
		out = append(out, p.card(c, r.LastAt)...)
		if i == idle {
			out = append(out, Sign{Look, c.BDF, "idles while the others work: a hang?"})
		}
	}
	return out
}

func said(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// card are the signs of one card; last is when any card of its rig was seen.
func (p Policy) card(c Card, last time.Time) []Sign {
	var out []Sign
	add := func(l Level, format string, args ...any) {
		out = append(out, Sign{l, c.BDF, fmt.Sprintf(format, args...)})
	}
	if c.Lost || !c.Seen.IsZero() && last.Sub(c.Seen) > p.Late {
		add(Bad, "lost: the driver no longer answers for it")
	}
	for _, n := range c.Xids {
		level, words := Bad, ""
		if p.Xid != nil {
			level, words = p.Xid(n)
		}
		add(level, "%s", strings.TrimSpace(fmt.Sprintf("Xid %d %s", n, words)))
	}
	for _, b := range []struct {
		bits uint64
		text string
	}{
		{sample.ReasonHot, "slowed by heat"}, {sample.ReasonPowerBrake, "slowed by a power brake: supply or board"}, {sample.ReasonHWSlowdown, "slowed by hardware"},
	} {
		if c.Values.Has(b.bits) {
			add(Bad, "%s", b.text)
			break // the slowdown by hardware is set beside its cause
		}
	}
	switch t, ok := c.Values.Get(sample.Temperature); {
	case ok && t > p.Hot:
		add(Bad, "%.0f °C", t)
	case ok && t > p.Warm:
		add(Look, "%.0f °C", t)
	}
	if t, ok := c.Values.Get(sample.MemoryTemp); ok && t > p.MemoryHot {
		add(Look, "memory %.0f °C", t)
	}
	if n, ok := c.Values.Get(sample.ECC); ok && n > 0 {
		add(Bad, "%.0f uncorrected memory errors", n)
	}
	if w, ok := c.Values.Get(sample.LinkWidth); ok && w < c.Widest {
		add(Bad, "link fell from x%.0f to x%.0f", c.Widest, w)
	}
	return out
}

// leftBehind is the one card that does nothing while all the others work; -1 for none.
func (p Policy) leftBehind(r Rig) int {
	found := -1
	for i, c := range r.Cards {
		u, ok := c.Values.Get(sample.Utilization)
		switch {
		case !ok:
			return -1
		case u < 1 && found < 0:
			found = i
		case u < p.Busy:
			return -1
		}
	}
	if len(r.Cards) < 2 {
		return -1
	}
	return found
}

// Worst is the level of some signs.
func Worst(signs []Sign) Level {
	l := Well
	for _, s := range signs {
		l = max(l, s.Level)
	}
	return l
}

// counted tells how often the kernel complained about links.
func counted(n int) string {
	if n == 1 {
		return "the kernel tells an error of a link"
	}
	return fmt.Sprintf("the kernel tells %d errors of links", n)
}
