package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"preflight/inventory"
)

// jump is the one connection to a jump host. Rigs that come by the same way share it.
type jump struct {
	name   string
	way    string        // all hosts up to this one, which tells apart equal addresses in two networks
	ready  chan struct{} // closed when client or err is set
	client *ssh.Client
	err    error
}

// way gives the last jump host on the way to a host, opening those before it; nil when the host is reached directly.
// Seen are the hosts that wait for this one.
func (d *Dialer) way(ctx context.Context, t settings, seen []string) (*jump, error) {
	if t.proxyJump == "" || strings.EqualFold(t.proxyJump, "none") {
		return nil, nil
	}
	seen = append(slices.Clip(seen), t.id())
	var via *jump
	for _, hop := range strings.Split(t.proxyJump, ",") {
		j, err := d.hop(ctx, strings.TrimSpace(hop), via, seen)
		if err != nil {
			var e *Error
			if errors.As(err, &e) && e.Phase != PhaseJump {
				copied := *e
				copied.Summary, copied.Phase = fmt.Sprintf("jump host %s: %s: %s", hop, e.Phase, e.Summary), PhaseJump
				return nil, &copied
			}
			return nil, err
		}
		via = j
	}
	return via, nil
}

// id tells hosts of a chain apart: by the name they were asked for, as that decides which settings apply.
func (t settings) id() string {
	if t.port == "22" {
		return t.alias
	}
	return net.JoinHostPort(t.alias, t.port)
}

// hop opens one jump host once. The first of a chain may have jump hosts of its own in ssh_config.
func (d *Dialer) hop(ctx context.Context, spec string, via *jump, seen []string) (*jump, error) {
	var inv inventory.SSH
	address := strings.TrimPrefix(spec, "ssh://")
	if i := strings.LastIndex(address, "@"); i >= 0 {
		inv.User, address = address[:i], address[i+1:]
	}
	t, err := d.settle(address, inv)
	if err != nil {
		return nil, err
	}
	if slices.Contains(seen, t.id()) { // before waiting for a connection that waits for this one
		return nil, &Error{Phase: PhaseJump, Summary: "the jump hosts form a loop: " + strings.Join(append(slices.Clip(seen), t.id()), " → "), Advice: []string{"correct ProxyJump or jump_host"}}
	}
	if via == nil {
		if via, err = d.way(ctx, t, seen); err != nil {
			return nil, err
		}
	}
	way := t.user + "@" + t.hostPort()
	if via != nil {
		way = via.way + " → " + way
	}
	j := d.shared(way, t, via)
	select {
	case <-j.ready:
		return j, j.err
	case <-ctx.Done():
		return nil, &Error{Phase: PhaseConnect, Summary: "interrupted", Err: context.Cause(ctx)}
	}
}

// shared finds the connection to a jump host, or starts to open it. A failure is kept: a dead jump host is not tried
// again for each rig behind it.
func (d *Dialer) shared(way string, t settings, via *jump) *jump {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jumps[way]
	if j == nil {
		j = &jump{name: t.id(), way: way, ready: make(chan struct{})}
		d.jumps[way] = j
		go func() {
			defer close(j.ready)
			j.client, j.err = d.reach(d.ctx, t, via)
			if d.ctx.Err() != nil && j.client != nil {
				_ = j.client.Close()
			}
		}()
	}
	return j
}

// lost forgets a jump host whose connection broke, so that the next rig opens a new one.
func (d *Dialer) lost(j *jump) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jumps[j.way] == j {
		delete(d.jumps, j.way)
	}
}

// jumpError tells a jump host that is gone from a host behind it that is.
func (d *Dialer) jumpError(ctx context.Context, t settings, via *jump, err error) *Error {
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		return &Error{
			Phase: PhaseConnect, Summary: fmt.Sprintf("jump host %s does not forward to %s: %v", via.name, t.hostPort(), refused), Err: err,
			Advice: []string{"set AllowTcpForwarding yes in sshd_config of " + via.name},
		}
	case errors.As(err, &refused):
		return &Error{
			Phase: PhaseConnect, Summary: fmt.Sprintf("jump host %s cannot reach %s: %v", via.name, t.hostPort(), refused), Err: err,
			Advice: []string{fmt.Sprintf("on %s, try: nc -vz %s %s", via.name, t.host, t.port)},
		}
	case ctx.Err() != nil:
		return &Error{Phase: PhaseConnect, Summary: "interrupted", Err: context.Cause(ctx)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{
			Phase: PhaseConnect, Summary: fmt.Sprintf("no answer from %s through jump host %s within %s", t.hostPort(), via.name, t.timeout), Err: err,
			Advice: []string{fmt.Sprintf("on %s, try: nc -vz %s %s", via.name, t.host, t.port)},
		}
	}
	d.lost(via)
	return &Error{Phase: PhaseJump, Summary: fmt.Sprintf("the connection to jump host %s was lost: %v", via.name, err), Err: err, Advice: []string{"is " + via.name + " up? run the check again"}}
}
