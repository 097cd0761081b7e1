//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"preflight/internal/probe/wire"
)

const (
	// idleLimit is how long the helper waits for a next request.
	idleLimit = 10 * time.Minute
	// alarmSlack is how far the alarm lies behind a request's own limit.
	alarmSlack = 20 * time.Second
	// lineLimit bounds one line in either direction, bytes.
	lineLimit = 1 << 20
)

// exits are the helper's exit codes by outcome.
var exits = map[string]int{
	wire.OutcomeOK: 0, wire.OutcomeError: 3, wire.OutcomeTimeout: 4, wire.OutcomeCrash: 5, wire.OutcomeWedged: 6,
}

// exitCut is the exit code when the input ended, or a signal came, during a request.
const exitCut = 7

// serve answers requests until the input ends.
func serve(in io.Reader, out io.Writer) int {
	parent := os.Getppid()
	if !dieWithParent(unix.SIGTERM, parent) {
		return exitCut
	}
	noCore()
	signal.Ignore(unix.SIGPIPE) // a closed output is seen as an error of the write
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	requests, gone := make(chan []byte, 16), make(chan struct{})
	go readRequests(in, requests, gone)

	outcome := wire.OutcomeOK
	listening := &door{}
	defer listening.close()
	for {
		alarm(idleLimit)
		select {
		case raw := <-requests:
			if len(bytes.TrimSpace(raw)) == 0 && raw != nil {
				continue // a sign of life, see supervisor.silent
			}
			s := newSupervisor(out, gone, signals)
			s.heard = requests
			switch {
			case outcome == wire.OutcomeWedged:
				s.refuse(wire.OutcomeWedged, wire.Error{Key: wire.KeyWedged, Text: "an earlier request left a process stuck in the driver; the host needs a reboot"})
			default:
				outcome = s.answer(raw, listening)
			}
			if outcome == "" {
				return exitCut
			}
		case <-signals:
			return exitCut
		case <-gone:
			return exits[outcome]
		}
	}
}

// readRequests hands on lines and closes gone at the end of the input. A last line without its end is no request:
// whoever wrote it is gone.
func readRequests(in io.Reader, requests chan<- []byte, gone chan<- struct{}) {
	defer close(gone)
	r := bufio.NewReaderSize(in, lineLimit)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				requests <- nil // told as a bad request
			}
			return
		}
		requests <- append([]byte{}, line...)
	}
}

// answer runs one request and returns its outcome, "" when the controller went away.
func (s *supervisor) answer(raw []byte, listening *door) string {
	var r wire.Request
	err := json.Unmarshal(raw, &r)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return s.refuse(wire.OutcomeError, wire.Error{Key: wire.KeyBadRequest, Text: err.Error()})
	}
	limit := r.Limit
	if limit <= 0 {
		limit = wire.DefaultLimit
	}
	s.request, s.end = r, s.start.Add(seconds(limit))
	alarm(seconds(limit) + alarmSlack)
	if r.Command == wire.CommandReach {
		return s.reach(listening)
	}
	listening.close()
	if !s.run() {
		return ""
	}
	s.say(wire.Line{Phase: wire.PhaseDone, State: wire.StateEnd, Outcome: s.outcome})
	return s.outcome
}

// refuse answers a request that cannot be run.
func (s *supervisor) refuse(outcome string, e wire.Error) string {
	s.say(wire.Line{Phase: wire.PhaseRequest, State: wire.StateError, Error: &e})
	s.say(wire.Line{Phase: wire.PhaseDone, State: wire.StateEnd, Outcome: outcome})
	return outcome
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
