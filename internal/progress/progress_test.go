package progress

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/fleet"
)

// at is a table after events, each some seconds after the start.
func at(total int, events map[time.Duration]fleet.Event, order ...time.Duration) (*table, time.Time) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	t := &table{total: total, start: start, active: map[string]state{}, done: map[checks.Verdict]int{}}
	for _, d := range order {
		t.note(events[d], start.Add(d))
	}
	return t, start
}

func TestFrame(t *testing.T) {
	s := time.Second
	tab, start := at(6, map[time.Duration]fleet.Event{
		1 * s: {Rig: "node-a", Phase: fleet.Connecting},
		2 * s: {Rig: "node-b", Phase: fleet.Connecting},
		3 * s: {Rig: "node-a", Phase: fleet.Collecting},
		4 * s: {Rig: "node-a", Phase: fleet.Collecting, Message: "reading nvidia-smi.xml"},
		5 * s: {Rig: "node-c", Phase: fleet.Done, Verdict: checks.Pass},
		6 * s: {Rig: "node-d", Phase: fleet.Done, Verdict: checks.Fail},
		7 * s: {Rig: "node-e", Phase: fleet.Done, Verdict: checks.Unknown, Err: errors.New("refused"), Lost: true},
		8 * s: {Rig: "node-b", Phase: fleet.Probing, Message: "all-reduce of 64 MiB\x1b[2J"},
	}, 1*s, 2*s, 3*s, 4*s, 5*s, 6*s, 7*s, 8*s)
	want := []string{
		"3 of 6 rigs  ✓ 1  ✗ 1  1 not reached  1m10s",
		"  node-a               collect       1m09s  reading nvidia-smi.xml",
		"  node-b               probe nccl    1m08s  all-reduce of 64 MiB?[2J",
		"  … and 1 waiting",
		"  ✗ node-d, node-e",
	}
	if d := cmp.Diff(want, tab.frame(start.Add(70*s), 100, 24, false)); d != "" {
		t.Error(d)
	}
}

// However many rigs and however small the terminal, a frame stays on it.
func TestFrameFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 60}, {10, 2}} {
		events := map[time.Duration]fleet.Event{}
		var order []time.Duration
		for i := range 500 {
			d := time.Duration(i) * time.Millisecond
			e := fleet.Event{Rig: fmt.Sprintf("节点-with-a-very-long-name-%03d", i), Phase: fleet.Collecting}
			if i%5 == 0 {
				e.Phase, e.Verdict = fleet.Done, checks.Fail
			}
			events[d], order = e, append(order, d)
		}
		tab, start := at(600, events, order...)
		frame := tab.frame(start.Add(time.Minute), size[0], size[1], true)
		if most := max(size[1]-1, 4); len(frame) > most {
			t.Errorf("%d lines on a terminal of %v", len(frame), size)
		}
		for _, l := range frame {
			if w := text.StringWidthWithoutEscSequences(l); w >= max(size[0], 11) {
				t.Errorf("%d columns on a terminal of %v: %q", w, size, l)
			}
		}
		if !strings.Contains(strings.Join(frame, "\n"), "collect, 100 waiting") && size[0] >= 80 {
			t.Errorf("the fold does not count: %q", frame)
		}
	}
}

// Piped, progress is plain lines: no escape codes, one for each phase, none for messages.
func TestPlainLines(t *testing.T) {
	var b bytes.Buffer
	s := New(&b, Options{Total: 1})
	s.Event(fleet.Event{Rig: "a", Phase: fleet.Connecting})
	s.Event(fleet.Event{Rig: "a", Phase: fleet.Collecting})
	s.Event(fleet.Event{Rig: "a", Phase: fleet.Collecting, Message: "reading dmesg.txt"})
	s.Event(fleet.Event{Rig: "a", Phase: fleet.Done, Verdict: checks.Pass, Elapsed: 1200 * time.Millisecond})
	s.Close()
	want := "preflight: a: connecting\npreflight: a: reading facts (nvidia-smi may take a while)\npreflight: a: pass after 1.2 s\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// What is written aside stands alone: the table is gone before it, and gone again at the end.
func TestAsideLiftsTheTable(t *testing.T) {
	var b bytes.Buffer
	s := New(&b, Options{Live: true, Total: 1})
	s.Event(fleet.Event{Rig: "a", Phase: fleet.Connecting})
	s.mu.Lock()
	s.draw()
	s.mu.Unlock()
	s.Aside(func() { b.WriteString("password: ") })
	s.Close()
	out := b.String()
	before, _, _ := strings.Cut(out, "password: ")
	if !strings.HasSuffix(before, "\x1b[J") {
		t.Errorf("the table was not lifted: %q", before)
	}
	if !strings.Contains(before, "connecting") {
		t.Errorf("no table was drawn: %q", before)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0 s", 4200 * time.Millisecond: "4.2 s", 62 * time.Second: "1m02s", 64 * time.Minute: "1h04m"} {
		if got := elapsed(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

// A load that lasts has a line a minute in a log, and not one for each message.
func TestLoadIsToldInALog(t *testing.T) {
	var b bytes.Buffer
	s := New(&b, Options{Total: 1})
	for range 5 {
		s.Event(fleet.Event{Rig: "node-a", Phase: fleet.Burning, Message: "under load 10 of 1800 s", Elapsed: time.Second})
		s.Event(fleet.Event{Rig: "node-a", Phase: fleet.Probing, Message: "all-reduce", Elapsed: time.Second})
	}
	s.mu.Lock()
	s.said["node-a"] = time.Now().Add(-loadEvery)
	s.mu.Unlock()
	s.Event(fleet.Event{Rig: "node-a", Phase: fleet.Burning, Message: "under load 70 of 1800 s", Elapsed: time.Second})
	s.Close()
	if want := "preflight: node-a: under load 10 of 1800 s\npreflight: node-a: under load 70 of 1800 s\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}
