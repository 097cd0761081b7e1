//go:build linux

package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"preflight/internal/fleet"
	"preflight/internal/remote"
)

// TestJumpHosts reaches a host through one and through three real servers, by the inventory and by ssh_config. Every
// hop's log must show that the connection went through it.
func TestJumpHosts(t *testing.T) {
	t.Parallel()
	hops := []*server{StartSSHD(t, Options{Debug: true}), StartSSHD(t, Options{Debug: true}), StartSSHD(t, Options{Debug: true})}
	far := StartSSHD(t, Options{})
	names := func(list ...*server) string {
		var out []string
		for _, s := range list {
			out = append(out, s.User+"@"+s.addr())
		}
		return strings.Join(out, ",")
	}
	for _, c := range []struct {
		name string
		jump string // of the inventory
		conf string // of ssh_config
		path []*server
	}{
		{"one, by the inventory", names(hops[0]), "", []*server{hops[0], far}},
		{"three, by the inventory", names(hops...), "", []*server{hops[0], hops[1], hops[2], far}},
		{"ssh_config", "", fmt.Sprintf("Host far\n  HostName 127.0.0.1\n  ProxyJump %s\n", names(hops[1])), []*server{hops[1], far}},
		{
			"each hop names the next in ssh_config", "near", fmt.Sprintf("Host near\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  ProxyJump nearer\nHost nearer\n  HostName 127.0.0.1\n  Port %d\n  User %s\n",
				hops[1].Port, hops[1].User, hops[0].Port, hops[0].User),
			[]*server{hops[0], hops[1], far},
		},
		{"ProxyCommand", "", "", nil}, // filled in below
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newClient(t, append(hops, far)...)
			rig := cl.rig(far, far.User)
			if c.path == nil {
				c.conf, c.path = proxyCommand(t, cl, hops[2]), []*server{hops[2], far}
			}
			writeFile(t, cl.o.ConfigFiles[0], c.conf+"Host *\n  IdentityFile "+cl.key+"\n", 0o600)
			if rig.SSH.JumpHost = c.jump; c.conf != "" && c.jump == "" {
				rig.Address = "far"
				cl.known(t, "far", far)
			}
			for _, s := range append(hops, far) {
				s.log.Reset()
			}
			out, _, err := cl.say(t, rig, "echo in")
			if err != nil || out != "in" {
				t.Fatalf("output %q, error %v", out, err)
			}
			for i, s := range c.path[:len(c.path)-1] {
				next := fmt.Sprintf("target 127.0.0.1 port %d", c.path[i+1].Port)
				if log := s.log.String(); !strings.Contains(log, next) {
					t.Errorf("hop %d did not pass the connection on (%s):\n%s", i, next, log)
				}
			}
		})
	}
}

// known notes the keys of a server under another name and its port.
func (c *client) known(t *testing.T, name string, s *server) {
	t.Helper()
	raw, err := os.ReadFile(c.o.KnownHosts)
	must(t, err)
	writeFile(t, c.o.KnownHosts, string(raw)+strings.ReplaceAll(string(raw), s.known(), fmt.Sprintf("[%s]:%d", name, s.Port)), 0o600)
}

// proxyCommand is an ssh_config that goes through a hop by OpenSSH's own client.
func proxyCommand(t *testing.T, c *client, hop *server) string {
	t.Helper()
	ssh := fmt.Sprintf("ssh -F none -i %s -o UserKnownHostsFile=%s -o IdentitiesOnly=yes -o BatchMode=yes -p %d -W %%h:%%p %s@127.0.0.1", c.key, c.o.KnownHosts, hop.Port, hop.User)
	return "Host far\n  HostName 127.0.0.1\n  ProxyCommand " + ssh + "\n"
}

// TestJumpIsShared: many rigs behind one jump host cost it a single login.
func TestJumpIsShared(t *testing.T) {
	t.Parallel()
	hop, far := StartSSHD(t, Options{}), StartSSHD(t, Options{Config: "MaxStartups 100"})
	cl := newClient(t, hop, far)
	writeFile(t, cl.o.ConfigFiles[0], "IdentityFile "+cl.key+"\n", 0o600)
	d := remote.New(cl.o)
	defer d.Close()
	rig := cl.rig(far, far.User)
	rig.SSH.JumpHost = hop.User + "@" + hop.addr()
	errs := make(chan error, 6)
	for range cap(errs) {
		go func() {
			h, err := d.Dial(t.Context(), rig)
			if err == nil {
				err = h.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		select {
		case err := <-errs:
			must(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("it hangs")
		}
	}
	if n := strings.Count(hop.log.String(), "Accepted publickey"); n != 1 {
		t.Errorf("%d logins on the jump host, want 1", n)
	}
}

// TestJumpFails: what is said when a hop is the culprit, and that a rig behind another hop is not touched by it.
func TestJumpFails(t *testing.T) {
	t.Parallel()
	far := StartSSHD(t, Options{})
	closed := StartSSHD(t, Options{Config: "AllowTcpForwarding no"})
	for name, c := range map[string]struct {
		hop   string
		phase remote.Phase
		want  string
	}{
		"nobody listens":          {fmt.Sprintf("127.0.0.1:%d", freePort(t)), remote.PhaseJump, "refuses the connection"},
		"forwarding is forbidden": {closed.User + "@" + closed.addr(), remote.PhaseConnect, "prohibited"},
		"a loop":                  {far.User + "@" + far.addr(), remote.PhaseJump, "loop"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newClient(t, far, closed)
			writeFile(t, cl.o.ConfigFiles[0], "IdentityFile "+cl.key+"\n", 0o600)
			bad := cl.rig(far, far.User)
			bad.SSH.JumpHost = c.hop
			good := cl.rig(far, far.User)
			good.Name = "good"
			results := cl.check(t, 30*time.Second, fleet.Options{}, bad, good)
			refused(t, results[0].Err, c.phase, c.want)
			if results[0].Host != nil || results[1].Host == nil {
				t.Errorf("judged: bad %v, good %v (%v)", results[0].Host != nil, results[1].Host != nil, results[1].Err)
			}
		})
	}
}
