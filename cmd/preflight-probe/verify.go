//go:build linux

package main

import (
	"fmt"
	"math"

	"preflight/internal/probe/wire"
)

// word is the i-th word of a pattern: no two offsets and no two seeds look alike, so that a block that arrives in the
// wrong place, or from an earlier copy, is seen. The mixing is the finaliser of MurmurHash3.
func word(i, seed uint32) uint32 {
	h := i*0x9e3779b1 + seed
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// mismatch counts words of a block that differ from the pattern, first is the offset of the first, words; -1 if none.
func mismatch(block []uint32, from, seed uint32) (wrong, first int64) {
	first = -1
	for i, w := range block {
		if w != word(from+uint32(i), seed) {
			if wrong++; first < 0 {
				first = int64(from) + int64(i)
			}
		}
	}
	return wrong, first
}

// reducePeriod is the number of elements after which the numbers of an all-reduce repeat. It is prime: data that was
// shifted by any block or slice of NCCL's is seen.
const reducePeriod = 262139

// term is the number that a rank contributes at i: 1 to 16, so that the sum over a thousand ranks is exact in float32
// (every integer up to 2^24 is).
func term(i, rank uint32) float32 {
	return float32(word(i%reducePeriod, rank*0x9e3779b1+1)>>28 + 1)
}

// terms fills one period of a rank's numbers.
func terms(out []float32, rank int) {
	for i := range out {
		out[i] = term(uint32(i), uint32(rank))
	}
}

// sums is one period of what an all-reduce over so many ranks must give.
func sums(ranks int) []float32 {
	out := make([]float32, reducePeriod)
	for r := range ranks {
		for i := range out {
			out[i] += term(uint32(i), uint32(r))
		}
	}
	return out
}

// wrongFloats counts elements that differ from the expectation in any bit; NaN is wrong.
func wrongFloats(got, want []float32) int64 {
	var wrong int64
	for i, g := range got {
		if math.Float32bits(g) != math.Float32bits(want[i]) {
			wrong++
		}
	}
	return wrong
}

// wrongSums is the error of a row whose data came out wrong, nil when it is right.
func wrongSums(row wire.AllReduce) *wire.Error {
	if row.Wrong == 0 {
		return nil
	}
	return &wire.Error{Key: wire.KeyWrongSums, API: "helper", Text: fmt.Sprintf("%d elements of an all-reduce of %d bytes over %d ranks are wrong", row.Wrong, row.Bytes, row.Ranks)}
}

// upload copies host memory to a card in one piece and waits for it.
func (s *session) upload(c *card, dst uint64, b buffer, bytes int64) error {
	if err := s.use(c); err != nil {
		return err
	}
	if err := s.cu.check("cuMemcpyHtoDAsync", s.cu.toCard(dst, b.ptr, uint64(bytes), c.in)); err != nil {
		return err
	}
	return s.settle(c)
}

// download copies from a card to host memory and waits for it.
func (s *session) download(c *card, b buffer, src uint64, bytes int64) error {
	if err := s.use(c); err != nil {
		return err
	}
	if err := s.cu.check("cuMemcpyDtoHAsync", s.cu.fromCard(b.ptr, src, uint64(bytes), c.in)); err != nil {
		return err
	}
	return s.settle(c)
}

// poison overwrites a card's memory with a word that no pattern is expected to leave. The word is a NaN.
const poison = 0x7fc0dead

func (s *session) poison(c *card, dst uint64, bytes int64) error {
	if err := s.use(c); err != nil {
		return err
	}
	if err := s.cu.check("cuMemsetD32Async", s.cu.set32(dst, poison, uint64(bytes/4), c.in)); err != nil {
		return err
	}
	return s.settle(c)
}

// settle waits until the card's first stream is empty.
func (s *session) settle(c *card) error {
	if err := s.record(c.last, c.in); err != nil {
		return err
	}
	return s.wait(nil, c.last)
}
