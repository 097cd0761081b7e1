package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// acrossPhases are the phases of a job in their order: whoever is in the earliest is the one that all others wait for.
var acrossPhases = []string{
	wire.PhaseRequest, wire.PhaseLoadCUDA, wire.PhaseCUDAInit, wire.PhaseDevices, wire.PhaseLoadNCCL, wire.PhaseID, wire.PhaseContext, wire.PhaseMemory,
	wire.PhaseNCCLInit, wire.PhaseNCCLFirst, wire.PhaseNCCLMeasure, wire.PhaseNCCLEnd,
}

// heardOf is what one host said of the job.
type heardOf struct {
	mu    sync.Mutex
	lines []wire.Line
}

func (h *heardOf) hear(l wire.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l)
}

func (h *heardOf) all() []wire.Line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// reduce starts every host's ranks: the host of rank 0 tells the id, the controller hands it to the others. When one host
// fails or is lost, the others have a few seconds to say what they know; then all end.
func (m *meeting) reduce(ctx context.Context) bool {
	said := make([]*heardOf, len(m.sessions))
	replies := make([]reply, len(m.sessions))
	id, ended := make(chan string, 1), make(chan int, len(m.sessions))
	for i, s := range m.sessions {
		said[i] = &heardOf{}
		go func() {
			r := m.job(i)
			if i > 0 {
				select {
				case r.Across.ID = <-id:
					id <- r.Across.ID
				case <-ctx.Done():
				}
			}
			if r.Across.ID != "" || i == 0 {
				replies[i] = s.ask(r, func(l wire.Line) {
					said[i].hear(l)
					if l.ID != "" && i == 0 {
						id <- l.ID
					}
					if words := wire.Words(r, l); words != "" && m.o.Tell != nil {
						m.o.Tell(words)
					}
				})
			} else {
				replies[i] = reply{gone: true}
			}
			ended <- i
		}()
	}
	m.wait(ctx, replies, ended, id)
	return m.digest(replies, said)
}

// job is the order for one host.
func (m *meeting) job(i int) wire.Request {
	first := 0
	for k := range i {
		first += len(m.ordinals[k])
	}
	r := wire.Request{Command: wire.CommandAcross, Limit: m.o.limit().Seconds(), Cards: m.ordinals[i], LibNCCL: m.paths[i]}
	r.Across = &wire.AcrossRequest{FirstRank: first, Ranks: m.run.Ranks, Interface: m.run.Hosts[i].Interface}
	r.AllReduce = &wire.AllReduceRequest{Sizes: []int64{1 << 20, 64 << 20, 256 << 20}}
	if m.o.Small {
		r.AllReduce = &wire.AllReduceRequest{Sizes: []int64{1 << 20, 4 << 20}, Batches: 2}
	}
	return r
}

// wait is over when every host has answered, or a while after the first that failed.
func (m *meeting) wait(ctx context.Context, replies []reply, ended <-chan int, id chan<- string) {
	var late <-chan time.Time
	closed := false
	for n := 0; n < len(replies); {
		select {
		case i := <-ended:
			n++
			if failed := replies[i].gone || replies[i].answer.outcome != wire.OutcomeOK; failed && late == nil {
				late = time.After(lostGrace)
				if i == 0 && n < len(replies) { // whoever still waits for the id waits for nothing
					select {
					case id <- "":
					default:
					}
				}
			}
		case <-late:
			if !closed {
				closed, late = true, nil
				m.hangUp()
			}
		case <-ctx.Done():
			m.hangUp()
			late = nil
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// hangUp ends the stays that have not ended by themselves.
func (m *meeting) hangUp() {
	for _, s := range m.sessions {
		if !s.over() {
			s.c.hangUp()
		}
	}
}

// digest makes one result of what all hosts said.
func (m *meeting) digest(replies []reply, said []*heardOf) bool {
	bad := false
	for i, r := range replies {
		bad = bad || r.gone || r.answer.outcome != wire.OutcomeOK
		for _, l := range said[i].all() {
			if l.Log != nil && l.Log.Network != "" && m.run.Transport == "" {
				m.run.Transport = l.Log.Network
			}
		}
	}
	m.rows(said)
	if !bad {
		return true
	}
	return m.blame(replies, said)
}

// rows joins the rows of all hosts: the slowest host's time, everybody's wrong values.
func (m *meeting) rows(said []*heardOf) {
	at := map[int64]*facts.NCCLRow{}
	heard := map[int64]int{}
	for _, s := range said {
		for _, l := range s.all() {
			r := l.AllReduce
			if r == nil {
				continue
			}
			heard[r.Bytes]++
			row := at[r.Bytes]
			if row == nil {
				at[r.Bytes] = &facts.NCCLRow{Bytes: r.Bytes, TimeUS: r.TimeUS, AlgBW: r.AlgBW, BusBW: r.BusBW, Wrong: r.Wrong}
				continue
			}
			row.Wrong += r.Wrong
			if r.BusBW < row.BusBW {
				row.TimeUS, row.AlgBW, row.BusBW = r.TimeUS, r.AlgBW, r.BusBW
			}
		}
	}
	for bytes, row := range at {
		if heard[bytes] == len(said) { // a size that not all have told is not finished
			m.run.Rows = append(m.run.Rows, *row)
			m.run.Wrong = max(m.run.Wrong, 0) + row.Wrong
		}
	}
	slices.SortFunc(m.run.Rows, func(a, b facts.NCCLRow) int { return int(a.Bytes - b.Bytes) })
}

// blame finds the hosts at which it stuck first: one that told an error, else those in the earliest phase.
func (m *meeting) blame(replies []reply, said []*heardOf) bool {
	if m.run.Wrong > 0 {
		return true // wrong sums are an outcome of their own
	}
	earliest := len(acrossPhases)
	var where []string
	for i, s := range said {
		name := m.members[i].Rig
		at, failure := lastPhase(s.all())
		if failure != nil && failure.Key != wire.KeyHang && failure.Key != wire.KeyNCCLRemote {
			m.run.Phase = at
			return m.fail(facts.AcrossError, []string{name}, failure.Error())
		}
		if replies[i].gone && m.sessions[i].over() && !m.sessions[i].c.hungUp() {
			m.run.Phase = at
			return m.fail(facts.AcrossLost, []string{name}, m.sessions[i].why())
		}
		switch k := slices.Index(acrossPhases, at); {
		case replies[i].answer.outcome == wire.OutcomeOK || k < 0:
		case k < earliest:
			earliest, where = k, []string{name}
		case k == earliest:
			where = append(where, name)
		}
	}
	if earliest < len(acrossPhases) {
		m.run.Phase = acrossPhases[earliest]
	}
	return m.fail(facts.AcrossHang, where, fmt.Sprintf("no answer within %s", m.o.limit()))
}

// over says whether a stay has ended.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// lastPhase is where a host was last, and what it said was wrong there.
func lastPhase(lines []wire.Line) (phase string, failure *wire.Error) {
	phase = wire.PhaseRequest
	for _, l := range lines {
		switch l.State {
		case wire.StateBegin:
			if slices.Index(acrossPhases, l.Phase) >= 0 {
				phase = l.Phase
			}
		case wire.StateError, wire.StateTimeout:
			if l.Error != nil && (failure == nil || failure.Key == wire.KeyNCCLRemote) {
				phase, failure = l.Phase, l.Error
			}
		}
	}
	return phase, failure
}
