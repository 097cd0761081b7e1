package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Talk runs a script with /bin/sh as the login's own user, never as root, and hands its standard input and output to
// talk. The script has been read whole before talk is called, so what talk writes is the script's to read. When talk
// returns, the input is closed. When ctx ends, the session is closed, under talk as well: its reads and writes fail.
// The script's exit status is its own affair.
func (h *Host) Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error {
	c := &conversation{h: h, nonce: newNonce(), notes: &bounded{limit: stderrLimit}}
	done := make(chan error, 1)
	go func() { done <- c.whole(ctx, script, talk) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	go c.drop()
	select {
	case <-done:
	case <-time.After(abandon):
	}
	return context.Cause(ctx)
}

// conversation is one script that is talked with.
type conversation struct {
	h     *Host
	nonce string
	notes *bounded
	holder
}

func (c *conversation) whole(ctx context.Context, script []byte, talk func(io.WriteCloser, io.Reader) error) error {
	s, err := c.h.client.NewSession()
	if err != nil {
		return c.h.fail(PhaseSession, "the host opens no session: "+err.Error(), err)
	}
	defer func() { _ = s.Close() }()
	if !c.hold(s) {
		return context.Cause(ctx)
	}
	in, err := s.StdinPipe()
	if err != nil {
		return c.h.fail(PhaseSession, err.Error(), err)
	}
	stdout, err := s.StdoutPipe()
	if err != nil {
		return c.h.fail(PhaseSession, err.Error(), err)
	}
	s.Stderr = c.notes
	if err := s.Start(command); err != nil {
		return c.h.fail(PhaseSession, "the host runs no command: "+err.Error(), err)
	}
	go func() { _, _ = in.Write(fillTalk(script, c.nonce)) }()
	out := bufio.NewReaderSize(stdout, 32<<10)
	if err := c.begin(out); err != nil {
		return err
	}
	err = talk(in, out)
	_ = in.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	select {
	case waited := <-ended:
		var missing *ssh.ExitMissingError
		if err == nil && errors.As(waited, &missing) {
			err = c.h.fail(PhaseCommand, "the connection was cut while the script ran", waited)
		}
	case <-time.After(abandon): // something on the host holds the channel open
	}
	return err
}

// begin skips what the login prints before the script.
func (c *conversation) begin(out *bufio.Reader) error {
	seen, last := 0, ""
	for {
		line, err := out.ReadSlice('\n')
		seen += len(line)
		if strings.TrimRight(string(line), "\r\n") == c.nonce {
			return nil
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			last = text
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || err == nil:
		case errors.Is(err, io.EOF):
			summary := "the login shell ended before the script began"
			if said := pick(c.notes.last(), last); said != "" {
				summary += ": " + said
			}
			return c.h.fail(PhaseCommand, summary, err)
		default:
			return c.h.fail(PhaseCommand, "the connection was cut before the script began", err)
		}
		if seen > preambleLimit {
			return c.h.fail(PhaseCommand, fmt.Sprintf("the login prints more than %d bytes and never runs the script", preambleLimit), nil, "look at the shell's start-up files of this user")
		}
	}
}

// fillTalk makes one compound command of the script: the shell has read all of it before any of it runs.
func fillTalk(script []byte, nonce string) []byte {
	return []byte("{\nprintf '\\n%s\\n' " + nonce + "\neval " + quoted(script) + "\nexit $?\n}\n")
}
