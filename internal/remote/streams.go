package remote

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// gate passes writes on until it is shut.
type gate struct {
	mu   sync.Mutex
	w    io.Writer
	done bool
}

// Write implements io.Writer.
func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return 0, io.ErrClosedPipe
	}
	return g.w.Write(p)
}

// shut waits for a write that is under way, and refuses later ones.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
}

// bounded keeps the first bytes of a stream.
type bounded struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := b.limit - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// last is the last line that was written, for a message.
func (b *bounded) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(b.buf.String()), "\n")
	return plain(lines[len(lines)-1])
}
