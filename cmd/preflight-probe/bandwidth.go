//go:build linux

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"preflight/internal/probe/wire"
)

// Defaults of the copies between host and cards. On a Gen4 x16 link 64 MiB take 2.7 ms; 4 MiB show the cost of a
// start.
var linkSizes = []int64{4 << 20, 64 << 20}

const (
	linkRepeats = 10
	allDepth    = 4 // copies that each card has under way in a timed round of all cards, so that they overlap
)

// lane is one card's memory for copies in both directions.
type lane struct {
	*card
	hostIn, hostOut buffer
	cardIn, cardOut uint64
}

// links measures each card alone, all cards at once, and then keeps them all busy as long as asked.
func (s *session) links() error {
	ask := wire.LinksRequest{}
	if p := s.job.Request.Links; p != nil {
		ask = *p
	}
	if len(ask.Sizes) == 0 {
		ask.Sizes = linkSizes
	}
	if ask.Repeats <= 0 {
		ask.Repeats = linkRepeats
	}
	cards, err := s.openCards()
	if err != nil {
		return err
	}
	lanes, err := s.lanes(cards, slices.Max(ask.Sizes))
	if err != nil {
		return err
	}
	for _, l := range lanes {
		err := s.phase(on(wire.PhaseLinkAlone, l.Ordinal), func(*wire.Line) error {
			for _, size := range ask.Sizes {
				if err := s.copies(wire.PhaseLinkAlone, []lane{l}, size, ask.Repeats, 1); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err = s.phase(wire.Line{Phase: wire.PhaseLinkAll}, func(*wire.Line) error {
		return s.copies(wire.PhaseLinkAll, lanes, slices.Max(ask.Sizes), ask.Repeats, allDepth)
	})
	if err != nil || ask.Busy <= 0 {
		return err
	}
	return s.phase(wire.Line{Phase: wire.PhaseLinkBusy}, func(*wire.Line) error {
		until := time.Now().Add(seconds(ask.Busy))
		rounds := make([][]flow, len(lanes))
		for time.Now().Before(until) {
			flows, err := s.round(lanes, wire.BothWays, slices.Max(ask.Sizes), allDepth)
			if err != nil {
				return err
			}
			for i, f := range flows {
				rounds[i] = append(rounds[i], f)
			}
		}
		s.tell(wire.PhaseLinkBusy, lanes, wire.BothWays, slices.Max(ask.Sizes), rounds)
		return nil
	})
}

// lanes takes memory for every card, on the host near to it: pages lie on the NUMA node of the thread that asks.
func (s *session) lanes(cards []*card, bytes int64) ([]lane, error) {
	var before unix.CPUSet
	saved := unix.SchedGetaffinity(0, &before) == nil
	var out []lane
	for _, c := range cards {
		l := lane{card: c}
		err := s.phase(on(wire.PhaseMemory, c.Ordinal), func(*wire.Line) error {
			near(c.BDF)
			var err error
			if l.cardIn, err = s.onCard(c, bytes); err != nil {
				return err
			}
			if l.cardOut, err = s.onCard(c, bytes); err != nil {
				return err
			}
			if l.hostIn, err = s.pin(bytes); err != nil {
				return err
			}
			l.hostOut, err = s.pin(bytes)
			return err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	if saved {
		_ = unix.SchedSetaffinity(0, &before)
	}
	return out, nil
}

// near moves this thread to the processors of a card's NUMA node, where the kernel tells them.
func near(bdf string) {
	raw, err := os.ReadFile("/sys/bus/pci/devices/" + bdf + "/local_cpulist")
	if err != nil {
		return
	}
	var set unix.CPUSet
	for _, cpu := range cpuList(string(raw)) {
		set.Set(cpu)
	}
	if set.Count() > 0 {
		_ = unix.SchedSetaffinity(0, &set)
	}
}

// cpuList reads "0-7,64-71"; what is not such a list is empty.
func cpuList(s string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		first, err1 := strconv.Atoi(a)
		last, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || first < 0 || last < first || last >= 1024 {
			return nil
		}
		for i := first; i <= last; i++ {
			out = append(out, i)
		}
	}
	return out
}

// flow is what one card moved in one round, GB/s.
type flow struct{ in, out float64 }

// copies measures the three directions at one size.
func (s *session) copies(phase string, lanes []lane, bytes int64, repeats, depth int) error {
	for _, direction := range []string{wire.HostToCard, wire.CardToHost, wire.BothWays} {
		rounds := make([][]flow, len(lanes))
		for i := range repeats + 1 {
			flows, err := s.round(lanes, direction, bytes, depth)
			if err != nil {
				return err
			}
			for j, f := range flows {
				if i > 0 { // the first round wakes the link and maps the pages
					rounds[j] = append(rounds[j], f)
				}
			}
		}
		s.tell(phase, lanes, direction, bytes, rounds)
	}
	return nil
}

// round copies once on all lanes at the same time.
func (s *session) round(lanes []lane, direction string, bytes int64, depth int) ([]flow, error) {
	in, out := direction != wire.CardToHost, direction != wire.HostToCard
	for _, l := range lanes {
		if err := s.start(l, in, out, bytes, depth); err != nil {
			return nil, err
		}
	}
	flows := make([]flow, len(lanes))
	for i, l := range lanes {
		if err := s.use(l.card); err != nil {
			return nil, err
		}
		for _, way := range []struct {
			on   bool
			last uintptr
			to   *float64
		}{{in, l.last, &flows[i].in}, {out, l.last2, &flows[i].out}} {
			if !way.on {
				continue
			}
			if err := s.wait(nil, way.last); err != nil {
				return nil, err
			}
			t, err := s.took(l.first, way.last)
			if err != nil {
				return nil, err
			}
			*way.to = rate(bytes*int64(depth), t)
		}
	}
	return flows, nil
}

// start puts the copies of one lane into its streams. Both begin at one event.
func (s *session) start(l lane, in, out bool, bytes int64, depth int) error {
	if err := s.use(l.card); err != nil {
		return err
	}
	if err := s.record(l.first, l.card.in); err != nil {
		return err
	}
	if err := s.cu.check("cuStreamWaitEvent", s.cu.streamWait(l.card.out, l.first, 0)); err != nil {
		return err
	}
	for range depth {
		if in {
			if err := s.cu.check("cuMemcpyHtoDAsync", s.cu.toCard(l.cardIn, l.hostIn.ptr, uint64(bytes), l.card.in)); err != nil {
				return err
			}
		}
		if out {
			if err := s.cu.check("cuMemcpyDtoHAsync", s.cu.fromCard(l.hostOut.ptr, l.cardOut, uint64(bytes), l.card.out)); err != nil {
				return err
			}
		}
	}
	if err := s.record(l.last, l.card.in); err != nil {
		return err
	}
	return s.record(l.last2, l.card.out)
}

// tell writes a line for each card.
func (s *session) tell(phase string, lanes []lane, direction string, bytes int64, rounds [][]flow) {
	for i, l := range lanes {
		var sum, in, out []float64
		for _, f := range rounds[i] {
			sum, in, out = append(sum, f.in+f.out), append(in, f.in), append(out, f.out)
		}
		st := summarise(sum)
		b := wire.Bandwidth{Direction: direction, Bytes: bytes, Cards: len(lanes), Best: st.best, Median: st.median, Worst: st.worst, Spread: st.spread}
		if direction == wire.BothWays {
			b.In, b.Out = summarise(in).median, summarise(out).median
		}
		line := on(phase, l.Ordinal)
		line.State, line.Bandwidth = wire.StateResult, &b
		s.say(line)
	}
}
