//go:build linux

package main

import (
	"fmt"
	"time"

	"preflight/internal/probe/wire"
)

// burn loads every card, and then puts all of them under load at the same moment: a power supply that cannot take the step
// shows it there.
func (s *session) burn() error {
	ask := *s.job.Request.Burn
	for _, d := range []struct {
		v         *float64
		otherwise float64
	}{{&ask.Memory, wire.BurnMemory}, {&ask.Kernel, wire.BurnKernel}, {&ask.Report, wire.BurnReport}} {
		if *d.v == 0 {
			*d.v = d.otherwise
		}
	}
	if err := s.burnable(); err != nil {
		return s.phase(wire.Line{Phase: wire.PhaseBurnLoad}, func(*wire.Line) error { return err })
	}
	cards, err := s.openCards()
	if err != nil {
		return err
	}
	loads := make([]*burnCard, 0, len(cards))
	for _, c := range cards {
		l := &burnCard{card: c, session: s, ask: ask}
		if err := s.phase(on(wire.PhaseBurnLoad, c.Ordinal), func(*wire.Line) error { return l.prepare() }); err != nil {
			return err
		}
		loads = append(loads, l)
	}
	return s.phase(wire.Line{Phase: wire.PhaseBurn}, func(*wire.Line) error { return s.keepBusy(loads, ask) })
}

// keepBusy gives every card its next kernel as soon as the last one is done, until the time is over.
func (s *session) keepBusy(loads []*burnCard, ask wire.BurnRequest) error {
	began := time.Now()
	until := began.Add(seconds(ask.Seconds))
	told := began
	for running := true; running; {
		running = false
		moved := false
		over := !time.Now().Before(until)
		for _, l := range loads {
			busy, did, err := l.turn(over)
			if err != nil {
				s.report(loads, began)
				return s.broke(l, began, err)
			}
			running, moved = running || busy, moved || did
		}
		if now := time.Now(); running && now.Sub(told) >= seconds(ask.Report) {
			s.report(loads, began)
			told = now
		}
		if !moved {
			time.Sleep(turnEvery)
		}
	}
	s.report(loads, began)
	return nil
}

// turnEvery is how often the cards are asked when none of them is done: far below the length of a kernel.
const turnEvery = 500 * time.Microsecond

// report tells of every card.
func (s *session) report(loads []*burnCard, began time.Time) {
	for _, l := range loads {
		line := on(wire.PhaseBurn, l.Ordinal)
		line.State, line.Burn = wire.StateResult, l.figures(began)
		s.say(line)
	}
}

// broke tells which card ended the load.
func (s *session) broke(l *burnCard, began time.Time, err error) error {
	line := on(wire.PhaseBurn, l.Ordinal)
	line.State, line.Burn, line.Error = wire.StateResult, l.figures(began), asError(err)
	s.say(line)
	return fmt.Errorf("card %d: %w", l.Ordinal, err)
}
