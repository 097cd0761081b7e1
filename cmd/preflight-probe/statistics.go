//go:build linux

package main

import "slices"

// stats are the best, the median and the worst of some rates, and (best − worst) ÷ best.
type stats struct{ best, median, worst, spread float64 }

func summarise(rates []float64) stats {
	if len(rates) == 0 {
		return stats{}
	}
	r := slices.Sorted(slices.Values(rates))
	s := stats{best: r[len(r)-1], median: r[len(r)/2], worst: r[0]}
	if len(r)%2 == 0 {
		s.median = (r[len(r)/2-1] + r[len(r)/2]) / 2
	}
	if s.best > 0 {
		s.spread = (s.best - s.worst) / s.best
	}
	return s
}

// giga is 10^9: rates are GB/s as nccl-tests prints them, not GiB/s.
const giga = 1e9

// rate in GB/s; a clock that stood still measures nothing.
func rate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) / seconds / giga
}
