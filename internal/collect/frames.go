package collect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// frame is one piece of the stream.
type frame struct {
	kind    string
	args    []string
	payload []byte
	offset  int64 // of the frame's marker in the stream, bytes
}

// frameReader splits a stream at its markers. It holds one frame at a time.
type frameReader struct {
	scan    *bufio.Scanner
	marker  []byte
	offset  int64 // of the token that Scan returned last
	next    int64 // of the token after it
	scanned int   // bytes of the pending token already searched for a marker
	started bool
	ended   bool   // the token at hand is the stream's last
	last    string // what the frame before was about, for errors
}

var errLimit = errors.New("the host sent more than it may")

func newFrameReader(r io.Reader, nonce string) *frameReader {
	f := &frameReader{marker: []byte("\n@@preflight " + nonce + " ")}
	f.scan = bufio.NewScanner(&cappedReader{r: r, left: MaxStream})
	f.scan.Buffer(make([]byte, 0, 64<<10), maxFrame)
	f.scan.Split(f.split)
	return f
}

// split gives the bytes between two markers, without either. The first token is whatever came before the first
// frame.
func (f *frameReader) split(data []byte, atEOF bool) (int, []byte, error) {
	from := max(0, f.scanned-len(f.marker))
	if i := bytes.Index(data[from:], f.marker); i >= 0 {
		f.scanned = 0
		return from + i + len(f.marker), data[:from+i], nil
	}
	f.scanned = len(data)
	if !f.started && len(data) > maxPreamble {
		return 0, nil, fmt.Errorf("%d bytes came before the collector's first frame: does a login script print without end?", len(data))
	}
	if atEOF {
		f.scanned, f.ended = 0, true
		return len(data), data, bufio.ErrFinalToken
	}
	return 0, nil, nil
}

// read gives the next frame; io.EOF after the last. The payload is valid until the next call.
func (f *frameReader) read() (frame, error) {
	if !f.started {
		if !f.scan.Scan() {
			return frame{}, f.err()
		}
		f.next = int64(len(f.scan.Bytes()))
		if err := f.scan.Err(); err != nil {
			return frame{}, f.err()
		}
		f.started = true
	}
	if !f.scan.Scan() {
		return frame{}, f.err()
	}
	token := f.scan.Bytes()
	f.offset = f.next
	f.next += int64(len(f.marker) + len(token))
	head, payload, ok := bytes.Cut(token, []byte("\n"))
	words := strings.Fields(string(head[:min(len(head), 1024)]))
	if !ok && f.ended {
		return frame{}, io.EOF // cut inside a marker line
	}
	if !ok || len(words) == 0 || len(head) > 1024 {
		return frame{}, &frameError{frame{offset: f.offset}, "no kind on its marker line, after " + f.after()}
	}
	fr := frame{kind: words[0], args: words[1:], payload: payload, offset: f.offset}
	f.last = strings.Join(words[:min(len(words), 2)], " ")
	if fr.kind == "files" && len(words) > 2 {
		f.last = "files " + words[2]
	}
	return fr, nil
}

func (f *frameReader) after() string {
	if f.last == "" {
		return "nothing"
	}
	return f.last
}

func (f *frameReader) err() error {
	switch err := f.scan.Err(); {
	case err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("frame at byte %d, after %s: %w (%d bytes in one frame)", f.next, f.after(), errLimit, maxFrame)
	case errors.Is(err, errLimit):
		return fmt.Errorf("after %s: %w (%d bytes in all)", f.after(), err, MaxStream)
	default:
		return err
	}
}

// cappedReader fails, rather than ends, when a stream is longer than it may be.
type cappedReader struct {
	r    io.Reader
	left int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLimit
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
