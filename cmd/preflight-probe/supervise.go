//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"preflight/internal/probe/wire"
)

// supervisor runs one request: it starts workers, passes on what they say, and ends those that hang.
type supervisor struct {
	out     io.Writer
	gone    <-chan struct{}
	signals <-chan os.Signal
	start   time.Time
	end     time.Time // of the whole request
	request wire.Request
	outcome string
	events  chan event
	workers []*worker
	rows    map[int64][]wire.AllReduce // rows of the ranks, by size, until all have told theirs
	peers   peerProgress
	leaving bool // the output is closed
	heard   <-chan []byte
	lastly  time.Time // when the controller was heard last
}

// event is something that a worker did: it said a line, or it ended.
type event struct {
	from  *worker
	line  *wire.Line
	ended bool
}

func newSupervisor(out io.Writer, gone <-chan struct{}, signals <-chan os.Signal) *supervisor {
	return &supervisor{
		out: out, gone: gone, signals: signals, start: time.Now(), outcome: wire.OutcomeOK,
		events: make(chan event, 64), rows: map[int64][]wire.AllReduce{},
	}
}

// say writes one line to the controller.
func (s *supervisor) say(l wire.Line) {
	l.T = float64(time.Since(s.start).Round(time.Millisecond)) / float64(time.Second)
	raw, err := json.Marshal(l)
	if err != nil {
		raw = []byte(`{"phase":"request","state":"error","error":{"key":"helper","text":"a line could not be written as JSON"}}`)
	}
	if _, err := s.out.Write(append(raw, '\n')); err != nil {
		s.leaving = true
	}
}

// worsen keeps the worst outcome.
func (s *supervisor) worsen(outcome string) {
	if exits[outcome] > exits[s.outcome] {
		s.outcome = outcome
	}
}

// run carries the request to its end and says false when the controller went away meanwhile. Afterwards no process of
// it is left, except one that is stuck in the kernel.
func (s *supervisor) run() bool {
	defer s.tellLogs()
	s.lastly = time.Now()
	for _, j := range s.firstJobs() {
		s.launch(j)
	}
	for s.running() > 0 {
		timer := time.NewTimer(time.Until(s.nextDeadline()))
		select {
		case e := <-s.events:
			s.handle(e)
		case <-timer.C:
			s.expire()
		case <-s.heardOf():
			s.lastly = time.Now()
		case <-s.gone:
			s.leaving = true
		case <-s.signals:
			s.leaving = true
		}
		timer.Stop()
		if s.leaving {
			s.stopAll()
			return false
		}
	}
	return true
}

func (s *supervisor) running() int {
	n := 0
	for _, w := range s.workers {
		if !w.ended {
			n++
		}
	}
	return n
}

// handle takes what a worker said or did.
func (s *supervisor) handle(e event) {
	w := e.from
	if e.ended {
		w.ended = true
		s.closed(w)
		return
	}
	l := *e.line
	if w.job.Ranks > 0 {
		l.Rank = &w.job.Rank
	}
	switch l.State {
	case wire.StateBegin:
		l.Limit = wire.PhaseLimit(s.request, l.Phase)
		w.phase, w.deadline = &l, time.Now().Add(seconds(l.Limit))
	case wire.StateEnd:
		w.between(s.request)
	case wire.StateError:
		w.between(s.request)
		if s.request.Command != wire.CommandHello || l.Phase != wire.PhaseLoadNCCL { // a host without NCCL still says hello
			s.worsen(wire.OutcomeError)
			s.hurry()
		}
	case wire.StateResult:
		if l.Error != nil {
			s.worsen(wire.OutcomeError)
		}
	}
	s.peers.saw(l)
	if l.AllReduce != nil && w.job.Ranks > 0 {
		if !s.merge(&l) {
			return
		}
	}
	s.say(l)
	if l.ID != "" {
		for _, j := range s.otherRanks(l.ID) {
			s.launch(j)
		}
	}
}

// grace is what the other ranks have to tell their own errors once one failed.
const grace = 2 * time.Second

// hurry shortens the deadlines of the workers that wait for one that failed.
func (s *supervisor) hurry() {
	if len(s.workers) < 2 {
		return
	}
	if t := time.Now().Add(grace); t.Before(s.end) {
		s.end = t
	}
}

// closed looks at how a worker ended.
func (s *supervisor) closed(w *worker) {
	code, said := w.exit()
	switch {
	case code == 0 || code == exits[wire.OutcomeError] && w.phase == nil:
		return
	case w.killed:
		return
	}
	l := w.where(wire.StateError)
	w.phase = nil
	l.Error = &wire.Error{Key: wire.KeyCrash, API: "helper", Code: code, Text: said}
	s.say(l)
	s.worsen(wire.OutcomeCrash)
	s.hurry()
}

// merge waits for the row of every rank here and makes one of them: the slowest rank's time, all wrong elements.
func (s *supervisor) merge(l *wire.Line) bool {
	row := *l.AllReduce
	rows := append(s.rows[row.Bytes], row)
	s.rows[row.Bytes] = rows
	if len(rows) < len(s.workers) {
		return false
	}
	delete(s.rows, row.Bytes)
	wrong := int64(0)
	for _, r := range rows {
		wrong += r.Wrong
		if r.BusBW < row.BusBW {
			row = r
		}
	}
	row.Wrong = wrong
	l.AllReduce, l.Rank, l.Error = &row, nil, wrongSums(row)
	return true
}

// nextDeadline is the earliest at which something must have happened.
func (s *supervisor) nextDeadline() time.Time {
	at := s.end
	if silence := s.silence(); silence > 0 && s.lastly.Add(silence).Before(at) {
		at = s.lastly.Add(silence)
	}
	for _, w := range s.workers {
		if !w.ended && w.deadline.Before(at) {
			at = w.deadline
		}
	}
	return at
}

// together is how far apart ranks that wait for each other begin a phase: they hang together.
const together = time.Second

// expire ends the request, or goes on behind a hung pair of cards: that is a result like any other.
func (s *supervisor) expire() {
	now := time.Now()
	if silence := s.silence(); silence > 0 && now.Sub(s.lastly) >= silence {
		s.say(wire.Line{Phase: wire.PhaseBurn, State: wire.StateError, Error: &wire.Error{Key: wire.KeySilent, API: "helper", Text: fmt.Sprintf("nothing was heard of the controller for %g s", silence.Seconds())}})
		s.leaving = true
		return
	}
	all := !now.Before(s.end)
	if !all && now.Before(s.nextDeadline()) {
		return
	}
	hung := false
	for _, w := range s.workers {
		if w.ended {
			continue
		}
		l := w.where(wire.StateCut)
		over := !now.Add(together).Before(w.deadline)
		if over || all && s.outcome == wire.OutcomeOK {
			hung = true
			l.State, l.Error = wire.StateTimeout, s.hang(l.Phase, over)
		}
		s.peers.hung(&l)
		s.say(l)
	}
	if hung {
		s.worsen(wire.OutcomeTimeout)
	}
	if again := s.stopAll() && !all; again {
		if job, ok := s.peers.next(s.request); ok {
			s.launch(job)
		}
	}
}

func (s *supervisor) hang(phase string, over bool) *wire.Error {
	e := &wire.Error{Key: wire.KeyHang, API: "helper"}
	e.Text = fmt.Sprintf("%s did not end within %g s", phase, wire.PhaseLimit(s.request, phase))
	if !over {
		e.Text = fmt.Sprintf("%s did not end within the limit of the request", phase)
	}
	return e
}
