//go:build linux

package main

import (
	"fmt"
	"math"
	"time"

	"preflight/internal/probe/wire"
)

// burnCard is one card at work: two lanes that never wait for each other. One computes, the other writes and reads memory.
type burnCard struct {
	*card
	session *session
	ask     wire.BurnRequest
	kernels

	blocks            uint32 // of the arithmetic: enough to fill every multiprocessor
	threads           uint64
	iterations        uint32
	reference, result uint64 // the results to compare with, and those of the last kernel: a word a thread
	referenced        bool   // reference holds results of these iterations
	memory            uint64
	words             uint64 // of memory

	compute, traffic burnLane
	done             wire.Burn
}

// burnLane is a queue of work with one piece under way.
type burnLane struct {
	stream        uintptr
	start, end    uintptr // events around the piece whose time counts
	done          uintptr // event: all of it is done
	found         uint64  // on the card: how many differed, the first, the bits
	seen          buffer  // the same, on the host
	busy          bool
	since         time.Time
	pass          uint32
	work, seconds float64 // done since the last report: operations or bytes, and the time of the card for them
}

// blocksEach is how many blocks of the arithmetic each multiprocessor gets: 1024 threads, which leaves room for the memory's.
const blocksEach = 4

// prepare loads the kernels, takes memory, and finds how many iterations a kernel of the asked length has.
func (l *burnCard) prepare() error {
	s := l.session
	if err := s.use(l.card); err != nil {
		return err
	}
	var err error
	if l.kernels, err = s.kernels(l.card); err != nil {
		return err
	}
	var dev, processors int32
	if err := s.cu.check("cuDeviceGet", s.cu.deviceGet(&dev, int32(l.Ordinal))); err != nil {
		return err
	}
	if err := s.cu.check("cuDeviceGetAttribute", s.cu.attribute(&processors, attrProcessors, dev)); err != nil {
		return err
	}
	l.blocks = uint32(processors) * blocksEach
	l.threads = uint64(l.blocks) * block
	for _, p := range []*uint64{&l.reference, &l.result} {
		if *p, err = s.onCard(l.card, int64(l.threads)*4); err != nil {
			return err
		}
	}
	for _, lane := range []*burnLane{&l.compute, &l.traffic} {
		if err := l.open(lane); err != nil {
			return err
		}
	}
	l.compute.stream, l.traffic.stream = l.in, l.card.out
	if err := l.reserve(); err != nil {
		return err
	}
	return l.calibrate()
}

// open takes what a lane needs besides its stream.
func (l *burnCard) open(lane *burnLane) error {
	s := l.session
	for _, e := range []*uintptr{&lane.start, &lane.end, &lane.done} {
		if err := s.cu.check("cuEventCreate", s.cu.eventCreate(e, 0)); err != nil {
			return err
		}
	}
	var err error
	if lane.seen, err = s.pin(foundWords * 4); err != nil {
		return err
	}
	if lane.found, err = s.onCard(l.card, foundWords*4); err != nil {
		return err
	}
	nothing := [foundWords]uint32{0, 0, math.MaxUint32, math.MaxUint32, 0, 0}
	copy(lane.seen.words(), nothing[:])
	return s.upload(l.card, lane.found, lane.seen, foundWords*4)
}

// foundWords is the size of what a comparison found: three words of 64 bits.
const foundWords = 6

// reserve takes the asked share of the free memory in one piece; where the driver cannot give one so large, less.
func (l *burnCard) reserve() error {
	s := l.session
	var free, total uint64
	if err := s.cu.check("cuMemGetInfo", s.cu.memoryInfo(&free, &total)); err != nil {
		return err
	}
	for share := l.ask.Memory; ; share *= 0.9 {
		bytes := uint64(float64(free)*share) &^ 0xfff
		if bytes < wire.BurnLeast() {
			return &wire.Error{Key: wire.KeyLittleMemory, API: "helper", Text: fmt.Sprintf("%d MiB of %d MiB are free: a burn-in needs at least %d MiB in one piece", free>>20, total>>20, wire.BurnLeast()>>20)}
		}
		err := s.cu.check("cuMemAlloc", s.cu.alloc(&l.memory, bytes))
		if err == nil {
			l.words = bytes / 4
			l.done.Kernel, l.done.Bytes = l.name, int64(bytes)
			return nil
		}
		if asError(err).Key != wire.KeyOutOfMemory || share < l.ask.Memory/2 {
			return err
		}
	}
}

// calibrate doubles the iterations until a kernel can be timed, and then scales them to the asked length.
func (l *burnCard) calibrate() error {
	for n := uint32(1024); ; n *= 2 {
		took, err := l.timed(n)
		if err != nil {
			return err
		}
		if took < 0.05 && n < 1<<30 {
			continue
		}
		l.scale(n, took)
		return nil
	}
}

// scale sets the iterations for kernels of the asked length.
func (l *burnCard) scale(n uint32, took float64) {
	want := float64(n) * l.ask.Kernel / max(took, 1e-6)
	l.iterations = uint32(min(max(want, 1), 1<<31))
	l.referenced = false
}

// timed runs the arithmetic once and waits for it, seconds.
func (l *burnCard) timed(n uint32) (float64, error) {
	s, lane := l.session, &l.compute
	if err := s.record(lane.start, lane.stream); err != nil {
		return 0, err
	}
	if err := s.enqueue(l.kernels.burn, l.blocks, lane.stream, l.result, uint64(n)); err != nil {
		return 0, err
	}
	if err := s.record(lane.end, lane.stream); err != nil {
		return 0, err
	}
	if err := s.wait(nil, lane.end); err != nil {
		return 0, err
	}
	return s.took(lane.start, lane.end)
}
