package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the bootstrap
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

//go:embed bootstrap.sh
var bootstrap string

// command is all that is ever run on a host: the login shell sees nothing else, so fish, csh and shells that print
// banners do no harm.
const command = "exec /bin/sh -s"

// stderrLimit bounds what is kept of a script's standard error, bytes.
const stderrLimit = 64 << 10

// abandon is how long a closed session is waited for; after that it is left to the host.
const abandon = 2 * time.Second

// Host is a connected rig.
type Host struct {
	client *ssh.Client
	d      *Dialer
	rig    string
	user   string
}

// Close ends the connection.
func (h *Host) Close() error { return h.client.Close() }

// Access says with which rights a script ran.
type Access struct {
	Root string // "root", "sudo" or "none"
	Why  string // why not root, when it is "none"
}

// Run runs a script with /bin/sh, as root where the login or sudo allow it, and copies its standard output. It takes
// one session. When ctx ends, or stdout refuses to take more, the session is closed and not waited for.
func (h *Host) Run(ctx context.Context, script []byte, stdout io.Writer) (Access, error) {
	s, err := h.client.NewSession()
	if err != nil {
		return Access{}, h.fail(PhaseSession, "the host opens no session: "+err.Error(), err)
	}
	defer func() { _ = s.Close() }()
	in, err := s.StdinPipe()
	if err != nil {
		return Access{}, h.fail(PhaseSession, err.Error(), err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return Access{}, h.fail(PhaseSession, err.Error(), err)
	}
	notes := &bounded{limit: stderrLimit}
	s.Stderr = notes
	if err := s.Start(command); err != nil {
		return Access{}, h.fail(PhaseSession, "the host runs no command: "+err.Error(), err)
	}
	r := &run{h: h, nonce: newNonce(), in: in, out: bufio.NewReaderSize(out, 32<<10), stdout: stdout}
	go func() { _, _ = in.Write(fillBootstrap(script, r.nonce, h.d.o.AskBecome && h.d.o.Prompt != nil)) }()
	done := make(chan error, 1)
	go func() { done <- r.copy() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = s.Close()
		select {
		case <-done:
		case <-time.After(abandon):
		}
		return r.result(), context.Cause(ctx)
	}
	if err != nil {
		return r.result(), err
	}
	return r.result(), h.ended(s, notes, r.begun)
}

// ended waits for the exit status; a host that does not give one is not waited for.
func (h *Host) ended(s *ssh.Session, notes *bounded, begun bool) error {
	status := make(chan error, 1)
	go func() { status <- s.Wait() }()
	var err error
	select {
	case err = <-status:
	case <-time.After(abandon):
		return nil
	}
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case err == nil, errors.As(err, &exit) && begun:
		return nil // the script's own affair: its output says how it went
	case errors.As(err, &exit):
		return h.fail(PhaseCommand, fmt.Sprintf("the login shell ended with %d before the script began%s", exit.ExitStatus(), notes.last()), err, "does `ssh HOST 'exec /bin/sh -s' </dev/null` work?")
	case errors.As(err, &missing):
		return h.fail(PhaseCommand, "the connection was cut while the script ran", err)
	}
	return h.fail(PhaseCommand, err.Error(), err)
}

func (h *Host) fail(p Phase, summary string, err error, advice ...string) error {
	return &Error{Rig: h.rig, Phase: p, Summary: summary, Advice: advice, Err: err}
}

// run is one script on its way.
type run struct {
	h      *Host
	nonce  string
	in     io.WriteCloser
	out    *bufio.Reader
	stdout io.Writer

	mu     sync.Mutex
	access Access
	begun  bool
}

func (r *run) result() Access {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.access
}

// preambleLimit bounds what a login may print before the script begins, bytes.
const preambleLimit = 256 << 10

// copy answers the bootstrap's lines until the script begins, then passes its output on.
func (r *run) copy() error {
	defer func() { _ = r.in.Close() }()
	seen := 0
	for {
		line, err := r.out.ReadSlice('\n')
		seen += len(line)
		if rest, ok := strings.CutPrefix(string(line), r.nonce+" "); ok {
			word, value, _ := strings.Cut(strings.TrimRight(rest, "\r\n"), " ")
			switch word {
			case "password":
				if err := r.password(); err != nil {
					return err
				}
			case "begin":
				return r.begin(value)
			}
			continue
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil // ended tells why
		case err != nil:
			return r.h.fail(PhaseCommand, "the connection was cut before the script began", err)
		}
		if seen > preambleLimit {
			return r.h.fail(PhaseCommand, fmt.Sprintf("the login prints more than %d bytes and never runs the script", preambleLimit), nil, "look at the shell's start-up files of this user")
		}
	}
}

// begin notes the rights and passes the rest of the output on.
func (r *run) begin(value string) error {
	root, why, _ := strings.Cut(value, " ")
	r.mu.Lock()
	r.access, r.begun = Access{Root: root, Why: why}, true
	r.mu.Unlock()
	_ = r.in.Close()
	_, err := io.Copy(r.stdout, r.out)
	return err
}

// password sends what sudo asks for, down the script's standard input.
func (r *run) password() error {
	question := "sudo password (all rigs): "
	pw, err := r.h.d.secret.ask(question, false)
	if err != nil {
		pw = ""
	}
	line := append([]byte(pw), '\n')
	defer clear(line)
	if _, err := r.in.Write(line); err != nil {
		return r.h.fail(PhaseCommand, "the connection was cut while sudo asked for the password", err)
	}
	return nil
}

// fillBootstrap puts the script, as one quoted word, behind what decides about root.
func fillBootstrap(script []byte, nonce string, ask bool) []byte {
	flag := "0"
	if ask {
		flag = "1"
	}
	quoted := "'" + strings.ReplaceAll(string(bytes.TrimRight(script, "\n")), "'", `'\''`) + "'"
	return []byte(strings.NewReplacer("@NONCE@", nonce, "@ASK@", flag, "@BODY@", quoted).Replace(bootstrap))
}

func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return "preflight-" + hex.EncodeToString(b[:])
}

// bounded keeps the first bytes of a stream.
type bounded struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
}

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
	if s := strings.TrimSpace(lines[len(lines)-1]); s != "" {
		return ": " + s
	}
	return ""
}
