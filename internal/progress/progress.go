// Package progress shows what every rig of a run is at: a live block on a terminal, plain lines elsewhere.
//
// What never lives here: results. They go to standard output when they are final; progress goes to standard error.
package progress

import (
	"fmt"
	"io"
	"sort"
	"sync"
	"time"

	"preflight/internal/fleet"
)

// maxLines is how many rigs the live block shows; the rest is counted.
const maxLines = 12

// Shower receives events and draws them. Make one with New, and Close it before anything else is written.
type Shower struct {
	w     io.Writer
	live  bool
	width int
	total int

	mu     sync.Mutex
	active map[string]state
	done   int
	failed int
	drawn  int // lines of the block on the screen
	start  time.Time
	stop   chan struct{}
	idle   sync.WaitGroup
}

type state struct {
	phase fleet.Phase
	since time.Time
	began time.Time
}

// New makes a shower for a run over total rigs. Live draws a block that is redrawn in place; it wants a terminal of
// the given width.
func New(w io.Writer, live bool, width, total int) *Shower {
	s := &Shower{w: w, live: live, width: width, total: total, active: map[string]state{}, start: time.Now(), stop: make(chan struct{})}
	if live {
		s.idle.Add(1)
		go s.tick()
	}
	return s
}

// Event notes one step of a rig.
func (s *Shower) Event(e fleet.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Phase == fleet.Done {
		delete(s.active, e.Rig)
		s.done++
		if e.Err != nil || e.Verdict == "fail" {
			s.failed++
		}
	} else {
		now := time.Now()
		st := state{phase: e.Phase, since: now, began: now}
		if old, ok := s.active[e.Rig]; ok {
			st.began = old.began
		}
		s.active[e.Rig] = st
	}
	if !s.live {
		s.plain(e)
	}
}

func (s *Shower) plain(e fleet.Event) {
	if e.Phase == fleet.Done && e.Verdict == "" {
		_, _ = fmt.Fprintf(s.w, "preflight: %s: read in %.1f s\n", e.Rig, e.Elapsed.Seconds())
		return
	}
	if e.Phase == fleet.Done {
		_, _ = fmt.Fprintf(s.w, "preflight: %s: %s after %.1f s\n", e.Rig, e.Verdict, e.Elapsed.Seconds())
		return
	}
	_, _ = fmt.Fprintf(s.w, "preflight: %s: %s\n", e.Rig, waits(e.Phase))
}

// waits says in words what a phase waits for.
func waits(p fleet.Phase) string {
	switch p {
	case fleet.Connecting:
		return "connecting"
	case fleet.Collecting:
		return "reading facts (nvidia-smi may take a while)"
	case fleet.Probing:
		return "measuring copies and the all-reduce"
	}
	return string(p)
}

func (s *Shower) tick() {
	defer s.idle.Done()
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			s.mu.Lock()
			s.erase()
			s.mu.Unlock()
			return
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

func (s *Shower) erase() {
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(s.w, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *Shower) draw() {
	names := make([]string, 0, len(s.active))
	for n := range s.active {
		names = append(names, n)
	}
	sort.Strings(names)
	lines := []string{fmt.Sprintf("%d of %d rigs done, %d with faults, %.0f s", s.done, s.total, s.failed, time.Since(s.start).Seconds())}
	for i, n := range names {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("  … and %d more", len(names)-maxLines))
			break
		}
		st := s.active[n]
		lines = append(lines, fmt.Sprintf("  %-20s %-46s %4.0f s", n, waits(st.phase), time.Since(st.began).Seconds()))
	}
	s.erase()
	for _, l := range lines {
		if r := []rune(l); s.width > 0 && len(r) >= s.width {
			l = string(r[:s.width-1])
		}
		_, _ = io.WriteString(s.w, l+"\n")
	}
	s.drawn = len(lines)
}

// Close ends the live block and wipes it.
func (s *Shower) Close() {
	if s.live {
		close(s.stop)
		s.idle.Wait()
	}
}

// Quiet is a shower that shows nothing.
func Quiet() *Shower { return New(discard{}, false, 0, 0) }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
