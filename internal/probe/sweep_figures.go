package probe

import (
	"bytes"

	"preflight/internal/sample"
)

// speed is what all cards compute together between two times, TFLOPS: the mean of each card's reports, summed.
func speed(reports []capReport, from, to float64) float64 {
	sum, count := map[int]float64{}, map[int]float64{}
	for _, r := range reports {
		if r.at > from && r.at <= to {
			sum[r.card] += r.tflops
			count[r.card]++
		}
	}
	var out float64
	for card, s := range sum {
		out += s / count[card]
	}
	return out
}

// seen is the mean of what all cards drew together between two times, W, and the hottest core, °C.
func seen(s *sample.Series, from, to float64) (drawn, hottest float64) {
	for _, t := range s.Cards {
		var watts, n float64
		for i, at := range t.At {
			if at.Seconds() <= from || at.Seconds() > to {
				continue
			}
			if w, ok := t.Values[i].Get(sample.Power); ok {
				watts += w
				n++
			}
			if c, ok := t.Values[i].Get(sample.Temperature); ok {
				hottest = max(hottest, c)
			}
		}
		if n > 0 {
			drawn += watts / n
		}
	}
	return drawn, hottest
}

// lineWriter hands on whole lines, each at most lineLimit long.
type lineWriter struct {
	heard func(line string)
	rest  []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			break
		}
		w.heard(string(w.rest[:i]))
		w.rest = w.rest[i+1:]
	}
	if len(w.rest) > lineLimit {
		w.rest = nil
	}
	return len(p), nil
}
