//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"preflight/internal/probe/wire"
)

// peerSizes are verified one after the other: drivers that claim P2P without having it have been right for small
// copies, and wrong beyond 32 MiB.
var peerSizes = []int64{64 << 10, 8 << 20, 48 << 20}

const (
	peerRepeats = 10
	bounceBytes = 4 << 20 // of one of the two host buffers of a staged copy
)

// exchange is what one pair of cards needs. Its buffers serve all pairs.
type exchange struct {
	session *session
	ask     wire.PeersRequest
	host    buffer           // one largest copy
	bounce  [2]buffer        // of staged copies
	memory  map[int]uint64   // by ordinal: one largest copy
	enabled map[[2]int]error // what cuCtxEnablePeerAccess said, by pair
}

// peers measures every pair in both directions, staged through the host and, where the driver says that there is P2P,
// directly. Every copy is verified.
func (s *session) peers() error {
	if err := s.manyCards(); err != nil {
		return err
	}
	cards, err := s.openCards()
	if err != nil {
		return err
	}
	x := &exchange{session: s, memory: map[int]uint64{}, enabled: map[[2]int]error{}}
	if p := s.job.Request.Peers; p != nil {
		x.ask = *p
	}
	if len(x.ask.Sizes) == 0 {
		x.ask.Sizes = peerSizes
	}
	if x.ask.Repeats <= 0 {
		x.ask.Repeats = peerRepeats
	}
	if err := x.prepare(cards); err != nil {
		return err
	}
	for _, path := range []string{wire.PathStaged, wire.PathP2P} {
		if path == wire.PathStaged && x.ask.NoStage || path == wire.PathP2P && x.ask.NoP2P {
			continue
		}
		for _, a := range cards {
			for _, b := range cards {
				if a != b && x.wanted(a.Ordinal, b.Ordinal) {
					x.pair(path, a, b)
				}
			}
		}
	}
	return nil
}

func (x *exchange) wanted(a, b int) bool {
	return len(x.ask.Pairs) == 0 || slices.Contains(x.ask.Pairs, [2]int{a, b})
}

func (x *exchange) prepare(cards []*card) error {
	s, size := x.session, slices.Max(x.ask.Sizes)
	for _, c := range cards {
		err := s.phase(on(wire.PhaseMemory, c.Ordinal), func(*wire.Line) error {
			p, err := s.onCard(c, size)
			x.memory[c.Ordinal] = p
			if err != nil || x.host.ptr != nil {
				return err
			}
			if x.host, err = s.pin(size); err != nil {
				return err
			}
			for i := range x.bounce {
				if x.bounce[i], err = s.pin(bounceBytes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pair measures one path from one card to another and tells the result. An error of a copy is the result of its pair;
// the others are tried all the same, and say so themselves if the whole card is lost.
func (x *exchange) pair(path string, a, b *card) {
	s := x.session
	if slices.Contains(s.job.Done, pairKey{path, a.Ordinal, b.Ordinal}) {
		return
	}
	phase := map[string]string{wire.PathStaged: wire.PhasePeerStaged, wire.PathP2P: wire.PhasePeerP2P}[path]
	result := between(phase, a.Ordinal, b.Ordinal)
	result.State = wire.StateResult
	switch {
	case path == wire.PathP2P && !slices.Contains(a.Peers, b.Ordinal):
		result.Pair = &wire.Pair{Path: path, Result: wire.PairAbsent}
	case slices.Contains(s.job.GiveUp, path):
		result.Pair = &wire.Pair{Path: path, Result: wire.PairNotTried}
	default:
		_ = s.phase(between(phase, a.Ordinal, b.Ordinal), func(*wire.Line) error {
			p, err := x.measure(path, a, b)
			result.Pair, result.Error = p, err
			return nil
		})
	}
	s.say(result)
}

// measure verifies each size and then times the largest.
func (x *exchange) measure(path string, a, b *card) (*wire.Pair, *wire.Error) {
	p := &wire.Pair{Path: path, Result: wire.PairOK}
	copyOnce := x.staged
	if path == wire.PathP2P {
		copyOnce = x.direct
		if err := x.enable(a, b); err != nil {
			p.Result = wire.PairError
			return p, asError(err)
		}
	}
	var rates []float64
	for _, size := range x.ask.Sizes {
		p.Bytes = size
		wrong, first, err := x.verified(size, a, b, copyOnce)
		if err != nil {
			p.Result = wire.PairError
			return p, asError(err)
		}
		if wrong > 0 {
			p.Result, p.Wrong, p.First = wire.PairCorrupt, wrong, first*4
			return p, &wire.Error{Key: wire.KeyCorrupt, API: "helper", Text: fmt.Sprintf("%d of %d words arrived wrong from card %d to card %d (%s, %d bytes)", wrong, size/4, a.Ordinal, b.Ordinal, path, size)}
		}
	}
	p.Bytes = slices.Max(x.ask.Sizes)
	for range x.ask.Repeats {
		t, err := copyOnce(a, b, p.Bytes)
		if err != nil {
			p.Result = wire.PairError
			return p, asError(err)
		}
		rates = append(rates, rate(p.Bytes, t))
	}
	st := summarise(rates)
	p.Best, p.Median, p.Spread = st.best, st.median, st.spread
	if path == wire.PathP2P && p.Best < x.ask.SlowBelow {
		p.Result = wire.PairSlow
	}
	return p, nil
}

// verified writes a pattern into a, copies it to b, and reads it back through b.
func (x *exchange) verified(size int64, a, b *card, copyOnce func(a, b *card, bytes int64) (float64, error)) (wrong, first int64, err error) {
	s := x.session
	seed := uint32(a.Ordinal)<<24 ^ uint32(b.Ordinal)<<16 ^ uint32(size>>10) ^ uint32(time.Now().UnixNano())
	words := x.host.words()[:size/4]
	for i := range words {
		words[i] = word(uint32(i), seed)
	}
	if err := s.upload(a, x.memory[a.Ordinal], x.host, size); err != nil {
		return 0, 0, err
	}
	if err := s.poison(b, x.memory[b.Ordinal], size); err != nil {
		return 0, 0, err
	}
	if _, err := copyOnce(a, b, size); err != nil {
		return 0, 0, err
	}
	clear(words)
	if err := s.download(b, x.host, x.memory[b.Ordinal], size); err != nil {
		return 0, 0, err
	}
	wrong, first = mismatch(words, 0, seed)
	return wrong, first, nil
}

// enable lets two cards reach each other, once.
func (x *exchange) enable(a, b *card) error {
	for _, p := range [][2]*card{{a, b}, {b, a}} {
		key := [2]int{p[0].Ordinal, p[1].Ordinal}
		err, asked := x.enabled[key]
		if !asked {
			err = x.session.enable(p[0], p[1])
			x.enabled[key] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) enable(from, to *card) error {
	if err := s.use(from); err != nil {
		return err
	}
	code := s.cu.enablePeer(to.ctx, 0)
	if code == cudaPeerAlready {
		return nil
	}
	return s.cu.check("cuCtxEnablePeerAccess", code)
}

// direct copies by the copy engine of the source and returns the seconds.
func (x *exchange) direct(a, b *card, bytes int64) (float64, error) {
	s := x.session
	if err := s.use(a); err != nil {
		return 0, err
	}
	if err := s.record(a.first, a.out); err != nil {
		return 0, err
	}
	if err := s.cu.check("cuMemcpyPeerAsync", s.cu.peer(x.memory[b.Ordinal], b.ctx, x.memory[a.Ordinal], a.ctx, uint64(bytes), a.out)); err != nil {
		return 0, err
	}
	if err := s.record(a.last, a.out); err != nil {
		return 0, err
	}
	if err := s.wait(nil, a.last); err != nil {
		return 0, err
	}
	return s.took(a.first, a.last)
}

// staged copies through two pinned buffers of the host, filling one while the other is emptied, as the driver and NCCL
// do without P2P. Seconds by the clock of this host: events of two cards cannot be compared.
func (x *exchange) staged(a, b *card, bytes int64) (float64, error) {
	s, cu, begin := x.session, x.session.cu, time.Now()
	emptied := [2]bool{true, true}
	events := [2]uintptr{b.last, b.last2}
	for i, offset := 0, int64(0); offset < bytes; i, offset = i+1, offset+bounceBytes {
		half, n := i%2, uint64(min(bounceBytes, bytes-offset))
		if !emptied[half] {
			if err := s.wait(nil, events[half]); err != nil {
				return 0, err
			}
		}
		if err := s.use(a); err != nil {
			return 0, err
		}
		if err := cu.check("cuMemcpyDtoHAsync", cu.fromCard(x.bounce[half].ptr, x.memory[a.Ordinal]+uint64(offset), n, a.out)); err != nil {
			return 0, err
		}
		if err := s.record(a.last, a.out); err != nil {
			return 0, err
		}
		if err := s.use(b); err != nil {
			return 0, err
		}
		if err := cu.check("cuStreamWaitEvent", cu.streamWait(b.in, a.last, 0)); err != nil {
			return 0, err
		}
		if err := cu.check("cuMemcpyHtoDAsync", cu.toCard(x.memory[b.Ordinal]+uint64(offset), x.bounce[half].ptr, n, b.in)); err != nil {
			return 0, err
		}
		if err := s.record(events[half], b.in); err != nil {
			return 0, err
		}
		emptied[half] = false
	}
	if err := s.record(b.first, b.in); err != nil {
		return 0, err
	}
	err := s.wait(nil, b.first)
	return time.Since(begin).Seconds(), err
}
