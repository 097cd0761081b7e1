package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/fleet"
)

// table is what is known of a run: the rigs at work one by one, the finished folded to counts.
type table struct {
	total  int
	start  time.Time
	active map[string]state
	done   map[checks.Verdict]int // "" is read, without a verdict
	lost   int                    // finished without facts
	bad    []string               // those that fail or were lost, in the order in which they finished
}

type state struct {
	phase   fleet.Phase
	began   time.Time // of the rig
	entered time.Time // of the phase
	message string
}

func (t *table) note(e fleet.Event, now time.Time) {
	if e.Phase == fleet.Done {
		delete(t.active, e.Rig)
		switch {
		case e.Lost:
			t.lost++
		default:
			t.done[e.Verdict]++
		}
		if e.Lost || e.Verdict == checks.Fail {
			t.bad = append(t.bad, e.Rig)
		}
		return
	}
	st, known := t.active[e.Rig]
	if !known {
		st.began = now
	}
	if st.phase != e.Phase {
		st.phase, st.entered, st.message = e.Phase, now, ""
	}
	if e.Message != "" {
		st.message = strings.Map(printable, e.Message)
	}
	t.active[e.Rig] = st
}

// printable keeps what a host says from moving the cursor.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// columns of a rig's line, beside its message.
const (
	nameRoom  = 20
	phaseRoom = 10
	timeRoom  = 8
)

// frame is the table as lines that are no wider than the terminal, and few enough to stay on it.
func (t *table) frame(now time.Time, columns, lines int, color bool) []string {
	room := max(min(lines-4, 20), 1) // for rigs: the head, the fold, the bad, and the line of the cursor
	out := []string{t.head(now, color)}
	names := make([]string, 0, len(t.active))
	for n := range t.active {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { // the longest at work first: what hangs is seen
		if c := t.active[a].began.Compare(t.active[b].began); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	shown := names
	if len(names) > room {
		shown = names[:room]
	}
	for _, n := range shown {
		st := t.active[n]
		what := st.message
		if what == "" {
			what = waits(st.phase)
		}
		out = append(out, fmt.Sprintf("  %s %s %s  %s", cell(n, nameRoom), cell(string(st.phase), phaseRoom), text.AlignRight.Apply(elapsed(now.Sub(st.began)), timeRoom), what))
	}
	if fold := t.fold(names[len(shown):]); fold != "" {
		out = append(out, "  "+fold)
	}
	if len(t.bad) > 0 {
		out = append(out, "  "+paint(color, text.FgRed, "✗ "+strings.Join(t.bad, ", ")))
	}
	for i, l := range out {
		out[i] = text.Trim(l, max(columns-1, 10))
	}
	return out
}

// head is "37 of 120 rigs  ✓ 30  ! 2  ✗ 4  ? 1  2m14s".
func (t *table) head(now time.Time, color bool) string {
	n := t.lost
	parts := []string{}
	for _, v := range []struct {
		verdict checks.Verdict
		sign    string
		color   text.Color
	}{{checks.Pass, "✓", text.FgGreen}, {checks.Warn, "!", text.FgYellow}, {checks.Fail, "✗", text.FgRed}, {checks.Unknown, "?", text.FgCyan}, {checks.Skip, "-", text.Faint}, {"", "read", text.FgGreen}} {
		if k := t.done[v.verdict]; k > 0 {
			n += k
			parts = append(parts, paint(color, v.color, fmt.Sprintf("%s %d", v.sign, k)))
		}
	}
	if t.lost > 0 {
		parts = append(parts, paint(color, text.FgRed, fmt.Sprintf("%d not reached", t.lost)))
	}
	noun := "rigs"
	if t.total == 1 {
		noun = "rig"
	}
	return strings.Join(append([]string{fmt.Sprintf("%d of %d %s", n, t.total, noun)}, append(parts, elapsed(now.Sub(t.start)))...), "  ")
}

// fold counts the rigs that have no line of their own.
func (t *table) fold(hidden []string) string {
	counts := map[fleet.Phase]int{}
	for _, n := range hidden {
		counts[t.active[n].phase]++
	}
	var parts []string
	for _, p := range []fleet.Phase{fleet.Connecting, fleet.Collecting, fleet.Probing} {
		if counts[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[p], p))
		}
	}
	finished := t.lost
	for _, k := range t.done {
		finished += k
	}
	if waiting := t.total - finished - len(t.active); waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", waiting))
	}
	if len(parts) == 0 {
		return ""
	}
	return "… and " + strings.Join(parts, ", ")
}

func cell(s string, room int) string {
	if w := text.StringWidth(s); w > room {
		return text.Snip(s, room, "…")
	}
	return text.Pad(s, room, ' ')
}

func paint(color bool, c text.Color, s string) string {
	if !color {
		return s
	}
	return "\x1b[" + fmt.Sprint(int(c)) + "m" + s + "\x1b[0m"
}

// elapsed is a time that a person reads: 4.2 s, 1m02s, 1h04m.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
