//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"preflight/internal/probe/wire"
)

// hungAfter is how long a piece of work of a fraction of a second may take until it counts as hung.
const hungAfter = 20 * time.Second

// longestKernel is how long a kernel may become when clocks fall, in multiples of the asked length, until it is shortened.
const longestKernel = 1.6

// turn looks at both lanes, takes what is done and gives out what is next. When the time is over nothing new is begun, and busy
// tells whether something is still under way; did whether anything changed.
func (l *burnCard) turn(over bool) (busy, did bool, err error) {
	for _, lane := range []*burnLane{&l.compute, &l.traffic} {
		if lane.busy {
			done, err := l.settled(lane)
			if err != nil {
				return false, false, err
			}
			if !done {
				busy = true
				continue
			}
			lane.busy, did = false, true
			if err := l.take(lane); err != nil {
				return false, false, err
			}
		}
		if over {
			continue
		}
		if err := l.give(lane); err != nil {
			return false, false, err
		}
		lane.busy, lane.since, busy, did = true, time.Now(), true, true
	}
	return busy, did, nil
}

// settled asks whether a lane's work is done. It never waits in the driver.
func (l *burnCard) settled(lane *burnLane) (bool, error) {
	s := l.session
	if err := s.use(l.card); err != nil {
		return false, err
	}
	switch code := s.cu.eventQuery(lane.done); code {
	case cudaSuccess:
		return true, nil
	case cudaNotReady:
		if t := time.Since(lane.since); t > hungAfter {
			return false, &wire.Error{Key: wire.KeyHang, API: "helper", Text: fmt.Sprintf("work of about %g s did not end within %.0f s", l.ask.Kernel, t.Seconds())}
		}
		return false, nil
	default:
		return false, s.cu.check("cuEventQuery", code)
	}
}

// give puts a lane's next piece of work into its stream.
func (l *burnCard) give(lane *burnLane) error {
	s := l.session
	if err := s.use(l.card); err != nil {
		return err
	}
	if err := s.record(lane.start, lane.stream); err != nil {
		return err
	}
	piece := l.computePiece
	if lane == &l.traffic {
		piece = l.trafficPiece
	}
	if err := piece(); err != nil {
		return err
	}
	if err := s.cu.check("cuMemcpyDtoHAsync", s.cu.fromCard(lane.seen.ptr, lane.found, foundWords*4, lane.stream)); err != nil {
		return err
	}
	return s.record(lane.done, lane.stream)
}

// computePiece is one kernel, and the comparison of its results with the first one's.
func (l *burnCard) computePiece() error {
	s, lane := l.session, &l.compute
	to := l.result
	if !l.referenced {
		to = l.reference
	}
	if err := s.enqueue(l.kernels.burn, l.blocks, lane.stream, to, uint64(l.iterations)); err != nil {
		return err
	}
	if err := s.record(lane.end, lane.stream); err != nil {
		return err
	}
	if !l.referenced {
		return nil
	}
	return s.enqueue(l.compare, l.blocks, lane.stream, l.reference, l.result, l.threads, lane.found)
}

// trafficPiece writes a pattern over all of the memory and compares it: another seed each second pass, and the inverse of the
// pattern in between, so that every bit is held in both states.
func (l *burnCard) trafficPiece() error {
	s, lane := l.session, &l.traffic
	seed, flip := uint64(word(lane.pass/2, 0x5eed)), uint64(0)
	if lane.pass%2 == 1 {
		flip = 0xffffffff
	}
	if err := s.enqueue(l.fill, l.blocks, lane.stream, l.memory, l.words, seed, flip); err != nil {
		return err
	}
	if err := s.enqueue(l.check, l.blocks, lane.stream, l.memory, l.words, seed, flip, lane.found); err != nil {
		return err
	}
	return s.record(lane.end, lane.stream)
}

// take reads what a piece of work found, and how long it took.
func (l *burnCard) take(lane *burnLane) error {
	wrong, first, bits := found(lane)
	took, err := l.session.took(lane.start, lane.end)
	if err != nil {
		return err
	}
	lane.seconds += took
	if lane == &l.traffic {
		lane.pass++
		l.done.Passes++
		lane.work += float64(l.words) * 4 * 2
		l.done.Wrong, l.done.Bits = int64(wrong), uint32(bits)
		if wrong > 0 {
			l.done.First = int64(first) * 4
		}
		return nil
	}
	lane.work += l.flops * float64(l.threads) * float64(l.iterations)
	l.done.Different = int64(wrong)
	if l.referenced {
		l.done.Rounds++
	}
	l.referenced = true
	if took > l.ask.Kernel*longestKernel { // clocks fell: stay short enough to stop at once
		l.scale(l.iterations, took)
	}
	return nil
}

// found reads the three words of a comparison.
func found(lane *burnLane) (wrong, first, bits uint64) {
	raw := lane.seen.raw()
	return binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:]), binary.LittleEndian.Uint64(raw[16:])
}

// figures are those of a card since the load began; the rates are those since the last time, of the work that was done in it,
// over the time that the card itself took for it.
func (l *burnCard) figures(began time.Time) *wire.Burn {
	l.done.TFLOPS = l.compute.rate(l.done.TFLOPS, 1e12)
	l.done.GBs = l.traffic.rate(l.done.GBs, 1e9)
	out := l.done
	out.Seconds = time.Since(began).Seconds()
	return &out
}

// rate is work a second in some unit since the last time; where none was done, the last rate stays.
func (lane *burnLane) rate(last, unit float64) float64 {
	if lane.seconds > 0 {
		last = lane.work / lane.seconds / unit
	}
	lane.work, lane.seconds = 0, 0
	return last
}
