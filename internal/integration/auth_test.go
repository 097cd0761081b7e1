//go:build linux

package integration

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh/agent"

	"preflight/internal/remote"
)

// serveAgent runs an agent with n keys that open nothing, and then the right one when it is to hold it.
func serveAgent(t *testing.T, wrong int, right bool) string {
	t.Helper()
	ring := agent.NewKeyring()
	for range wrong {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		must(t, ring.Add(agent.AddedKey{PrivateKey: key}))
	}
	if right {
		must(t, ring.Add(agent.AddedKey{PrivateKey: clientKey(t).key}))
	}
	path := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c); _ = c.Close() }()
		}
	}()
	return path
}

// TestAuthentication: each way to log in that needs no person, and what is said when none fits.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := StartSSHD(t, Options{Config: "MaxAuthTries 3"})
	encrypted := clientKey(t).file(t, "a passphrase")
	for name, c := range map[string]struct {
		key        string // "" none, "named" the right one, else a path
		agent      func(t *testing.T) string
		passphrase string
		prompts    int32
		want       string // part of the error; "" when it must work
	}{
		"a named key":                          {key: "named"},
		"an agent":                             {agent: func(t *testing.T) string { return serveAgent(t, 0, true) }},
		"a named key before a full agent":      {key: "named", agent: func(t *testing.T) string { return serveAgent(t, 8, false) }},
		"an encrypted key asks once":           {key: encrypted, passphrase: "a passphrase", prompts: 1},
		"an encrypted key that the agent has":  {key: encrypted, agent: func(t *testing.T) string { return serveAgent(t, 0, true) }, passphrase: "x"},
		"a wrong passphrase":                   {key: encrypted, passphrase: "wrong", prompts: 3, want: "stays locked"},
		"an agent with other keys":             {agent: func(t *testing.T) string { return serveAgent(t, 1, false) }, want: "ssh-copy-id -p PORT USER@127.0.0.1"},
		"an agent that is gone, and no key":    {agent: func(t *testing.T) string { return filepath.Join(t.TempDir(), "gone") }, want: "no key, no agent"},
		"nothing at all":                       {want: "nothing: no key, no agent"},
		"a named key that is not there at all": {key: "/nonexistent/key", want: "ssh-copy-id -p PORT USER@127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := newClient(t, s)
			if c.key != "named" {
				cl.key = c.key
			}
			if c.agent != nil {
				cl.o.AgentSocket = c.agent(t)
			}
			var asked atomic.Int32
			if c.passphrase != "" {
				cl.o.Prompt = func(question string, echo bool) (string, error) {
					if strings.Contains(question, "passphrase") {
						asked.Add(1)
					}
					return c.passphrase, nil
				}
			}
			out, _, err := cl.say(t, cl.rig(s, s.User), "echo in")
			if asked.Load() != c.prompts {
				t.Errorf("asked %d times for the passphrase, want %d", asked.Load(), c.prompts)
			}
			if c.want != "" {
				refused(t, err, remote.PhaseAuth, strings.NewReplacer("PORT", strconv.Itoa(s.Port), "USER", s.User).Replace(c.want))
				return
			}
			if err != nil || out != "in" {
				t.Errorf("output %q, error %v; warnings %v", out, err, cl.warnings)
			}
		})
	}
}
