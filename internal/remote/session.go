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
	"net"
	"strings"
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

// Address is the IP that the connection goes to; "" behind a jump host or a ProxyCommand, where only the proxy knows it.
func (h *Host) Address() string {
	if a, ok := h.client.RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
		return a.IP.String()
	}
	return ""
}

// Access says with which rights a script ran.
type Access struct {
	Root string // "root", "sudo" or "none"
	Why  string // why not root, when it is "none"
}

// Run runs a script with /bin/sh, as root where the login or sudo allow it, and copies its standard output. It takes
// one session. The script's own standard input is empty. When ctx ends, or stdout refuses to take more, the session is
// closed and not waited for; nothing is written to stdout after Run has returned.
func (h *Host) Run(ctx context.Context, script []byte, stdout io.Writer) (Access, error) {
	r := &run{h: h, nonce: newNonce(), stdout: &gate{w: stdout}, notes: &bounded{limit: stderrLimit}}
	done := make(chan error, 1)
	go func() { done <- r.whole(script) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
		patience := abandon
		if !r.opened() {
			patience = 0
		}
		go r.drop() // a connection that is stuck would hold it up
		select {
		case <-done:
		case <-time.After(patience):
		}
	}
	r.stdout.shut()
	return r.result(), err
}

// whole is one session from start to end.
func (r *run) whole(script []byte) error {
	s, err := r.h.client.NewSession()
	if err != nil {
		return r.h.fail(PhaseSession, "the host opens no session: "+err.Error(), err)
	}
	defer func() { _ = s.Close() }()
	if !r.hold(s) {
		return context.Canceled // nobody waits any more
	}
	if r.in, err = s.StdinPipe(); err != nil {
		return r.h.fail(PhaseSession, err.Error(), err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return r.h.fail(PhaseSession, err.Error(), err)
	}
	r.out = bufio.NewReaderSize(out, 32<<10)
	s.Stderr = r.notes
	if err := s.Start(command); err != nil {
		return r.h.fail(PhaseSession, "the host runs no command: "+err.Error(), err)
	}
	o := r.h.d.o
	go func() { _, _ = r.in.Write(fillBootstrap(script, r.nonce, o.AskBecome && o.Prompt != nil)) }()
	if err := r.copy(); err != nil {
		r.drop()
		return err
	}
	return r.ended(s)
}

// ended waits for the exit status; a host that does not give one is not waited for.
func (r *run) ended(s *ssh.Session) error {
	status := make(chan error, 1)
	go func() { status <- s.Wait() }()
	var err error
	select {
	case err = <-status:
	case <-time.After(abandon): // something on the host holds the channel open
	}
	r.mu.Lock()
	begun := r.begun
	r.mu.Unlock()
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case errors.As(err, &missing) && begun:
		return r.h.fail(PhaseCommand, "the connection was cut while the script ran", err)
	case errors.As(err, &missing):
		return r.h.fail(PhaseCommand, "the connection was cut before the script began", err)
	case begun && (err == nil || errors.As(err, &exit)):
		return nil // the script's own affair: its output says how it went
	case begun:
		return r.h.fail(PhaseCommand, err.Error(), err)
	}
	how := "without a status"
	if errors.As(err, &exit) {
		how = fmt.Sprintf("with %d", exit.ExitStatus())
	} else if err == nil {
		how = "with 0"
	}
	summary := "the login shell ended " + how + " before the script began"
	if said := pick(r.notes.last(), r.banner); said != "" {
		summary += ": " + said
	}
	return r.h.fail(PhaseCommand, summary, err, "does `ssh HOST 'exec /bin/sh -s' </dev/null` work? is it a restricted account?")
}

func (h *Host) fail(p Phase, summary string, err error, advice ...string) error {
	return &Error{Rig: h.rig, Phase: p, Summary: plain(summary), Advice: advice, Err: err}
}

// run is one script on its way.
type run struct {
	h      *Host
	nonce  string
	in     io.WriteCloser
	out    *bufio.Reader
	stdout *gate
	notes  *bounded // standard error
	banner string   // the last line that the login printed before the script began

	holder
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
		if text := strings.TrimSpace(string(line)); text != "" {
			r.banner = text
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
	r.access, r.begun = Access{Root: root, Why: plain(why)}, true
	r.mu.Unlock()
	_ = r.in.Close()
	_, err := io.Copy(r.stdout, r.out)
	return err
}

// password sends what sudo asks for, down the script's standard input.
func (r *run) password() error {
	question := "sudo password (all rigs): "
	pw, err := r.h.d.secret.once(question, false)
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
	return []byte(strings.NewReplacer("@NONCE@", nonce, "@ASK@", flag, "@BODY@", quoted(script)).Replace(bootstrap))
}

// quoted is a script as one word of the shell.
func quoted(script []byte) string {
	return "'" + strings.ReplaceAll(string(bytes.TrimRight(script, "\n")), "'", `'\''`) + "'"
}

func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return "preflight-" + hex.EncodeToString(b[:])
}
