package remote

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/skeema/knownhosts"

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

// Deadlines that hold unless something else is said.
const (
	DefaultConnectTimeout = 15 * time.Second // for connecting, and again for the handshake
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
	ctx    context.Context // ends with Close; jump hosts are opened under it, as they outlive the rig that came first
	cancel context.CancelFunc
	warned sync.Map
	files  sync.Map // ssh_config files that were read, by path
	keys   keyring
	secret secrets

	mu    sync.Mutex
	jumps map[string]*jump
	known map[string]*knownhosts.HostKeyDB // by file names, sizes and times
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
		o.ConfigFiles = []string{filepath.Join(o.Home, ".ssh/config"), systemConfig}
	}
	o.timeoutGiven = o.ConnectTimeout > 0
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.Keepalive <= 0 {
		o.Keepalive = DefaultKeepalive
	}
	d := &Dialer{o: o, jumps: map[string]*jump{}, known: map[string]*knownhosts.HostKeyDB{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.secret.prompt = o.Prompt
	return d
}

// Close ends the connections to jump hosts.
func (d *Dialer) Close() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jumps {
		select {
		case <-j.ready:
			if j.client != nil {
				_ = j.client.Close()
			}
		default: // still opening: its context has ended
		}
	}
}

// warnOnce says each thing once in a run.
func (d *Dialer) warnOnce(s string) {
	if _, said := d.warned.LoadOrStore(s, true); !said && d.o.Warn != nil {
		d.o.Warn(plain(s))
	}
}

// Dial connects to a rig. Its error is always a *Error.
func (d *Dialer) Dial(ctx context.Context, rig *inventory.Rig) (*Host, error) {
	h, err := d.dial(ctx, rig)
	if err == nil {
		return h, nil
	}
	e := &Error{Phase: PhaseConnect, Summary: err.Error(), Err: err}
	var known *Error
	if errors.As(err, &known) {
		*e = *known // a jump host's error is shared by the rigs behind it
	}
	e.Rig, e.Summary = rig.Name, plain(e.Summary)
	return nil, e
}

func (d *Dialer) dial(ctx context.Context, rig *inventory.Rig) (*Host, error) {
	t, err := d.settle(rig.Address, rig.SSH)
	if err != nil {
		return nil, err
	}
	via, err := d.way(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	c, err := d.reach(ctx, t, via)
	if err != nil {
		return nil, err
	}
	return &Host{client: c, d: d, rig: rig.Name, user: t.user}, nil
}
