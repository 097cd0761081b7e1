package watch

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/internal/sample"
)

// View says how rigs are drawn.
type View struct {
	Policy        Policy
	All           bool // a line for each card of rigs that are well, too
	Color         bool
	Columns, Rows int // of the terminal; 0 rows for no limit
}

// Frame draws all rigs, those in trouble first, as lines that fit the terminal. A rig that is well is one line.
func (v View) Frame(rigs []Rig, now time.Time) []string {
	order := v.sorted(rigs, now)
	out := []string{v.head(order, now)}
	room := v.Rows - 2 // the fold, and the line of the cursor
	hidden := 0
	for _, o := range order {
		lines := v.rig(o, now)
		if v.Rows > 0 && len(out)+len(lines) > room {
			if lines = lines[:1]; len(out)+1 > room {
				hidden++
				continue
			}
		}
		out = append(out, lines...)
	}
	if hidden > 0 {
		out = append(out, fmt.Sprintf("  … and %d more", hidden))
	}
	for i := range out {
		if v.Columns > 10 {
			out[i] = text.Trim(out[i], v.Columns-1)
		}
	}
	return out
}

// judged is a rig with what is wrong with it.
type judged struct {
	Rig
	signs []Sign
	level Level
}

func (v View) sorted(rigs []Rig, now time.Time) []judged {
	var out []judged
	for _, r := range rigs {
		s := v.Policy.Signs(r, now)
		out = append(out, judged{r, s, Worst(s)})
	}
	slices.SortStableFunc(out, func(a, b judged) int { return int(b.level) - int(a.level) })
	return out
}

var marks = map[Level]struct {
	sign  string
	color text.Color
}{Well: {"✓", text.FgGreen}, Look: {"!", text.FgYellow}, Bad: {"✗", text.FgRed}}

func (v View) paint(c text.Color, s string) string {
	if !v.Color {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", int(c), s)
}

func (v View) head(order []judged, now time.Time) string {
	count, cards, connecting := map[Level]int{}, 0, 0
	for _, o := range order {
		cards += len(o.Cards)
		if o.Phase == Connecting {
			connecting++
			continue
		}
		count[o.level]++
	}
	parts := []string{fmt.Sprintf("%s  %d rigs, %d cards", now.Format("15:04:05"), len(order), cards)}
	for _, l := range []Level{Bad, Look, Well} {
		if count[l] > 0 {
			parts = append(parts, v.paint(marks[l].color, fmt.Sprintf("%s %d", marks[l].sign, count[l])))
		}
	}
	if connecting > 0 {
		parts = append(parts, fmt.Sprintf("%d connecting", connecting))
	}
	return strings.Join(parts, "  ")
}

// rig is the line of a rig, and lines of its cards where something is wrong or all are wanted.
func (v View) rig(o judged, now time.Time) []string {
	if o.Phase == Connecting {
		return []string{fmt.Sprintf("… %s  connecting for %s", o.Name, now.Sub(o.Since).Round(time.Second))}
	}
	var own []string
	for _, s := range o.signs {
		if s.Card == "" {
			own = append(own, s.Text)
		}
	}
	line := v.paint(marks[o.level].color, marks[o.level].sign) + " " + o.Name
	if s := summary(o.Rig); s != "" {
		line += "  " + s
	}
	if len(own) > 0 {
		line += "  " + v.paint(marks[o.level].color, strings.Join(own, "; "))
	}
	out := []string{line}
	if o.level == Well && !v.All {
		return out
	}
	for _, c := range o.Cards {
		out = append(out, v.card(c, o.signs))
	}
	return out
}

// summary is a rig in one line: the spread of utilization and heat, sums of memory and power.
func summary(r Rig) string {
	parts := []string{}
	if m := r.Model(); m != "" {
		parts = append(parts, m)
	}
	if s := spread(r, sample.Utilization, " %"); s != "" {
		parts = append(parts, s)
	}
	if used, total, ok := sums(r, sample.MemoryUsed, sample.MemoryTotal); ok {
		parts = append(parts, fmt.Sprintf("%.0f of %.0f GiB", used/1024, total/1024))
	}
	if drawn, limit, ok := sums(r, sample.Power, sample.PowerLimit); ok {
		parts = append(parts, fmt.Sprintf("%.0f of %.0f W", drawn, limit))
	}
	if s := spread(r, sample.Temperature, " °C"); s != "" {
		parts = append(parts, s)
	}
	if r.HasCPU {
		parts = append(parts, fmt.Sprintf("CPU %.0f °C", r.CPU))
	}
	for _, n := range slices.Sorted(keys(r.Sensors)) {
		if s := r.Sensors[n]; strings.HasPrefix(strings.ToLower(n), "inlet") {
			parts = append(parts, fmt.Sprintf("inlet %.0f °C", s.Value))
		}
	}
	return strings.Join(parts, "  ")
}

func keys(m map[string]sample.Sensor) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// spread is "96–99 %"; "" when no card tells it.
func spread(r Rig, m sample.Metric, unit string) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range r.Cards {
		if x, ok := c.Values.Get(m); ok {
			low, high = min(low, x), max(high, x)
		}
	}
	switch {
	case low > high:
		return ""
	case math.Round(low) == math.Round(high):
		return fmt.Sprintf("%.0f%s", low, unit)
	}
	return fmt.Sprintf("%.0f–%.0f%s", low, high, unit)
}

// sums adds two metrics over the cards that tell both.
func sums(r Rig, a, b sample.Metric) (x, y float64, ok bool) {
	for _, c := range r.Cards {
		p, has := c.Values.Get(a)
		q, both := c.Values.Get(b)
		if has && both {
			x, y, ok = x+p, y+q, true
		}
	}
	return x, y, ok
}

// card is one card's line; what was not told is a dash.
func (v View) card(c Card, signs []Sign) string {
	get := func(m sample.Metric, format string) string {
		x, ok := c.Values.Get(m)
		if !ok {
			return "–"
		}
		return fmt.Sprintf(format, x)
	}
	gib := func(m sample.Metric) string {
		x, ok := c.Values.Get(m)
		if !ok {
			return "–"
		}
		return fmt.Sprintf("%.1f", x/1024)
	}
	cols := []string{
		strings.TrimPrefix(c.BDF, "0000:"),
		right(get(sample.Utilization, "%.0f %%"), 5),
		right(gib(sample.MemoryUsed)+"/"+gib(sample.MemoryTotal)+" GiB", 14),
		right(get(sample.Power, "%.0f")+"/"+get(sample.PowerLimit, "%.0f")+" W", 9),
		right(get(sample.Temperature, "%.0f °C"), 6),
		right(get(sample.MemoryTemp, "mem %.0f °C"), 9),
		right(get(sample.CoreClock, "%.0f MHz"), 8),
		"Gen" + get(sample.LinkGen, "%.0f") + " x" + get(sample.LinkWidth, "%.0f"),
	}
	line := "    " + strings.Join(cols, "  ")
	level, why := Well, []string{}
	for _, s := range signs {
		if s.Card == c.BDF {
			level, why = max(level, s.Level), append(why, s.Text)
		}
	}
	if len(why) == 0 && c.Values.Has(sample.ReasonPowerCap) {
		return line + "  at its power limit"
	}
	return line + "  " + v.paint(marks[level].color, strings.Join(why, "; "))
}

func right(s string, room int) string { return text.AlignRight.Apply(s, room) }
