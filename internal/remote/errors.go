package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"unicode"
)

// Phase is where reaching a rig failed.
type Phase string

// The phases, in the order in which a connection goes through them.
const (
	PhaseResolve   Phase = "resolve" // configuration, names
	PhaseJump      Phase = "jump"
	PhaseConnect   Phase = "connect"
	PhaseHandshake Phase = "handshake"
	PhaseHostKey   Phase = "host-key"
	PhaseAuth      Phase = "auth"
	PhaseSession   Phase = "session"
	PhaseCommand   Phase = "command"
)

// Error is why a rig could not be used. It names the rig, the phase, and what to do.
type Error struct {
	Rig     string
	Phase   Phase
	Summary string
	Advice  []string
	Err     error
}

// Error is one line, without the rig's name.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Phase, e.Summary)
	if len(e.Advice) > 0 {
		s += " (" + strings.Join(e.Advice, "; ") + ")"
	}
	return s
}

// Unwrap gives the error beneath.
func (e *Error) Unwrap() error { return e.Err }

// connectError puts a failed connection into words.
func connectError(t settings, err error) *Error {
	e := &Error{Phase: PhaseConnect, Summary: err.Error(), Err: err}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		e.Phase, e.Summary = PhaseResolve, fmt.Sprintf("the name %s cannot be looked up: %s", t.host, dns.Err)
		e.Advice = []string{"does the name server of this machine answer?"}
		if dns.IsNotFound {
			e.Summary = fmt.Sprintf("the name %s does not resolve", t.host)
			e.Advice = []string{"correct `address` in the inventory, or add the host to ~/.ssh/config or DNS"}
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		e.Summary = fmt.Sprintf("no answer from %s within %s", t.hostPort(), t.timeout)
		e.Advice = []string{"is the host up, and is the port open? try: nc -vz " + t.host + " " + t.port}
	case strings.Contains(err.Error(), "connection refused"):
		e.Summary = fmt.Sprintf("%s refuses the connection", t.hostPort())
		e.Advice = []string{"start sshd on the host, or correct the port"}
	case strings.Contains(err.Error(), "no route to host"), strings.Contains(err.Error(), "network is unreachable"):
		e.Summary = "no route to " + t.hostPort()
		e.Advice = []string{"check the network, or set jump_host"}
	}
	return e
}

// plainLimit bounds what is shown of a host's words, characters.
const plainLimit = 400

// plain makes text from a host harmless for a terminal and short enough for a line.
func plain(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n++; n > plainLimit {
			b.WriteString(" …")
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
