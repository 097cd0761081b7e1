package workload

import "fmt"

// Point is the speed-up over one card that is predicted for so many, beside what healthy rigs reach.
type Point struct {
	Cards      int     `json:"cards"`
	SpeedUp    float64 `json:"speed_up"`
	Efficiency float64 `json:"efficiency"`
	Low        float64 `json:"healthy_low,omitempty"`
	High       float64 `json:"healthy_high,omitempty"`
	Measured   float64 `json:"measured_speed_up,omitempty"`
	Remark     string  `json:"remark,omitempty"`
}

// healthy are the speed-ups over one card of rigs that builders call healthy: 2 over 1 card 1.7–1.9, 4 over 2 1.5–1.7,
// 8 over 2 2.5–3, multiplied out.
var healthy = map[int][2]float64{2: {1.7, 1.9}, 4: {1.7 * 1.5, 1.9 * 1.7}, 8: {1.7 * 2.5, 1.9 * 3}}

// scaling predicts 1, 2, 4 and 8 cards, and the rig's own number. What was measured stands beside it.
func scaling(w Workload, r Rig, strategy string) []Point {
	counts := []int{1, 2, 4, 8}
	if r.Cards == 3 || r.Cards > 4 && r.Cards != 8 {
		counts = insert(counts, r.Cards)
	}
	if w.Serving() {
		return []Point{}
	}
	if strategy == "single" {
		strategy = "ddp"
	}
	out := []Point{}
	for _, n := range counts {
		if impossible(w, Rig{Cards: n}, strategy) != "" {
			continue
		}
		s, _ := StepOf(w, r, strategy, n)
		if n == 1 {
			s, _ = StepOf(w, r, "single", 1)
		}
		if !s.Known {
			continue
		}
		p := Point{Cards: n, SpeedUp: float64(n) * s.Efficiency(), Efficiency: s.Efficiency()}
		if h, ok := healthy[n]; ok {
			p.Low, p.High = h[0], h[1]
		}
		p.compare(r)
		out = append(out, p)
	}
	return out
}

// compare sets what was measured beside the prediction. Above linear is a mistake of the measuring: caches aside, n cards
// cannot do more than n times the work of one.
func (p *Point) compare(r Rig) {
	var one float64
	for _, m := range r.Card.MoreCards {
		if m.Cards == 1 {
			one = m.TokensPerSecond
		}
	}
	for _, m := range r.Card.MoreCards {
		if m.Cards != p.Cards || one <= 0 {
			continue
		}
		p.Measured = m.TokensPerSecond / one
		switch {
		case p.Cards == 1:
		case p.Measured > 1.02*float64(p.Cards):
			p.Remark = fmt.Sprintf("%.2f over one card is above linear: a mistake of the measuring", p.Measured)
		case p.Low > 0 && p.Measured < p.Low:
			p.Remark = "below what healthy rigs reach"
		case p.Measured < 0.85*p.SpeedUp:
			p.Remark = "below the prediction: something else than these links slows it"
		default:
			p.Remark = "healthy"
		}
	}
}

func insert(list []int, n int) []int {
	var out []int
	done := false
	for _, x := range list {
		if n < x && !done {
			out, done = append(out, n), true
		}
		out = append(out, x)
	}
	if !done {
		out = append(out, n)
	}
	return out
}
