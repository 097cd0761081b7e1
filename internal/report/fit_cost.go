package report

import (
	"fmt"

	"preflight/internal/lang"
	"preflight/internal/workload"
)

// FitCost is a row of the cost table in words.
func FitCost(c workload.CostRow, l lang.Language) string {
	s := ""
	if c.HoursLow > 0 {
		s = l.Sayf("%s h", span(c.HoursLow, c.HoursHigh))
	}
	if c.CostLow > 0 {
		s += fmt.Sprintf(" · %d × %g × h = %s", c.Cards, c.PerCard, span(c.CostLow, c.CostHigh))
	}
	if c.Origin != "" {
		s += " (" + l.Say(c.Origin) + ")"
	}
	if c.BreakEven > 0 {
		if s != "" {
			s += l.Say("; ")
		}
		s += l.Sayf("bought, it is cheaper than rented after %.0f hours of use", c.BreakEven)
	}
	return s
}

// span is a range, or one figure where both ends are the same.
func span(low, high float64) string {
	if low == high {
		return figureOf(low)
	}
	return figureOf(low) + "–" + figureOf(high)
}

func figureOf(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
