//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"preflight/internal/probe/wire"
)

// session is one worker at work. Everything in it happens on the first thread.
type session struct {
	job   job
	lines io.Writer
	cu    *cuda
	all   []wire.Device // as CUDA numbers them
	cards []*card       // opened
	told  bool          // an error of a phase
}

// work does one job and returns the exit code. The process ends without giving memory back card by card: the driver
// does that at its end, and a way out that calls into a driver which may hang is none.
func work() int {
	noCore()
	in := bufio.NewReaderSize(os.Stdin, lineLimit)
	raw, err := in.ReadSlice('\n')
	if err != nil {
		return exitCut
	}
	s := &session{lines: os.NewFile(linesFD, "lines")}
	if err := json.Unmarshal(raw, &s.job); err != nil {
		return 2
	}
	if !dieWithParent(unix.SIGKILL, s.job.Parent) {
		return exitCut
	}
	unix.CloseOnExec(logFD)
	unix.CloseOnExec(linesFD)
	alarm(seconds(s.job.Limit) + alarmSlack)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(exitCut) // the supervisor is gone
	}()
	if err := s.do(); err != nil {
		if !s.told {
			s.say(wire.Line{Phase: wire.PhaseExit, State: wire.StateError, Error: asError(err)})
		}
		return exits[wire.OutcomeError]
	}
	return 0
}

func (s *session) do() error {
	err := s.discover()
	if s.job.Request.Command == wire.CommandHello {
		s.hello()
		return err
	}
	if err != nil {
		return err
	}
	switch s.job.Request.Command {
	case wire.CommandLinks:
		return s.links()
	case wire.CommandPeers:
		return s.peers()
	case wire.CommandBurn:
		return s.burn()
	}
	return s.allReduce()
}

// say writes one line to the supervisor. When that is gone, so is the reason to go on.
func (s *session) say(l wire.Line) {
	raw, err := json.Marshal(l)
	if err == nil {
		_, err = s.lines.Write(append(raw, '\n'))
	}
	if err != nil {
		os.Exit(exitCut)
	}
}

// phase tells the begin and the end of f, which may add to the line of the end.
func (s *session) phase(at wire.Line, f func(end *wire.Line) error) error {
	begin := at
	begin.State = wire.StateBegin
	s.say(begin)
	end := at
	end.State = wire.StateEnd
	if err := f(&end); err != nil {
		at.State, at.Error = wire.StateError, asError(err)
		s.say(at)
		s.told = true
		return err
	}
	s.say(end)
	return nil
}

// asError is an error with its key, for the wire.
func asError(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return &wire.Error{Key: wire.KeyHelper, API: "helper", Text: err.Error()}
}

// on is a line about one card.
func on(phase string, card int) wire.Line { return wire.Line{Phase: phase, Card: &card} }

// between is a line about a pair of cards.
func between(phase string, from, to int) wire.Line {
	return wire.Line{Phase: phase, Card: &from, Peer: &to}
}
