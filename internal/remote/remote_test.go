package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"preflight/inventory"
)

// phaseOf demands a *Error and gives its phase and text.
func phaseOf(t *testing.T, err error) (Phase, string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("no *Error: %v", err)
	}
	return e.Phase, e.Error()
}

func TestKeyFile(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := h.Run(t.Context(), []byte("echo hello 'it''s' \"$((6*7))\"\n"), &out); err != nil || strings.TrimSpace(out.String()) != "hello its 42" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestEncryptedKeyAsksOnceForManyRigs(t *testing.T) {
	c := newClient(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_ed25519"), c.priv, "open sesame")
	a, b := serve(t, c.pub), serve(t, c.pub)
	knows(t, c.known(), a, b)
	asked := 0
	c.o.Prompt = func(q string, echo bool) (string, error) {
		asked++
		if echo || !strings.Contains(q, "id_ed25519") {
			t.Errorf("asked %q, echo %v", q, echo)
		}
		return "open sesame", nil
	}
	d := New(c.o)
	defer d.Close()
	for _, s := range []*server{a, b, a} {
		if _, err := d.Dial(t.Context(), rigAt(s)); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestEncryptedKeyIsNotOpenedWhenTheServerDoesNotWantIt(t *testing.T) {
	c := newClient(t)
	other, otherSigner := newKey(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_rsa"), other, "secret")
	_ = otherSigner
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	c.o.Prompt = func(string, bool) (string, error) {
		t.Error("a passphrase was asked for a key that the server refuses")
		return "", nil
	}
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
}

// serveAgent serves keys on a Unix socket, counting signatures.
func serveAgent(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "pf") // a Unix socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	return l.Addr().String()
}

func TestAgent(t *testing.T) {
	c := newClient(t)
	priv, signer := newKey(t)
	c.o.AgentSocket = serveAgent(t, priv)
	s := serve(t, signer.PublicKey())
	knows(t, c.known(), s)
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
	c.config(t, "Host *\n  IdentitiesOnly yes\n  IdentityFile ~/.ssh/id_ed25519\n")
	_, err := c.dial(t, rigAt(s))
	if p, text := phaseOf(t, err); p != PhaseAuth || !strings.Contains(text, "ssh-copy-id") {
		t.Errorf("IdentitiesOnly must leave the agent's other keys out: %s", text)
	}
}

func TestAgentSignsForAnEncryptedKeyFile(t *testing.T) {
	c := newClient(t)
	writeKey(t, filepath.Join(c.home, ".ssh/id_ed25519"), c.priv, "secret")
	c.o.AgentSocket = serveAgent(t, c.priv)
	c.o.Prompt = func(string, bool) (string, error) { t.Error("asked although the agent holds the key"); return "", nil }
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordOnlyByPrompt(t *testing.T) {
	c := newClient(t)
	s := serve(t)
	s.config.PasswordCallback = func(_ ssh.ConnMetadata, pw []byte) (*ssh.Permissions, error) {
		s.passwords.Add(1)
		if string(pw) == "right" {
			return nil, nil
		}
		return nil, errors.New("wrong")
	}
	knows(t, c.known(), s)
	if _, err := c.dial(t, rigAt(s)); err == nil || s.passwords.Load() != 0 {
		t.Errorf("without a prompt no password is tried: %v, %d", err, s.passwords.Load())
	}
	answers := []string{"wrong", "right"}
	c.o.Prompt = func(string, bool) (string, error) { a := answers[0]; answers = answers[1:]; return a, nil }
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Error(err)
	}
}

func TestCertificate(t *testing.T) {
	c := newClient(t)
	_, ca := newKey(t)
	cert := &ssh.Certificate{Key: c.pub, CertType: ssh.UserCert, ValidPrincipals: []string{"me"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.home, "my-cert.pub"), string(ssh.MarshalAuthorizedKey(cert)))
	c.config(t, "Host *\n  CertificateFile ~/my-cert.pub\n")
	s := serve(t)
	checker := &ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), ca.PublicKey().Marshal()) }}
	s.config.PublicKeyCallback = checker.Authenticate
	knows(t, c.known(), s)
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
}

func TestJumpHostsShareOneConnection(t *testing.T) {
	c := newClient(t)
	one, two, rigA, rigB := serve(t, c.pub), serve(t, c.pub), serve(t, c.pub), serve(t, c.pub)
	knows(t, c.known(), one, two, rigA, rigB)
	d := New(c.o)
	defer d.Close()
	for _, s := range []*server{rigA, rigB} {
		rig := rigAt(s)
		rig.SSH.JumpHost = one.addr() + "," + two.addr()
		h, err := d.Dial(t.Context(), rig)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := h.Run(t.Context(), []byte("echo through"), &out); err != nil || !strings.Contains(out.String(), "through") {
			t.Errorf("%q %v", out.String(), err)
		}
	}
	if one.conns.Load() != 1 || two.conns.Load() != 1 {
		t.Errorf("jump hosts saw %d and %d connections", one.conns.Load(), two.conns.Load())
	}
}

func TestJumpFailuresNameTheHop(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	rig := rigAt(s)
	rig.SSH.JumpHost = "127.0.0.1:1"
	_, err := c.dial(t, rig)
	if p, text := phaseOf(t, err); p != PhaseJump || !strings.Contains(text, "127.0.0.1:1") {
		t.Errorf("%s: %s", p, text)
	}
	c.config(t, "Host a\n  HostName 127.0.0.1\n  Port 1\n  ProxyJump b\nHost b\n  HostName 127.0.0.1\n  Port 2\n  ProxyJump a\n")
	_, err = c.dial(t, &inventory.Rig{Name: "node-a", Address: "a"})
	if p, text := phaseOf(t, err); p != PhaseJump || !strings.Contains(text, "loop") {
		t.Errorf("%s: %s", p, text)
	}
}

func TestProxyCommand(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("no bash to play the proxy")
	}
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	host, port, _ := net.SplitHostPort(s.addr())
	c.config(t, fmt.Sprintf("Host box\n  HostName %s\n  Port %s\n  ProxyCommand /bin/bash -c 'exec 3<>/dev/tcp/%%h/%%p; cat <&3 & cat >&3'\n", host, port))
	h, err := c.dial(t, &inventory.Rig{Name: "node-a", Address: "box"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := h.Run(t.Context(), []byte("echo proxied"), &out); err != nil || !strings.Contains(out.String(), "proxied") {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestConnectFailures(t *testing.T) {
	c := newClient(t)
	c.o.ConnectTimeout = 300 * time.Millisecond
	mute := serve(t, c.pub)
	mute.mute = true
	for name, tc := range map[string]struct {
		rig   *inventory.Rig
		phase Phase
		text  string
	}{
		"refused": {&inventory.Rig{Name: "a", Address: "127.0.0.1:1"}, PhaseConnect, "refuses the connection"},
		"no name": {&inventory.Rig{Name: "a", Address: "no-such-host.invalid"}, PhaseResolve, "does not resolve"},
		"mute":    {rigAt(mute), PhaseHandshake, "does not finish the SSH handshake"},
	} {
		start := time.Now()
		_, err := c.dial(t, tc.rig)
		if p, text := phaseOf(t, err); p != tc.phase || !strings.Contains(text, tc.text) {
			t.Errorf("%s: phase %s: %s", name, p, text)
		}
		if time.Since(start) > 10*time.Second {
			t.Errorf("%s took %s", name, time.Since(start))
		}
	}
}

func TestKeepaliveEndsADeadConnection(t *testing.T) {
	c := newClient(t)
	c.o.Keepalive = 50 * time.Millisecond
	s := serve(t, c.pub)
	s.deaf = true
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = h.Run(t.Context(), []byte("sleep 30"), &bytes.Buffer{})
	if err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := h.Run(ctx, []byte("trap '' TERM HUP; sleep 20"), &bytes.Buffer{}); err == nil || time.Since(start) > 4*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestCutMidStreamIsAnError(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	s.cut = 5000
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err = h.Run(t.Context(), []byte("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; sleep 2"), &out)
	if err == nil {
		t.Error("a cut connection must not look like a script that ended")
	}
}

// refuse stops taking output after some bytes.
type refuse struct{ left int }

func (r *refuse) Write(p []byte) (int, error) {
	if r.left -= len(p); r.left < 0 {
		return 0, errors.New("enough")
	}
	return len(p), nil
}

func TestEndlessOutputStopsWithItsReader(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := h.Run(t.Context(), []byte("yes"), &refuse{1 << 20}); err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestLoginsThatPrintAndOddShells(t *testing.T) {
	fish := filepath.Join(t.TempDir(), "fish")
	write(t, fish, "#!/bin/sh\n# understands one command only, as a shell that is not POSIX would\n[ \"$2\" = 'exec /bin/sh -s' ] || { echo 'fish: Unknown command' >&2; exit 127; }\nexec /bin/sh -s\n")
	if err := os.Chmod(fish, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		shell    []string
		preamble string
		fails    string
	}{
		"fish-like":                {[]string{fish}, "", ""},
		"banner on output":         {[]string{"/bin/sh"}, "Welcome to node-a!\nNo newline at the end:", ""},
		"a login that is shut":     {[]string{"/bin/false"}, "This account is currently not available.\n", "login shell ended"},
		"a login prints on and on": {[]string{"/bin/sh"}, strings.Repeat("spam ", 100_000), "never runs the script"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			s := serve(t, c.pub)
			s.shell, s.preamble = tc.shell, tc.preamble
			knows(t, c.known(), s)
			h, err := c.dial(t, rigAt(s))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			_, err = h.Run(t.Context(), []byte("echo works"), &out)
			switch {
			case tc.fails == "" && (err != nil || strings.TrimSpace(out.String()) != "works"):
				t.Errorf("%q %v", out.String(), err)
			case tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)):
				t.Errorf("%v", err)
			}
		})
	}
}
