package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"preflight/inventory"
)

// via is a rig behind jump hosts.
func via(s *server, hops ...string) *inventory.Rig {
	rig := rigAt(s)
	rig.SSH.JumpHost = strings.Join(hops, ",")
	return rig
}

func TestManyRigsThroughThreeHopsAtOnce(t *testing.T) {
	c := newClient(t)
	hops := []*server{serve(t, c.pub), serve(t, c.pub), serve(t, c.pub)}
	rigs := []*server{serve(t, c.pub), serve(t, c.pub), serve(t, c.pub), serve(t, c.pub)}
	knows(t, c.known(), append(append([]*server{}, hops...), rigs...)...)
	config := ""
	for i, h := range hops { // the same way, as each hop's own ProxyJump
		host, port, _ := net.SplitHostPort(h.addr())
		config += fmt.Sprintf("Host hop%d\n HostName %s\n Port %s\n", i, host, port)
		if i > 0 {
			config += fmt.Sprintf(" ProxyJump hop%d\n", i-1)
		}
	}
	c.config(t, config)
	d := New(c.o)
	defer d.Close()
	var wg sync.WaitGroup
	for i, s := range append(rigs, rigs...) {
		rig := via(s, "hop2")
		if i%2 == 1 {
			rig = via(s, hops[0].addr(), "me@"+hops[1].addr(), "ssh://me@"+hops[2].addr())
		}
		wg.Go(func() {
			h, err := d.Dial(t.Context(), rig)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = h.Close() }()
			var out bytes.Buffer
			if _, err := h.Run(t.Context(), []byte("echo through"), &out); err != nil || out.String() != "through\n" {
				t.Errorf("%q %v", out.String(), err)
			}
		})
	}
	wg.Wait()
	for i, h := range hops {
		if n := h.conns.Load(); n != 1 {
			t.Errorf("hop %d saw %d connections", i, n)
		}
	}
}

// The rig that came first opens the jump host; its deadline is not that of the rigs behind it.
func TestInterruptedRigLeavesTheJumpHostToTheOthers(t *testing.T) {
	c := newClient(t)
	hop, s := serve(t, c.pub), serve(t, c.pub)
	knows(t, c.known(), hop, s)
	hop.slow = 300 * time.Millisecond
	d := New(c.o)
	defer d.Close()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := d.Dial(short, via(s, hop.addr())); err == nil || time.Since(start) > 250*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
	if _, err := d.Dial(t.Context(), via(s, hop.addr())); err != nil || hop.conns.Load() != 1 {
		t.Errorf("%v, %d connections", err, hop.conns.Load())
	}
}

func TestJumpTroubles(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, c *client, hop, s *server) *inventory.Rig
		phase   Phase
		want    []string
	}{
		"the hop's key is unknown": {func(t *testing.T, c *client, hop, s *server) *inventory.Rig {
			knows(t, c.known(), s)
			return via(s, hop.addr())
		}, PhaseJump, []string{"host-key", "is not known", "jump host 127.0.0.1:"}},
		"the hop refuses the login": {func(_ *testing.T, _ *client, hop, s *server) *inventory.Rig {
			hop.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, errors.New("no") }
			return via(s, hop.addr())
		}, PhaseJump, []string{"auth", "ssh-copy-id"}},
		"the hop says nothing": {func(_ *testing.T, _ *client, hop, s *server) *inventory.Rig {
			hop.mute = true
			return via(s, hop.addr())
		}, PhaseJump, []string{"does not finish the SSH handshake"}},
		"nobody listens behind it": {func(_ *testing.T, _ *client, hop, _ *server) *inventory.Rig {
			return &inventory.Rig{Name: "a", Address: "127.0.0.1:1", SSH: inventory.SSH{JumpHost: hop.addr()}}
		}, PhaseConnect, []string{"cannot reach 127.0.0.1:1", "nc -vz"}},
		"what is behind it says nothing": {func(_ *testing.T, _ *client, hop, s *server) *inventory.Rig {
			s.mute = true
			return via(s, hop.addr())
		}, PhaseHandshake, []string{"does not finish"}},
		"a loop over two hosts": {func(t *testing.T, c *client, _, _ *server) *inventory.Rig {
			c.config(t, "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
			return &inventory.Rig{Name: "a", Address: "a"}
		}, PhaseJump, []string{"a → b → a"}},
		"a host that is its own jump host": {func(t *testing.T, c *client, _, _ *server) *inventory.Rig {
			c.config(t, "Host *\n ProxyJump bastion\n")
			return &inventory.Rig{Name: "a", Address: "a"}
		}, PhaseJump, []string{"a → bastion → bastion"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			c.o.ConnectTimeout = time.Second
			hop, s := serve(t, c.pub), serve(t, c.pub)
			knows(t, c.known(), hop, s)
			_, err := c.dial(t, tc.prepare(t, c, hop, s))
			p, text := phaseOf(t, err)
			if p != tc.phase {
				t.Errorf("phase %s: %s", p, text)
			}
			for _, w := range tc.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q lacks %q", text, w)
				}
			}
		})
	}
}

func TestDeadJumpHostIsTriedOnce(t *testing.T) {
	c := newClient(t)
	hop, s := serve(t, c.pub), serve(t, c.pub)
	knows(t, c.known(), s) // the hop's key is not known
	d := New(c.o)
	defer d.Close()
	for _, name := range []string{"a", "b", "c"} {
		rig := via(s, hop.addr())
		rig.Name = name
		_, err := d.Dial(t.Context(), rig)
		if p, text := phaseOf(t, err); p != PhaseJump || err.(*Error).Rig != name {
			t.Errorf("%s of %s: %s", p, err.(*Error).Rig, text)
		}
	}
	if hop.conns.Load() != 1 {
		t.Errorf("%d connections", hop.conns.Load())
	}
}

// A jump host that dies in the middle of a run costs the rig that notices, and is opened again for the next.
func TestJumpHostThatDies(t *testing.T) {
	c := newClient(t)
	hop, s := serve(t, c.pub), serve(t, c.pub)
	knows(t, c.known(), hop, s)
	d := New(c.o)
	defer d.Close()
	if _, err := d.Dial(t.Context(), via(s, hop.addr())); err != nil {
		t.Fatal(err)
	}
	hop.hangUp()
	_, err := d.Dial(t.Context(), via(s, hop.addr()))
	if p, text := phaseOf(t, err); p != PhaseJump || !strings.Contains(text, "was lost") || !strings.Contains(text, hop.addr()) {
		t.Errorf("%s: %s", p, text)
	}
	if _, err := d.Dial(t.Context(), via(s, hop.addr())); err != nil {
		t.Error(err)
	}
}

func TestProxyCommandTroubles(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		want    string
	}{
		"it fails and says why": {"echo 'no route via proxy' >&2; exit 1", "ProxyCommand says: no route via proxy"},
		"it is not there":       {"/no/such/program %h", "not found"},
		"it says nothing":       {"sleep 60", "does not finish the SSH handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			c.o.ConnectTimeout = 400 * time.Millisecond
			c.config(t, "Host box\n ProxyCommand "+tc.command+"\n")
			start := time.Now()
			_, err := c.dial(t, &inventory.Rig{Name: "a", Address: "box"})
			if p, text := phaseOf(t, err); p != PhaseHandshake || !strings.Contains(text, tc.want) || time.Since(start) > 3*time.Second {
				t.Errorf("after %s, %s: %s", time.Since(start), p, text)
			}
		})
	}
}
