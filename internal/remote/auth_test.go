package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"preflight/inventory"
)

func TestWrongPassphraseGivesUpOnceForAllRigs(t *testing.T) {
	c := newClient(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_ed25519"), c.priv, "right")
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	var asked atomic.Int32
	c.o.Prompt = func(string, bool) (string, error) { asked.Add(1); return "wrong", nil }
	d := New(c.o)
	defer d.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := d.Dial(t.Context(), rigAt(s))
			if p, text := phaseOf(t, err); p != PhaseAuth || !strings.Contains(text, "passphrase was wrong 3 times") {
				t.Errorf("%s: %s", p, text)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// While a person types the passphrase for one rig, the others' handshakes must not run out of time.
func TestSlowTypistCostsNoRig(t *testing.T) {
	c := newClient(t)
	c.o.ConnectTimeout = 300 * time.Millisecond
	writeKey(t, filepath.Join(c.home, ".ssh/id_ed25519"), c.priv, "right")
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	c.o.Prompt = func(string, bool) (string, error) { time.Sleep(900 * time.Millisecond); return "right", nil }
	d := New(c.o)
	defer d.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := d.Dial(t.Context(), rigAt(s)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestEncryptedKeyWithNobodyToAsk(t *testing.T) {
	c := newClient(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_ed25519"), c.priv, "secret")
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	_, err := c.dial(t, rigAt(s))
	if p, text := phaseOf(t, err); p != PhaseAuth || !strings.Contains(text, "id_ed25519 (not used: it is encrypted") || !strings.Contains(text, "ssh-add") {
		t.Errorf("%s: %s", p, text)
	}
	// It does not keep a key that works from being used.
	second, signer := newKey(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_rsa"), second, "")
	both := serve(t, c.pub, signer.PublicKey())
	knows(t, c.known(), both)
	if _, err := c.dial(t, rigAt(both)); err != nil {
		t.Error(err)
	}
}

// An agent that accepts and says nothing must not hold a rig up for ever.
func TestHungAgent(t *testing.T) {
	c := newClient(t)
	c.o.ConnectTimeout = 300 * time.Millisecond
	dir, err := os.MkdirTemp("", "pf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c.o.AgentSocket = l.Addr().String()
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	done := make(chan error, 1)
	go func() { _, err := New(c.o).Dial(t.Context(), rigAt(s)); done <- err }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the handshake cannot have finished")
		}
	case <-time.After(5 * time.Second):
		t.Error("still waiting for the agent")
	}
}

// offers lists the keys that a server is offered, in order.
func offers(s *server) func() []string {
	var mu sync.Mutex
	var seen []string
	inner := s.config.PublicKeyCallback
	s.config.PublicKeyCallback = func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		mu.Lock()
		seen = append(seen, ssh.FingerprintSHA256(k))
		mu.Unlock()
		return inner(m, k)
	}
	return func() []string { mu.Lock(); defer mu.Unlock(); return seen }
}

func TestOrderOfKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   string
	}{
		"default files come after the agent":        {"", "agent file"},
		"a named file comes before the agent":       {"IdentityFile ~/.ssh/id_ed25519\n", "file agent"},
		"IdentitiesOnly leaves the agent out":       {"IdentitiesOnly yes\n", "file"},
		"IdentityAgent none":                        {"IdentityAgent none\n", "file"},
		"a public key names one that the agent has": {"IdentitiesOnly yes\nIdentityFile ~/agent.pub\n", "agent"},
		"a named file that is missing does no harm": {"IdentityFile ~/missing\n", "agent"},
		"PubkeyAuthentication no":                   {"PubkeyAuthentication no\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			priv, held := newKey(t)
			c.o.AgentSocket = serveAgent(t, priv)
			write(t, filepath.Join(c.home, "agent.pub"), string(ssh.MarshalAuthorizedKey(held.PublicKey())))
			c.config(t, "Host *\n"+tc.config)
			s := serve(t) // lets nobody in
			seen := offers(s)
			knows(t, c.known(), s)
			_, err := c.dial(t, rigAt(s))
			if p, text := phaseOf(t, err); p != PhaseAuth {
				t.Errorf("%s: %s", p, text)
			}
			names := map[string]string{ssh.FingerprintSHA256(held.PublicKey()): "agent", ssh.FingerprintSHA256(c.pub): "file"}
			var got []string
			for _, f := range seen() {
				got = append(got, names[f])
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("offered %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMissingKeyFiles(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	var warned []string
	c.o.Warn = func(w string) { warned = append(warned, w) }
	if _, err := c.dial(t, rigAt(s)); err != nil || len(warned) > 0 {
		t.Errorf("default keys that are missing are no news: %q, %v", warned, err)
	}
	rig := rigAt(s)
	rig.SSH.IdentityFiles = []string{"~/gone", "~/.ssh/id_ed25519"}
	if _, err := c.dial(t, rig); err != nil || len(warned) != 1 || !strings.Contains(warned[0], "gone") {
		t.Errorf("a named key that is missing is worth a word: %q, %v", warned, err)
	}
}

func TestKeyboardInteractive(t *testing.T) {
	c := newClient(t)
	s := serve(t)
	s.config.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		a, err := ask("", "Two factors\x1b]0;evil\x07", []string{"Password: ", "Code: "}, []bool{false, true})
		if err != nil || len(a) != 2 || a[0] != "secret" || a[1] != "123" {
			return nil, fmt.Errorf("wrong: %q", a)
		}
		return nil, nil
	}
	knows(t, c.known(), s)
	c.o.Prompt = func(q string, echo bool) (string, error) {
		if strings.ContainsAny(q, "\x1b\x07") {
			t.Errorf("the server's text reaches the terminal as it is: %q", q)
		}
		if echo != strings.Contains(q, "Code") {
			t.Errorf("%q is shown: %v", q, echo)
		}
		if echo {
			return "123", nil
		}
		return "secret", nil
	}
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Error(err)
	}
}

func TestTooManyKeys(t *testing.T) {
	c := newClient(t)
	var keys []any
	for range 20 {
		k, _ := newKey(t)
		keys = append(keys, k)
	}
	c.o.AgentSocket = serveAgent(t, keys...)
	s := serve(t, c.pub)
	s.config.MaxAuthTries = 6
	knows(t, c.known(), s)
	_, err := c.dial(t, rigAt(s))
	if p, text := phaseOf(t, err); p != PhaseAuth || !strings.Contains(text, "IdentitiesOnly") {
		t.Errorf("%s: %s", p, text)
	}
}

func TestRefusedLoginAdvice(t *testing.T) {
	c := newClient(t)
	s := serve(t)
	knows(t, c.known(), s)
	rig := rigAt(s)
	rig.SSH.User = "ops"
	_, err := c.dial(t, rig)
	_, port, _ := net.SplitHostPort(s.address)
	if p, text := phaseOf(t, err); p != PhaseAuth || !strings.Contains(text, "ssh-copy-id -p "+port+" ops@127.0.0.1") || !strings.Contains(text, "id_ed25519") {
		t.Errorf("%s: %s", p, text)
	}
}

func TestInterruptedHandshake(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	s.mute = true
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	d := New(c.o)
	defer d.Close()
	_, err := d.Dial(ctx, &inventory.Rig{Name: "a", Address: s.addr()})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}
