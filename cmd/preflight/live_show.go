package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"preflight/internal/watch"
)

// Times between frames.
const (
	liveFrame  = 500 * time.Millisecond
	plainFrame = 10 * time.Second
)

// show draws until ctx ends or all rigs are done.
func (l *live) show(ctx context.Context, over <-chan struct{}) {
	_, tty := terminal(l.env.stdout)
	switch {
	case l.f.once:
		l.wait(ctx, over)
		l.final()
	case l.f.format == "prometheus":
		l.every(ctx, over, l.f.interval, l.exposition)
	case l.f.format != "" && l.f.record == "":
		l.wait(ctx, over) // samples go to standard output
	case tty && os.Getenv("TERM") != "dumb":
		l.screen(ctx, over)
		l.final()
	default:
		l.every(ctx, over, max(plainFrame, l.f.interval), l.final)
	}
}

func (l *live) wait(ctx context.Context, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-over:
	}
}

// every does something at an interval, and once at the end.
func (l *live) every(ctx context.Context, over <-chan struct{}, interval time.Duration, do func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			do()
			return
		case <-over:
			do()
			return
		case <-t.C:
			do()
		}
	}
}

// final writes all rigs as plain lines, or what the format asks for.
func (l *live) final() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f.format == "prometheus" {
		l.expose()
		return
	}
	if l.f.format != "" && l.f.record == "" {
		return // standard output belongs to the samples
	}
	v := l.view
	v.Color = colors(l.env.stdout)
	_, _ = fmt.Fprintln(l.env.stdout, strings.Join(v.Frame(l.fleet.Rigs(), time.Now()), "\n"))
}

func (l *live) exposition() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expose()
}

// expose writes Prometheus' text: to a file that is always whole, or to standard output.
func (l *live) expose() {
	rigs := l.fleet.Rigs()
	var err error
	if l.f.record == "" {
		err = watch.Exposition(l.env.stdout, rigs)
	} else {
		err = writeWhole(l.f.record, func(w io.Writer) error { return watch.Exposition(w, rigs) })
	}
	if err != nil && l.failed == nil {
		l.failed = err
		l.stop(err)
	}
}

// What a terminal is told: its other screen, so that what stood there is there again afterwards, and no cursor.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l"
	ownScreen   = "\x1b[?25h\x1b[?1049l"
)

// screen draws frames on the terminal's other screen. Questions for a password or a host key are asked on its own.
func (l *live) screen(ctx context.Context, over <-chan struct{}) {
	out := l.env.stdout
	_, _ = io.WriteString(out, otherScreen)
	l.env.asides = func(do func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, _ = io.WriteString(out, ownScreen)
		do()
		_, _ = io.WriteString(out, otherScreen)
	}
	defer func() {
		l.env.asides = nil
		_, _ = io.WriteString(out, ownScreen)
	}()
	l.every(ctx, over, liveFrame, func() {
		v := l.view
		v.Color = colors(out)
		v.Columns, v.Rows = size(out)
		var b bytes.Buffer
		b.WriteString("\x1b[H")
		for _, line := range v.Frame(l.fleet.Rigs(), time.Now()) {
			b.WriteString(line + "\x1b[K\r\n")
		}
		b.WriteString("\x1b[J")
		l.mu.Lock()
		defer l.mu.Unlock()
		_, _ = out.Write(b.Bytes())
	})
}
