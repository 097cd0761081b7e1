package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"preflight/internal/fleet"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/remediation"
)

// stream writes rigs as they finish. Its file is not replaced at the end but grows, since somebody may be reading it: each
// line is whole, and the last one says that the run is complete.
type stream struct {
	mu   sync.Mutex
	w    io.Writer
	file *os.File // nil for standard output
	at   int64    // bytes of whole lines in file
	path string
	err  error // the first failure; nothing is written after it

	lang lang.Language
	cat  *remediation.Catalog
	rig  func(cat *remediation.Catalog, i int, r fleet.Result, l lang.Language) report.Rig
}

// streams begins every sink that is written while the run goes on.
func streams(env *environment, sinks []sink, t *target) ([]*stream, error) {
	var out []*stream
	for _, s := range sinks {
		if !s.stream {
			continue
		}
		cat, err := remediation.Load()
		if err != nil {
			return nil, failed(err)
		}
		x := &stream{w: env.stdout, path: "standard output", lang: s.language(env), cat: cat, rig: t.reportRig}
		if _, tty := terminal(env.stdout); s.path == "" && tty {
			env.noLive = true
		}
		if s.path != "" {
			if x.file, err = os.Create(s.path); err != nil {
				return nil, failed(err)
			}
			x.w, x.path = x.file, s.path
		}
		out = append(out, x)
	}
	return out, nil
}

// finished writes the line of one rig.
func (s *stream) finished(i int, r fleet.Result) {
	one := (&report.Report{Rigs: []report.Rig{s.rig(s.cat, i, r, s.lang)}}).In(s.lang)
	s.write(func(w io.Writer) error { return report.RigLine(w, one.Rigs[0]) })
}

// end writes what is known when every rig is finished, and closes.
func (s *stream) end(build func(lang.Language) (*report.Report, error)) error {
	r, err := build(s.lang)
	if err != nil {
		return err
	}
	s.write(func(w io.Writer) error { return report.EndLines(w, r.In(s.lang)) })
	if s.file != nil {
		if err := s.file.Close(); err != nil && s.err == nil {
			s.err = err
		}
	}
	if s.err != nil {
		return fmt.Errorf("write %s: %w", s.path, s.err)
	}
	return nil
}

func (s *stream) write(fill func(io.Writer) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	count := &counter{w: s.w}
	if s.err = fill(count); s.err == nil {
		s.at += count.n
		return
	}
	if s.file != nil && !special(s.path) { // a full disk leaves half a line: take it away
		s.err = errors.Join(s.err, s.file.Truncate(s.at))
	}
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
