package collect

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

func TestLocalTalk(t *testing.T) {
	err := Shell{}.Talk(t.Context(), []byte("echo ready; read -r x; echo \"$x\""), func(in io.WriteCloser, out io.Reader) error {
		lines := bufio.NewScanner(out)
		if lines.Scan(); lines.Text() != "ready" {
			t.Errorf("it began with %q", lines.Text())
		}
		_, _ = io.WriteString(in, "hello\n")
		if lines.Scan(); lines.Text() != "hello" {
			t.Errorf("it said %q", lines.Text())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = Shell{}.Talk(ctx, []byte("trap '' TERM; sleep 60; sleep 60"), func(_ io.WriteCloser, out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 8*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}
