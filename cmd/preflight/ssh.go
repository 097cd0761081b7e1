package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"preflight/internal/collect"
	"preflight/internal/fleet"
	"preflight/internal/remote"
	"preflight/inventory"
)

// sshFlags are how hosts are reached, beyond ~/.ssh/config and the inventory.
type sshFlags struct {
	hostKeys   string
	config     string
	knownHosts string
	timeout    time.Duration
	askBecome  bool
}

func (s *sshFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&s.hostKeys, "host-keys", "", "strict (default) or accept-new: note keys of hosts seen for the first time")
	fl.StringVarP(&s.config, "ssh-config", "F", "", "ssh_config to use instead of ~/.ssh/config")
	fl.StringVar(&s.knownHosts, "known-hosts", "", "known_hosts file to use instead of the usual ones")
	fl.DurationVar(&s.timeout, "connect-timeout", 0, "deadline for connecting and for the handshake, each (default 15s)")
	fl.BoolVar(&s.askBecome, "ask-become-pass", false, "ask once for the sudo password, for hosts where sudo -n is refused")
}

func (s *sshFlags) dialer(env *environment) (*dialer, error) {
	if s.hostKeys != "" && s.hostKeys != "strict" && s.hostKeys != "accept-new" {
		return nil, usage("--host-keys %s: it takes strict or accept-new", s.hostKeys)
	}
	o := remote.Options{HostKeys: s.hostKeys, KnownHosts: s.knownHosts, ConnectTimeout: s.timeout, AskBecome: s.askBecome, Prompt: prompter(env)}
	if s.config != "" {
		if _, err := os.Stat(s.config); err != nil {
			return nil, usage("--ssh-config: %w", err)
		}
		o.ConfigFiles = []string{s.config}
	}
	var mu sync.Mutex
	o.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		env.aside(func() { _, _ = fmt.Fprintln(env.stderr, "preflight: "+text) })
	}
	if s.askBecome && o.Prompt == nil {
		return nil, usage("--ask-become-pass needs a terminal to ask on")
	}
	return &dialer{remote.New(o)}, nil
}

// prompter asks on the terminal, or is nil where there is none: then nothing is ever asked.
func prompter(env *environment) remote.Prompt {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if _, interactive := terminal(env.stderr); !interactive && !term.IsTerminal(int(tty.Fd())) {
		_ = tty.Close()
		return nil
	}
	return func(question string, echo bool) (answer string, err error) {
		env.aside(func() { answer, err = ask(tty, question, echo) })
		return answer, err
	}
}

func ask(tty *os.File, question string, echo bool) (string, error) {
	if _, err := io.WriteString(tty, question); err != nil {
		return "", err
	}
	if echo {
		return readLine(tty)
	}
	secret, err := term.ReadPassword(int(tty.Fd()))
	_, _ = io.WriteString(tty, "\n")
	return string(secret), err
}

// readLine reads one line, byte by byte, so that nothing of the next answer is lost.
func readLine(r io.Reader) (string, error) {
	var line strings.Builder
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimRight(line.String(), "\r"), nil
		case n == 1:
			line.WriteByte(b[0])
		case errors.Is(err, io.EOF) && line.Len() > 0:
			return line.String(), nil
		case err != nil:
			return "", err
		}
	}
}

// dialer reaches rigs over SSH as the fleet wants them.
type dialer struct{ *remote.Dialer }

// Open connects to a rig.
func (d *dialer) Open(ctx context.Context, rig *inventory.Rig) (fleet.Host, error) {
	h, err := d.Dial(ctx, rig)
	if err != nil {
		return nil, err
	}
	return sshHost{h}, nil
}

// sshHost is a connected rig as the collector sees it.
type sshHost struct{ *remote.Host }

func (s sshHost) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	a, err := s.Host.Run(ctx, script, stdout)
	return collect.Access{Root: a.Root, Why: a.Why}, err
}
