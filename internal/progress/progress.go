// Package progress shows what every rig of a run is at: a live table on a terminal, plain lines elsewhere.
//
// What never lives here: results. They go to standard output when they are final; progress goes to standard error.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"preflight/checks"
	"preflight/internal/fleet"
)

// Options say where and how progress is shown.
type Options struct {
	Live  bool                        // a table that is redrawn in place; it wants a terminal
	Color bool                        // of the live table
	Size  func() (columns, lines int) // of the terminal, asked anew for each frame; nil means 80 × 24
	Total int                         // rigs of the run
}

// Shower receives events and draws them. Make one with New, and Close it before anything else is written.
type Shower struct {
	w io.Writer
	o Options

	mu    sync.Mutex
	table table
	drawn int                  // lines of the table on the screen
	said  map[string]time.Time // when a rig under load last had a plain line
	stop  chan struct{}
	idle  sync.WaitGroup
}

// New makes a shower for one run.
func New(w io.Writer, o Options) *Shower {
	if o.Size == nil {
		o.Size = func() (int, int) { return 80, 24 }
	}
	s := &Shower{w: w, o: o, table: table{total: o.Total, start: time.Now(), active: map[string]state{}, done: map[checks.Verdict]int{}}, said: map[string]time.Time{}, stop: make(chan struct{})}
	if o.Live {
		s.idle.Add(1)
		go s.tick()
	}
	return s
}

// Event notes one step of a rig.
func (s *Shower) Event(e fleet.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.note(e, time.Now())
	if !s.o.Live {
		s.plain(e)
	}
}

// Aside does something that writes to the terminal, or reads from it, while the table is lifted.
func (s *Shower) Aside(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	s.erase(&b)
	_, _ = s.w.Write(b.Bytes())
	do()
}

// loadEvery is how often a rig under load has a line in a log: half an hour of silence would look like a hang.
const loadEvery = time.Minute

// plain writes a line for each phase; messages within a phase would be too many, but for those of a load that lasts.
func (s *Shower) plain(e fleet.Event) {
	switch {
	case e.Message != "" && e.Phase == fleet.Burning && e.Elapsed > 0 && time.Since(s.said[e.Rig]) >= loadEvery:
		s.said[e.Rig] = time.Now()
		_, _ = fmt.Fprintf(s.w, "preflight: %s: %s\n", e.Rig, e.Message)
	case e.Message != "":
	case e.Phase == fleet.Done && e.Verdict == "":
		_, _ = fmt.Fprintf(s.w, "preflight: %s: read in %.1f s\n", e.Rig, e.Elapsed.Seconds())
	case e.Phase == fleet.Done:
		_, _ = fmt.Fprintf(s.w, "preflight: %s: %s after %.1f s\n", e.Rig, e.Verdict, e.Elapsed.Seconds())
	default:
		_, _ = fmt.Fprintf(s.w, "preflight: %s: %s\n", e.Rig, waits(e.Phase))
	}
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
			var b bytes.Buffer
			s.erase(&b)
			_, _ = s.w.Write(b.Bytes())
			s.mu.Unlock()
			return
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// erase takes the table off the screen.
func (s *Shower) erase(b *bytes.Buffer) {
	if s.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw writes a frame over the last one in one call, so that nothing flickers.
func (s *Shower) draw() {
	columns, lines := s.o.Size()
	frame := s.table.frame(time.Now(), columns, lines, s.o.Color)
	var b bytes.Buffer
	if s.drawn > len(frame) {
		s.erase(&b)
	}
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	for _, l := range frame {
		b.WriteString(l + "\x1b[K\n")
	}
	s.drawn = len(frame)
	_, _ = s.w.Write(b.Bytes())
}

// Close ends the live table and wipes it.
func (s *Shower) Close() {
	if s.o.Live {
		close(s.stop)
		s.idle.Wait()
	}
}
