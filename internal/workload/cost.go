package workload

import "fmt"

// CostRow is what the whole training takes and costs on one machine. Hours and money are ranges; equal ends are one figure.
type CostRow struct {
	Rig       string  `json:"rig"`
	Cards     int     `json:"cards"`
	HoursLow  float64 `json:"hours_low,omitempty"`
	HoursHigh float64 `json:"hours_high,omitempty"`
	Origin    string  `json:"origin"` // of the hours
	PerCard   float64 `json:"per_card_hour,omitempty"`
	CostLow   float64 `json:"cost_low,omitempty"`
	CostHigh  float64 `json:"cost_high,omitempty"`
	BreakEven float64 `json:"break_even_hours,omitempty"` // of renting, after which buying was cheaper
}

// The share of T that builders put a communication-bound rig of several cards at, where T is the time on one A100: 3 to 4
// times as long, compared on the whole job.
const boundLow, boundHigh = 3, 4

// Costs is the cost table of one workload over machines, each with its own estimate; where hours were measured on one of
// them, the others are scaled from it by their throughput. The range of 3–4 T stands as a row of its own beside it. Without
// prices and without a length of the training there is no table.
func Costs(list []Assessment) []CostRow {
	out := []CostRow{}
	if len(list) == 0 {
		return out
	}
	base := hoursOn(list)
	for _, a := range list {
		row := CostRow{Rig: a.Rig.Label(), Cards: a.Rig.Cards}
		if a.Rig.Price != nil {
			row.PerCard = a.Rig.Price.PerCard
		}
		if h, origin, ok := hours(a, base); ok {
			row.HoursLow, row.HoursHigh, row.Origin = h, h, origin
		}
		rent := row.PerCard * float64(row.Cards)
		if a.Rig.Buy > 0 && rent > 0 {
			row.BreakEven = a.Rig.Buy / rent
		}
		row = row.priced()
		if row.HoursLow == 0 && row.BreakEven == 0 {
			continue
		}
		out = append(out, row)
		if base != nil && a.Rig.Cards > 1 && !a.Rig.NVLink && (a.Speed == Bound || a.Speed == Unsuited) && a.Workload.Hours > 0 {
			rule := row
			rule.HoursLow, rule.HoursHigh, rule.BreakEven = boundLow*a.Workload.Hours, boundHigh*a.Workload.Hours, 0
			rule.Origin = fmt.Sprintf("rule of builders: %d–%d T for a communication-bound rig, T = %.1f h on %s", boundLow, boundHigh, a.Workload.Hours, base.Rig.Label())
			out = append(out, rule.priced())
		}
	}
	return out
}

func (c CostRow) priced() CostRow {
	rent := c.PerCard * float64(c.Cards)
	c.CostLow, c.CostHigh = rent*c.HoursLow, rent*c.HoursHigh
	return c
}

// hoursOn is the machine on which the hours were measured.
func hoursOn(list []Assessment) *Assessment {
	for i, a := range list {
		if a.Workload.Hours <= 0 {
			continue
		}
		for _, name := range a.Rig.Names {
			if name == a.Workload.HoursOn {
				return &list[i]
			}
		}
	}
	return nil
}

// hours is how long the whole training takes, and where the figure comes from.
func hours(a Assessment, base *Assessment) (float64, string, bool) {
	if a.Chosen == nil || a.Workload.Serving() {
		return 0, "", false
	}
	rate := a.Chosen.Step.Rate()
	switch {
	case base != nil && base.Rig.Label() == a.Rig.Label():
		return a.Workload.Hours, "measured", true
	case base != nil && rate > 0 && base.Chosen != nil && base.Chosen.Step.Rate() > 0:
		return a.Workload.Hours * base.Chosen.Step.Rate() / rate, fmt.Sprintf("%.1f h on %s × our estimate of the throughputs, %.2f", a.Workload.Hours, base.Rig.Label(), base.Chosen.Step.Rate()/rate), true
	case base == nil && a.Workload.Tokens > 0 && rate > 0:
		return a.Workload.Tokens / rate / 3600, fmt.Sprintf("%s tokens ÷ %.0f a second", SizeName(a.Workload.Tokens), rate), true
	}
	return 0, "", false
}
