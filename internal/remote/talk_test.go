package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// talker connects to a host whose scripts are run by a shell.
func talker(t *testing.T, start string) *Host {
	t.Helper()
	c := newClient(t)
	s := serve(t, c.pub)
	s.shell = strings.Fields(start)
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Megabytes of any bytes arrive whole at a script that asks for them, whatever shell runs it.
func TestTalkCarriesBytes(t *testing.T) {
	for name, start := range shells(t) {
		t.Run(name, func(t *testing.T) {
			h := talker(t, start)
			raw := make([]byte, 3<<20+17)
			_, _ = rand.Read(raw)
			var sum string
			err := h.Talk(t.Context(), []byte("echo 'ready '\"$((6*7))\"\nIFS= read -r n\nhead -c \"$n\" | sha256sum\necho stored\nIFS= read -r last\necho \"$last\""), func(in io.WriteCloser, out io.Reader) error {
				lines := bufio.NewScanner(out)
				if !lines.Scan() || lines.Text() != "ready 42" {
					return fmt.Errorf("it began with %q", lines.Text())
				}
				if _, err := fmt.Fprintf(in, "%d\n", len(raw)); err != nil {
					return err
				}
				if _, err := in.Write(raw); err != nil {
					return err
				}
				lines.Scan()
				sum, _, _ = strings.Cut(lines.Text(), " ")
				if !lines.Scan() || lines.Text() != "stored" {
					return fmt.Errorf("then came %q", lines.Text())
				}
				if _, err := io.WriteString(in, "good bye\n"); err != nil {
					return err
				}
				if !lines.Scan() || lines.Text() != "good bye" {
					return fmt.Errorf("it ended with %q", lines.Text())
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%x", sha256.Sum256(raw)); sum != want {
				t.Errorf("the host has %s of %s", sum, want)
			}
		})
	}
}

func TestTalkEndsWithItsContext(t *testing.T) {
	h := talker(t, "/bin/sh -s")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := h.Talk(ctx, []byte("read -r x; sleep 60"), func(_ io.WriteCloser, out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestTalkGivesTheErrorOfTalk(t *testing.T) {
	h := talker(t, "/bin/sh -s")
	mine := errors.New("mine")
	var left bytes.Buffer
	if err := h.Talk(t.Context(), []byte("cat"), func(in io.WriteCloser, out io.Reader) error {
		_ = in.Close()
		_, _ = io.Copy(&left, out)
		return mine
	}); !errors.Is(err, mine) || left.Len() != 0 {
		t.Errorf("%v, %q", err, left.String())
	}
}

func TestTalkSaysWhyALoginEndsEarly(t *testing.T) {
	h := talker(t, "/bin/echo this account is closed")
	err := h.Talk(t.Context(), []byte("echo never"), func(io.WriteCloser, io.Reader) error {
		t.Error("talked with a shell that never ran the script")
		return nil
	})
	if phase, text := phaseOf(t, err); phase != PhaseCommand || !strings.Contains(text, "this account is closed") {
		t.Errorf("%s: %s", phase, text)
	}
}
