package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"preflight/inventory"
)

// Options are the same for every rig of a run. The zero value behaves like ssh(1), without asking anything.
type Options struct {
	Home           string   // default: the user's home
	LocalUser      string   // default: the user's name
	ConfigFiles    []string // default: ~/.ssh/config and /etc/ssh/ssh_config
	KnownHosts     string   // one file instead of the usual ones
	HostKeys       string   // "strict", "accept-new"; "" leaves it to ssh_config
	AgentSocket    string   // default: SSH_AUTH_SOCK
	ConnectTimeout time.Duration
	Keepalive      time.Duration // 0 means DefaultKeepalive
	Prompt         Prompt        // nil: never ask
	Warn           func(string)  // told once each; nil: silent
	AskBecome      bool          // ask for the sudo password where sudo -n is refused
	Getenv         func(string) string

	timeoutGiven bool
}

// Prompt asks a person; echo says whether the answer may be shown while it is typed.
type Prompt func(question string, echo bool) (string, error)

// Deadlines that hold unless something else is said.
const (
	DefaultConnectTimeout = 15 * time.Second
	DefaultKeepalive      = 15 * time.Second
	keepaliveMisses       = 3
)

func (o Options) getenv(name string) string {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.Getenv(name)
}

// Dialer reaches rigs. It is safe for concurrent use.
type Dialer struct {
	o      Options
	warned sync.Map
	keys   keyring
	secret secrets

	mu    sync.Mutex
	jumps map[string]*jump
}

// jump is the one connection to a jump host.
type jump struct {
	once   sync.Once
	client *ssh.Client
	err    error
}

// New makes a dialer; Close ends its jump connections.
func New(o Options) *Dialer {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.LocalUser == "" {
		o.LocalUser = os.Getenv("USER")
		if u, err := user.Current(); err == nil && o.LocalUser == "" {
			o.LocalUser = u.Username
		}
	}
	if o.ConfigFiles == nil {
		o.ConfigFiles = []string{filepath.Join(o.Home, ".ssh/config"), "/etc/ssh/ssh_config"}
	}
	o.timeoutGiven = o.ConnectTimeout > 0
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.Keepalive <= 0 {
		o.Keepalive = DefaultKeepalive
	}
	d := &Dialer{o: o, jumps: map[string]*jump{}}
	d.secret.prompt = o.Prompt
	return d
}

// Close ends the connections to jump hosts.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jumps {
		if j.client != nil {
			_ = j.client.Close()
		}
	}
}

// warnOnce says each thing once in a run.
func (d *Dialer) warnOnce(s string) {
	if _, said := d.warned.LoadOrStore(s, true); !said && d.o.Warn != nil {
		d.o.Warn(s)
	}
}

// Dial connects to a rig. Its error is always a *Error.
func (d *Dialer) Dial(ctx context.Context, rig *inventory.Rig) (*Host, error) {
	t, err := d.settle(rig.Address, rig.SSH)
	if err == nil {
		var c *ssh.Client
		if c, err = d.reach(ctx, t, nil); err == nil {
			return &Host{client: c, d: d, rig: rig.Name, user: t.user}, nil
		}
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Phase: PhaseConnect, Summary: err.Error(), Err: err}
	}
	e.Rig = rig.Name
	return nil, e
}

// reach opens a connection to one host, through its jump hosts. Seen are the hosts that wait for this one.
func (d *Dialer) reach(ctx context.Context, t settings, seen []string) (*ssh.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Phase: PhaseConnect, Summary: "interrupted", Err: err}
	}
	var via *ssh.Client
	if t.proxyJump != "" && !strings.EqualFold(t.proxyJump, "none") {
		var err error
		if via, err = d.through(ctx, t, append(seen, t.hostPort())); err != nil {
			return nil, err
		}
	}
	conn, err := d.connect(ctx, t, via)
	if err != nil {
		return nil, connectError(t, err)
	}
	return d.handshake(ctx, t, conn)
}

// through gives the connection to the last jump host of a chain, opening those before it.
func (d *Dialer) through(ctx context.Context, t settings, seen []string) (*ssh.Client, error) {
	hops := strings.Split(t.proxyJump, ",")
	var via *ssh.Client
	for i, hop := range hops {
		c, err := d.hop(ctx, strings.TrimSpace(hop), strings.Join(hops[:i+1], ","), via, seen)
		if err != nil {
			var e *Error
			if errors.As(err, &e) && e.Phase != PhaseJump {
				copied := *e
				copied.Summary, copied.Phase = fmt.Sprintf("jump host %s: %s: %s", hop, e.Phase, e.Summary), PhaseJump
				return nil, &copied
			}
			return nil, err
		}
		via = c
	}
	return via, nil
}

// hop opens one jump host once; rigs behind the same chain share it.
func (d *Dialer) hop(ctx context.Context, spec, key string, via *ssh.Client, seen []string) (*ssh.Client, error) {
	var inv inventory.SSH
	address := strings.TrimPrefix(spec, "ssh://")
	if u, rest, ok := strings.Cut(address, "@"); ok {
		inv.User, address = u, rest
	}
	t, err := d.settle(address, inv)
	if err != nil {
		return nil, err
	}
	if err := loop(seen, t.hostPort()); err != nil { // before waiting for a connection that waits for this one
		return nil, err
	}
	d.mu.Lock()
	j := d.jumps[key]
	if j == nil {
		j = &jump{}
		d.jumps[key] = j
	}
	d.mu.Unlock()
	j.once.Do(func() { j.client, j.err = d.openHop(ctx, t, via, seen) })
	return j.client, j.err
}

func (d *Dialer) openHop(ctx context.Context, t settings, via *ssh.Client, seen []string) (*ssh.Client, error) {
	if via == nil {
		return d.reach(ctx, t, seen)
	}
	conn, err := d.connect(ctx, t, via)
	if err != nil {
		return nil, connectError(t, err)
	}
	return d.handshake(ctx, t, conn)
}

// loop refuses a chain that comes back to a host it went through.
func loop(seen []string, next string) error {
	for _, s := range seen {
		if s == next {
			return &Error{Phase: PhaseJump, Summary: "the jump hosts form a loop: " + strings.Join(append(seen, next), " → "), Advice: []string{"correct ProxyJump or jump_host"}}
		}
	}
	return nil
}

// connect opens the byte stream to a host: TCP, through a jump host, or by a ProxyCommand.
func (d *Dialer) connect(ctx context.Context, t settings, via *ssh.Client) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	switch {
	case via != nil:
		return via.DialContext(ctx, "tcp", t.hostPort())
	case t.proxyCommand != "" && !strings.EqualFold(t.proxyCommand, "none"):
		return startProxy(t.tokens(t.proxyCommand, d), t)
	}
	return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", t.hostPort())
}

// handshake authenticates both sides. A server that says nothing is dropped at the deadline.
func (d *Dialer) handshake(ctx context.Context, t settings, conn net.Conn) (*ssh.Client, error) {
	var expired bool
	asking := &pauser{}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	timer := time.AfterFunc(t.timeout, func() { expired = true; _ = conn.Close() })
	defer timer.Stop()
	asking.timer, asking.limit = timer, t.timeout
	var keyErr error
	verify, algorithms, err := d.hostKeys(t, &keyErr)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	methods, tried, done := d.auth(t, asking)
	defer done()
	cfg := &ssh.ClientConfig{User: t.user, Auth: methods, HostKeyCallback: verify, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-preflight"}
	c, chans, reqs, err := ssh.NewClientConn(conn, t.hostPort(), cfg)
	if err == nil && !timer.Stop() && expired {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		_ = conn.Close()
		return nil, handshakeError(ctx, t, err, keyErr, expired, tried())
	}
	client := ssh.NewClient(c, chans, reqs)
	go keepalive(client, d.o.Keepalive)
	return client, nil
}

// handshakeError puts a failed handshake into words.
func handshakeError(ctx context.Context, t settings, err, keyErr error, expired bool, tried []string) error {
	var e *Error
	switch {
	case errors.As(keyErr, &e):
		return e
	case ctx.Err() != nil:
		return &Error{Phase: PhaseHandshake, Summary: "interrupted", Err: ctx.Err()}
	case expired:
		return &Error{Phase: PhaseHandshake, Summary: fmt.Sprintf("%s accepts connections but does not finish the SSH handshake within %s", t.hostPort(), t.timeout), Err: os.ErrDeadlineExceeded, Advice: []string{"is it sshd that listens there? look at the host's load and its sshd log"}}
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "no supported methods remain"):
		return &Error{
			Phase: PhaseAuth, Summary: fmt.Sprintf("%s refuses %s; tried %s", t.hostPort(), t.user, pick(strings.Join(tried, ", "), "nothing: no key, no agent")), Err: err,
			Advice: []string{fmt.Sprintf("ssh-copy-id -p %s %s@%s", t.port, t.user, t.host), "or load the key into the agent: ssh-add"},
		}
	}
	return &Error{Phase: PhaseHandshake, Summary: err.Error(), Err: err, Advice: []string{fmt.Sprintf("try: ssh -v -p %s %s@%s", t.port, t.user, t.host)}}
}

// keepalive closes a connection whose other side no longer answers.
func keepalive(c *ssh.Client, every time.Duration) {
	missed := 0
	for {
		time.Sleep(every)
		answer := make(chan error, 1)
		go func() { _, _, err := c.SendRequest("keepalive@openssh.com", true, nil); answer <- err }()
		select {
		case err := <-answer:
			if err != nil {
				return
			}
			missed = 0
		case <-time.After(every):
			if missed++; missed >= keepaliveMisses {
				_ = c.Close()
				return
			}
		}
	}
}

// pauser stops the handshake's clock while a person types.
type pauser struct {
	timer *time.Timer
	limit time.Duration
}

func (p *pauser) pause() func() {
	if p.timer == nil || !p.timer.Stop() {
		return func() {}
	}
	return func() { p.timer.Reset(p.limit) }
}
