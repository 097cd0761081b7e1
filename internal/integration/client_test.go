//go:build linux

package integration

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"preflight/internal/collect"
	"preflight/internal/fleet"
	"preflight/internal/remote"
	"preflight/inventory"
)

// hostKey is a key of a server.
type hostKey struct {
	private string // PEM
	public  ssh.PublicKey
}

func newHostKey(t *testing.T, kind string) hostKey {
	t.Helper()
	var priv crypto.PrivateKey
	var err error
	switch kind {
	case "rsa":
		priv, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		priv, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, priv, err = ed25519.GenerateKey(rand.Reader)
	}
	must(t, err)
	block, err := ssh.MarshalPrivateKey(priv, "")
	must(t, err)
	signer, err := ssh.NewSignerFromKey(priv)
	must(t, err)
	return hostKey{private: string(pem.EncodeToMemory(block)), public: signer.PublicKey()}
}

// identity is the key that may log in everywhere.
type identity struct {
	key        ed25519.PrivateKey
	authorized string
}

var theIdentity = sync.OnceValue(func() identity {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	k, err := ssh.NewPublicKey(pub)
	if err != nil {
		panic(err) // an ed25519 key has one form
	}
	return identity{key, string(ssh.MarshalAuthorizedKey(k))}
})

func clientKey(t *testing.T) identity {
	t.Helper()
	return theIdentity()
}

// file writes the private key, encrypted when a passphrase is given, and gives its path.
func (id identity) file(t *testing.T, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(id.key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(id.key, "", []byte(passphrase))
	}
	must(t, err)
	path := filepath.Join(t.TempDir(), "client_key")
	writeFile(t, path, string(pem.EncodeToMemory(block)), 0o600)
	return path
}

// client is what one test dials with. Its home is empty, and nothing of the real one is looked at.
type client struct {
	o    remote.Options
	key  string // named as identity file; "" for none
	edit func(script []byte) []byte
	tee  io.Writer // gets a copy of what hosts send

	simulator bool // the hosts are those of the simulator's own server, not chroots

	warnings *logBuffer
}

// newClient knows the keys of the servers given.
func newClient(t *testing.T, known ...*server) *client {
	t.Helper()
	home := t.TempDir()
	var lines strings.Builder
	for _, s := range known {
		for _, k := range s.Keys {
			lines.WriteString(knownhosts.Line([]string{s.known()}, k.public) + "\n")
		}
	}
	c := &client{key: clientKey(t).file(t, ""), warnings: &logBuffer{}}
	c.o = remote.Options{
		Home: home, LocalUser: "tester", ConfigFiles: []string{filepath.Join(home, "config")}, KnownHosts: filepath.Join(home, "known_hosts"),
		ConnectTimeout: 10 * time.Second, Getenv: func(string) string { return "" },
		Warn: func(s string) { _, _ = io.WriteString(c.warnings, s+"\n") },
	}
	writeFile(t, c.o.KnownHosts, lines.String(), 0o600)
	return c
}

// rig declares a server for this client.
func (c *client) rig(s *server, user string) *inventory.Rig {
	r := &inventory.Rig{Name: "rig-under-test", Address: "127.0.0.1", SSH: inventory.SSH{User: user, Port: s.Port}}
	if c.key != "" {
		r.SSH.IdentityFiles = []string{c.key}
	}
	return r
}

// host is a connected rig as the fleet wants it.
type host struct {
	*remote.Host
	c *client
}

func (h host) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	if !h.c.simulator {
		// Busybox's shell prefers its own applets to PATH, so the log of this machine would be read and not the rig's.
		script = bytes.Replace(script, []byte("        dmesg\n"), []byte("        /stubs/dmesg\n"), 1)
	}
	if h.c.edit != nil {
		script = h.c.edit(script)
	}
	if h.c.tee != nil {
		stdout = io.MultiWriter(h.c.tee, stdout)
	}
	a, err := h.Host.Run(ctx, script, stdout)
	return collect.Access{Root: a.Root, Why: a.Why}, err
}

// hasty shortens what only waits: the deadline of nvidia-smi, and the pauses between samples.
func hasty(script []byte) []byte {
	script = bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 1 "), 1)
	return bytes.ReplaceAll(script, []byte("    sleep 1\n    nvidia-smi"), []byte("    nvidia-smi"))
}

// within fails the test when work takes longer than limit, even when it does not heed its context.
func within(t *testing.T, limit time.Duration, work func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); work(ctx) }()
	select {
	case <-done:
		if ctx.Err() != nil {
			t.Fatalf("it took longer than %s", limit)
		}
	case <-time.After(limit + 10*time.Second):
		t.Fatalf("it hangs: %s after its deadline of %s it has not come back", 10*time.Second, limit)
	}
}

// check takes rigs through connect, collect and judge, as the command does.
func (c *client) check(t *testing.T, limit time.Duration, o fleet.Options, rigs ...*inventory.Rig) []fleet.Result {
	t.Helper()
	d := remote.New(c.o)
	defer d.Close()
	open := func(ctx context.Context, rig *inventory.Rig) (fleet.Host, error) {
		h, err := d.Dial(ctx, rig)
		if err != nil {
			return nil, err
		}
		return host{h, c}, nil
	}
	var out []fleet.Result
	within(t, limit, func(ctx context.Context) { out = fleet.Run(ctx, rigs, open, o) })
	return out
}

// say runs a short script on a host and gives its output.
func (c *client) say(t *testing.T, rig *inventory.Rig, script string) (string, remote.Access, error) {
	t.Helper()
	d := remote.New(c.o)
	defer d.Close()
	var out bytes.Buffer
	var access remote.Access
	var err error
	within(t, 20*time.Second, func(ctx context.Context) {
		var h *remote.Host
		if h, err = d.Dial(ctx, rig); err != nil {
			return
		}
		defer func() { _ = h.Close() }()
		access, err = h.Run(ctx, []byte(script), &out)
	})
	return strings.TrimSpace(out.String()), access, err
}

// refused asserts that an error is of a phase and says everything in want.
func refused(t *testing.T, err error, phase remote.Phase, want ...string) {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, not one of reaching a rig", err)
	}
	if e.Phase != phase || e.Rig == "" {
		t.Errorf("phase %q of rig %q, want %q: %v", e.Phase, e.Rig, phase, err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// eventually waits for something that a host does after the connection has ended.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Errorf("after %s still not so: %s", limit, what)
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sudo" {
		os.Exit(sudo(os.Args[1:]))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most of the time of each test is waiting
		panic(err) // the flag is go test's own
	}
	code := m.Run()
	if busybox() != "" && os.Geteuid() == 0 {
		if dir, _ := base(); dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}
