//go:build linux

package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"preflight/internal/probe/wire"
)

// Defaults of an all-reduce. On PCIe the plateau begins at about 32 MB.
var reduceSizes = []int64{1 << 20, 64 << 20, 256 << 20}

const (
	reduceWarmUp     = 5
	reduceIterations = 20
	reduceBatches    = 5
)

// reduction is an all-reduce of the ranks of this process.
type reduction struct {
	session *session
	lib     *nccl
	ask     wire.AllReduceRequest
	ranks   int // of the whole job
	layout  string
	comms   []*comm
	host    buffer
	want    []float32
}

// allReduce runs the request's sizes over the cards: all of them by this process, or one as a rank.
func (s *session) allReduce() error {
	r := &reduction{session: s, layout: wire.LayoutSingle, ranks: s.job.Ranks}
	if p := s.job.Request.AllReduce; p != nil {
		r.ask = *p
	}
	r.defaults()
	ordinals := []int{s.job.Card}
	if r.ranks == 0 {
		if ordinals = s.job.Request.Cards; len(ordinals) == 0 {
			for i := range s.all {
				ordinals = append(ordinals, i)
			}
		}
		r.ranks = len(ordinals)
	} else {
		r.layout = wire.LayoutRanks
	}
	if s.job.Request.Command != wire.CommandAcross {
		if err := s.manyCards(); err != nil {
			return err
		}
	}
	var err error
	if r.lib, err = s.loadNCCL(); err != nil {
		return err
	}
	id, err := r.identify()
	if err != nil {
		return err
	}
	for _, o := range ordinals {
		c, err := s.openCard(o)
		if err != nil {
			return err
		}
		r.comms = append(r.comms, &comm{card: c})
	}
	for _, step := range []func() error{r.memory, func() error { return r.initialise(id) }, r.first} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, size := range r.ask.Sizes {
		if err := r.size(size); err != nil {
			return err
		}
	}
	return s.phase(wire.Line{Phase: wire.PhaseNCCLEnd}, func(*wire.Line) error {
		for _, c := range r.comms {
			if err := r.lib.check("ncclCommDestroy", r.lib.destroy(c.handle)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reduction) defaults() {
	if len(r.ask.Sizes) == 0 {
		r.ask.Sizes = reduceSizes
	}
	for _, d := range []struct {
		value *int
		or    int
	}{{&r.ask.WarmUp, reduceWarmUp}, {&r.ask.Iterations, reduceIterations}, {&r.ask.Batches, reduceBatches}} {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
}

// identify makes the id of a job of ranks, or reads it. Whoever makes it must live as long as the job: a thread of
// NCCL in this process answers the other ranks.
func (r *reduction) identify() (uniqueID, error) {
	var id uniqueID
	j := r.session.job
	switch {
	case j.Ranks == 0:
		return id, nil
	case j.ID == "":
		err := r.session.phase(wire.Line{Phase: wire.PhaseID}, func(end *wire.Line) error {
			err := r.lib.check("ncclGetUniqueId", r.lib.newID(&id))
			end.ID = hex.EncodeToString(id.b[:])
			return err
		})
		return id, err
	}
	raw, err := hex.DecodeString(j.ID)
	if err != nil || len(raw) != len(id.b) {
		return id, r.session.phase(wire.Line{Phase: wire.PhaseID}, func(*wire.Line) error {
			return &wire.Error{Key: wire.KeyBadRequest, API: "helper", Text: "the id of the job is not 128 bytes of hex"}
		})
	}
	copy(id.b[:], raw)
	return id, nil
}

// memory takes buffers for the largest size on every card, and one period of numbers on the host.
func (r *reduction) memory() error {
	s := r.session
	for _, c := range r.comms {
		err := s.phase(on(wire.PhaseMemory, c.card.Ordinal), func(*wire.Line) error {
			var err error
			if c.send, err = s.onCard(c.card, slices.Max(r.ask.Sizes)); err != nil {
				return err
			}
			if c.recv, err = s.onCard(c.card, slices.Max(r.ask.Sizes)); err != nil {
				return err
			}
			if r.host.ptr == nil {
				r.host, err = s.pin(reducePeriod * 4)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	r.want = sums(r.ranks)
	return nil
}

func (r *reduction) initialise(id uniqueID) error {
	s := r.session
	return s.phase(wire.Line{Phase: wire.PhaseNCCLInit}, func(*wire.Line) error {
		if r.layout == wire.LayoutRanks {
			c := r.comms[0]
			if err := s.use(c.card); err != nil {
				return err
			}
			return r.lib.check("ncclCommInitRank", r.lib.initRank(&c.handle, int32(r.ranks), id, int32(s.job.Rank)))
		}
		handles, devices := make([]uintptr, len(r.comms)), make([]int32, len(r.comms))
		for i, c := range r.comms {
			devices[i] = int32(c.card.Ordinal)
		}
		if err := r.lib.check("ncclCommInitAll", r.lib.initAll(&handles[0], int32(len(handles)), &devices[0])); err != nil {
			return err
		}
		for i, c := range r.comms {
			c.handle = handles[i]
		}
		return nil
	})
}

// rank of a communicator of this process.
func (r *reduction) rank(i int) int { return r.session.job.Rank + i }

// first runs one collective of the smallest size. Since NCCL 2.22 the connections are made here, and P2P that does
// not work hangs here.
func (r *reduction) first() error {
	return r.session.phase(wire.Line{Phase: wire.PhaseNCCLFirst}, func(*wire.Line) error {
		size := slices.Min(r.ask.Sizes)
		if err := r.fill(size); err != nil {
			return err
		}
		_, err := r.batch(size, 1, ncclSum)
		return err
	})
}

// fill writes every rank's numbers.
func (r *reduction) fill(size int64) error {
	for i, c := range r.comms {
		terms(r.host.floats(), r.rank(i))
		for offset := int64(0); offset < size; offset += r.host.bytes {
			if err := r.session.upload(c.card, c.send+uint64(offset), r.host, min(r.host.bytes, size-offset)); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch runs n all-reduces one after the other and returns the seconds of the slowest rank of this process.
func (r *reduction) batch(size int64, n int, op int32) (float64, error) {
	s := r.session
	for _, c := range r.comms {
		if err := s.use(c.card); err != nil {
			return 0, err
		}
		if err := s.record(c.card.first, c.card.in); err != nil {
			return 0, err
		}
	}
	for range n {
		if err := s.together(r.lib, r.comms, size/4, op); err != nil {
			return 0, err
		}
	}
	for _, c := range r.comms {
		if err := s.use(c.card); err != nil {
			return 0, err
		}
		if err := s.record(c.card.last, c.card.in); err != nil {
			return 0, err
		}
	}
	slowest := 0.0
	for _, c := range r.comms {
		if err := s.wait(r.lib.asyncErrors(r.comms), c.card.last); err != nil {
			return 0, err
		}
		if err := s.use(c.card); err != nil {
			return 0, err
		}
		t, err := s.took(c.card.first, c.card.last)
		if err != nil {
			return 0, err
		}
		slowest = max(slowest, t)
	}
	return slowest, nil
}

// size measures one size: a first round to learn how long it takes, warm-up, timed batches, and the check of the sums
// that the last all-reduce left.
func (r *reduction) size(size int64) error {
	s := r.session
	return s.phase(wire.Line{Phase: wire.PhaseNCCLMeasure}, func(end *wire.Line) error {
		if err := r.fill(size); err != nil {
			return err
		}
		begin := time.Now()
		if _, err := r.batch(size, 1, ncclSum); err != nil {
			return err
		}
		once, err := r.agree(time.Since(begin).Seconds())
		if err != nil {
			return err
		}
		plan := planRounds(once, wire.PhaseLimit(s.job.Request, wire.PhaseNCCLMeasure)/3, r.ask)
		if err := r.fill(size); err != nil { // agree used the buffers
			return err
		}
		if _, err := r.batch(size, plan.WarmUp, ncclSum); err != nil {
			return err
		}
		for _, c := range r.comms {
			if err := s.poison(c.card, c.recv, size); err != nil {
				return err
			}
		}
		var rates []float64
		for range plan.Batches {
			t, err := r.batch(size, plan.Iterations, ncclSum)
			if err != nil {
				return err
			}
			rates = append(rates, rate(size*int64(plan.Iterations), t))
		}
		row := reduceRow(r.layout, r.ranks, size, rates)
		if row.Wrong, err = r.wrong(size); err != nil {
			return err
		}
		line := wire.Line{Phase: end.Phase, State: wire.StateResult, AllReduce: &row, Error: wrongSums(row)}
		s.say(line)
		return nil
	})
}

// reduceRow applies nccl-tests' formula to the rates of the batches, GB/s.
func reduceRow(layout string, ranks int, size int64, rates []float64) wire.AllReduce {
	st := summarise(rates)
	factor := 2 * float64(ranks-1) / float64(ranks)
	row := wire.AllReduce{
		Layout: layout, Ranks: ranks, Bytes: size, AlgBW: st.best, BusBW: st.best * factor,
		Median: st.median * factor, Worst: st.worst * factor, Spread: st.spread,
	}
	if st.best > 0 {
		row.TimeUS = float64(size) / (st.best * giga) * 1e6
	}
	return row
}

// planRounds fits the rounds into a budget of seconds: on a sick link one all-reduce takes as long as a hundred on a
// good one, and slow must not look like hung.
func planRounds(once, budget float64, ask wire.AllReduceRequest) wire.AllReduceRequest {
	fits := func() bool { return once*float64(ask.WarmUp+ask.Iterations*ask.Batches) <= budget }
	for _, v := range []struct {
		value *int
		least int
	}{{&ask.Iterations, 2}, {&ask.WarmUp, 1}, {&ask.Batches, 3}, {&ask.Iterations, 1}, {&ask.Batches, 1}} {
		for !fits() && *v.value > v.least {
			*v.value = max(v.least, *v.value/2)
		}
	}
	return ask
}

// agree gives every rank of the job the same figure, the largest: ranks that counted different rounds would wait for
// each other for ever. The figure travels by an all-reduce of one element.
func (r *reduction) agree(seconds float64) (float64, error) {
	s := r.session
	for _, c := range r.comms {
		r.host.floats()[0] = float32(seconds)
		if err := s.upload(c.card, c.send, r.host, 4); err != nil {
			return 0, err
		}
	}
	if _, err := r.batch(4, 1, ncclMax); err != nil {
		return 0, err
	}
	c := r.comms[0]
	if err := s.download(c.card, r.host, c.recv, 4); err != nil {
		return 0, err
	}
	got := r.host.floats()[0]
	if !(got > 0 && got < 3600) { // a sum that is wrong already: its check follows
		got = float32(max(seconds, time.Microsecond.Seconds()))
	}
	return float64(got), nil
}

// wrong counts the wrong elements of all cards of this process.
func (r *reduction) wrong(size int64) (int64, error) {
	var wrong int64
	for _, c := range r.comms {
		for offset := int64(0); offset < size; offset += r.host.bytes {
			n := min(r.host.bytes, size-offset)
			if err := r.session.download(c.card, r.host, c.recv+uint64(offset), n); err != nil {
				return 0, fmt.Errorf("reading sums back: %w", err)
			}
			wrong += wrongFloats(r.host.floats()[:n/4], r.want[:n/4])
		}
	}
	return wrong, nil
}
