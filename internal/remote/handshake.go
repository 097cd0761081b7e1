package remote

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// reach opens a connection to one host, directly or through a jump host.
func (d *Dialer) reach(ctx context.Context, t settings, via *jump) (*ssh.Client, error) {
	conn, err := d.connect(ctx, t, via)
	switch {
	case err == nil:
		return d.handshake(ctx, t, conn)
	case via != nil:
		return nil, d.jumpError(ctx, t, via, err)
	case ctx.Err() != nil:
		return nil, &Error{Phase: PhaseConnect, Summary: "interrupted", Err: context.Cause(ctx)}
	}
	return nil, connectError(t, err)
}

// connect opens the byte stream to a host: TCP, through a jump host, or by a ProxyCommand.
func (d *Dialer) connect(ctx context.Context, t settings, via *jump) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	switch {
	case via != nil:
		return via.client.DialContext(ctx, "tcp", t.hostPort())
	case t.proxyCommand != "" && !strings.EqualFold(t.proxyCommand, "none"):
		return startProxy(t.tokens(t.proxyCommand, d), t)
	}
	return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", t.hostPort())
}

// handshake authenticates both sides. A server that says nothing is dropped at the deadline.
func (d *Dialer) handshake(ctx context.Context, t settings, conn net.Conn) (*ssh.Client, error) {
	a := &attempt{d: d, t: t}
	drop := func() { _ = conn.Close(); a.close() }
	stop := context.AfterFunc(ctx, drop)
	defer stop()
	a.clock = newClock(t.timeout, drop)
	defer a.close()
	var keyErr error
	verify, algorithms, err := d.hostKeys(t, &keyErr)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	cfg := &ssh.ClientConfig{User: t.user, Auth: a.methods(), HostKeyCallback: verify, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-preflight"}
	c, chans, reqs, err := ssh.NewClientConn(conn, t.hostPort(), cfg)
	if late := a.clock.stop(); err == nil && late {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		_ = conn.Close()
		if p, ok := conn.(*proxyConn); ok && keyErr == nil {
			if said := p.said(); said != "" {
				err = fmt.Errorf("%w; ProxyCommand says: %s", err, said)
			}
		}
		return nil, a.failed(ctx, err, keyErr)
	}
	client := ssh.NewClient(c, chans, reqs)
	go keepalive(client, d.o.Keepalive)
	return client, nil
}

// failed puts a failed handshake into words.
func (a *attempt) failed(ctx context.Context, err, keyErr error) error {
	t, text := a.t, err.Error()
	tried := pick(strings.Join(a.offered, ", "), "nothing: no key, no agent")
	switch {
	case keyErr != nil:
		return keyErr
	case ctx.Err() != nil:
		return &Error{Phase: PhaseHandshake, Summary: "interrupted", Err: context.Cause(ctx)}
	case a.clock.late.Load():
		return &Error{
			Phase: PhaseHandshake, Summary: fmt.Sprintf("%s accepts connections but does not finish the SSH handshake within %s", t.hostPort(), t.timeout), Err: os.ErrDeadlineExceeded,
			Advice: []string{"is it sshd that listens there? look at the host's load and its sshd log"},
		}
	case a.refused != nil:
		return &Error{Phase: PhaseAuth, Summary: a.refused.Error(), Err: a.refused, Advice: []string{"load the key into the agent: ssh-add"}}
	case strings.Contains(strings.ToLower(text), "too many authentication failures"):
		return &Error{
			Phase: PhaseAuth, Summary: fmt.Sprintf("%s hangs up after too many keys; tried %s", t.hostPort(), tried), Err: err,
			Advice: []string{"name the right key with identity_files or IdentityFile, and set IdentitiesOnly yes in ~/.ssh/config"},
		}
	case strings.Contains(text, "unable to authenticate"), strings.Contains(text, "no supported methods remain"):
		return &Error{
			Phase: PhaseAuth, Summary: fmt.Sprintf("%s refuses %s; tried %s", t.hostPort(), t.user, tried), Err: err,
			Advice: []string{fmt.Sprintf("ssh-copy-id -p %s %s@%s", t.port, t.user, t.host), "or load the key into the agent: ssh-add"},
		}
	}
	return &Error{Phase: PhaseHandshake, Summary: text, Err: err, Advice: []string{fmt.Sprintf("try: ssh -v -p %s %s@%s", t.port, t.user, t.host)}}
}

// keepalive closes a connection whose other side no longer answers: three intervals after a request without a reply.
func keepalive(c *ssh.Client, every time.Duration) {
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	answer := make(chan error, 1)
	missed, waiting := 0, false
	for {
		select {
		case <-gone:
			return
		case <-answer: // a refusal is an answer too
			missed, waiting = 0, false
		case <-tick.C:
			if !waiting {
				waiting = true
				go func() { _, _, err := c.SendRequest("keepalive@openssh.com", true, nil); answer <- err }()
				continue
			}
			if missed++; missed >= keepaliveMisses {
				_ = c.Close()
				return
			}
		}
	}
}

// clock drops a handshake that takes too long. It stands still while a person types.
type clock struct {
	timer *time.Timer
	limit time.Duration
	late  atomic.Bool
}

func newClock(limit time.Duration, drop func()) *clock {
	c := &clock{limit: limit}
	c.timer = time.AfterFunc(limit, func() { c.late.Store(true); drop() })
	return c
}

// stop ends the clock and says whether it had struck.
func (c *clock) stop() bool { c.timer.Stop(); return c.late.Load() }

// pause stops the clock; what it returns starts it anew.
func (c *clock) pause() (resume func()) {
	if !c.timer.Stop() {
		return func() {}
	}
	return func() { c.timer.Reset(c.limit) }
}
