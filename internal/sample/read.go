package sample

import (
	"bufio"
	"context"
	_ "embed" // the reader
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

//go:embed reader.sh
var reader string

// Talker runs a script on a host and keeps its input and output open; remote hosts and this machine are such.
type Talker interface {
	Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error
}

// Shortest and Longest bound the interval of samples.
const (
	Shortest = time.Second
	Longest  = time.Minute
)

// longestLine bounds one line of a host, bytes.
const longestLine = 4096

// Read keeps the reader running on a host and hands on what it says, until ctx ends, heard returns an error, or the host goes
// away. It returns ctx's cause, that error, or why the host is gone; never nil. heard is called from one goroutine.
func Read(ctx context.Context, host Talker, interval time.Duration, heard func(Item) error) error {
	if interval < Shortest || interval > Longest {
		return fmt.Errorf("interval %s: %s to %s", interval, Shortest, Longest)
	}
	script := strings.Replace(reader, "@INTERVAL@", fmt.Sprint(int(interval.Seconds())), 1)
	err := host.Talk(ctx, []byte(script), func(_ io.WriteCloser, out io.Reader) error {
		var p Parser
		in := bufio.NewReaderSize(out, longestLine)
		for {
			line, err := in.ReadSlice('\n')
			for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line that is too long
				_, err = in.ReadSlice('\n')
				line = nil
			}
			if err != nil {
				return err
			}
			if item := p.Line(string(line)); item != nil {
				if err := heard(*item); err != nil {
					return err
				}
			}
		}
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || errors.Is(err, io.EOF):
		return errors.New("the reader on the host ended")
	}
	return err
}
