package remote

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"preflight/inventory"
)

// server is an SSH server on loopback with switches for everything that can go wrong.
type server struct {
	t         *testing.T
	address   string
	key       ssh.Signer
	config    *ssh.ServerConfig
	conns     atomic.Int32
	shell     []string // what runs the script
	env       []string
	nobody    bool          // the login is not root, whoever runs the tests
	slow      time.Duration // before the handshake
	banner    string        // sent before the version
	mute      bool          // accepts, says nothing
	cut       int           // bytes of output after which the connection is cut
	preamble  string
	stuck     bool // opens no channel, and says nothing about it
	deaf      bool // answers no global request (keepalive)
	listener  net.Listener
	started   sync.Once
	open      sync.Map
	passwords atomic.Int32
}

func newKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return priv, s
}

// writeKey writes a private key file, encrypted when a passphrase is given.
func writeKey(t *testing.T, path string, priv ed25519.PrivateKey, passphrase string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(priv, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(priv, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(block)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server that lets in the given keys.
func serve(t *testing.T, allowed ...ssh.PublicKey) *server {
	t.Helper()
	_, key := newKey(t)
	s := &server{t: t, key: key, shell: []string{"/bin/sh"}}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		for _, a := range allowed {
			if string(a.Marshal()) == string(k.Marshal()) {
				return nil, nil
			}
		}
		return nil, fmt.Errorf("key refused")
	}}
	s.config.AddHostKey(key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener, s.address = l, l.Addr().String()
	t.Cleanup(func() {
		_ = l.Close()
		s.hangUp()
	})
	return s
}

// addr is where the server listens. It serves from the first time that somebody wants to know, so that a test may set
// switches before that.
func (s *server) addr() string {
	s.started.Do(func() { go s.accept() })
	return s.address
}

// hangUp cuts all connections.
func (s *server) hangUp() {
	s.open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
}

func (s *server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.open.Store(c, true)
		s.conns.Add(1)
		go s.handle(c)
	}
}

func (s *server) handle(c net.Conn) {
	defer func() { _ = c.Close() }()
	if s.mute {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	time.Sleep(s.slow)
	_, _ = io.WriteString(c, s.banner)
	conn, chans, reqs, err := ssh.NewServerConn(c, s.config)
	if err != nil {
		return
	}
	if s.deaf {
		go func() {
			for range reqs { // never answered
			}
		}()
	} else {
		go ssh.DiscardRequests(reqs)
	}
	for ch := range chans {
		if s.stuck {
			continue
		}
		switch ch.ChannelType() {
		case "direct-tcpip":
			go forward(ch)
		case "session":
			go s.session(conn, ch)
		default:
			_ = ch.Reject(ssh.UnknownChannelType, "no")
		}
	}
}

func forward(ch ssh.NewChannel) {
	var to struct {
		Host  string
		Port  uint32
		From  string
		FPort uint32
	}
	_ = ssh.Unmarshal(ch.ExtraData(), &to)
	c, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	s, reqs, err := ch.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
	_, _ = io.Copy(c, s)
	_ = c.Close()
}

func (s *server) session(conn *ssh.ServerConn, ch ssh.NewChannel) {
	c, reqs, err := ch.Accept()
	if err != nil {
		return
	}
	for r := range reqs {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		go s.run(conn, c, string(r.Payload[4:]))
	}
}

// run executes the command as a login shell would: SHELL -c COMMAND.
func (s *server) run(conn *ssh.ServerConn, c ssh.Channel, command string) {
	_, _ = io.WriteString(c, s.preamble)
	cmd := exec.Command(s.shell[0], append(append([]string{}, s.shell[1:]...), "-c", command)...)
	cmd.Env = append(os.Environ(), s.env...)
	if s.nobody && os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(in, c); _ = in.Close() }()
	var out io.Writer = c
	if s.cut > 0 {
		out = &cutter{w: c, left: s.cut, conn: conn}
	}
	cmd.Stdout, cmd.Stderr = out, c.Stderr()
	cmd.WaitDelay = time.Second
	code := 0
	if err := cmd.Run(); err != nil {
		code = 1
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() >= 0 {
			code = cmd.ProcessState.ExitCode()
		}
	}
	_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ C uint32 }{uint32(code)}))
	_ = c.Close()
}

// cutter cuts the whole connection after so many bytes.
type cutter struct {
	w    io.Writer
	left int
	conn *ssh.ServerConn
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) >= c.left {
		_, _ = c.w.Write(p[:c.left])
		time.Sleep(50 * time.Millisecond)
		_ = c.conn.Close()
		return 0, io.ErrClosedPipe
	}
	c.left -= len(p)
	return c.w.Write(p)
}

// knows writes a known_hosts line for servers.
func knows(t *testing.T, path string, servers ...*server) {
	t.Helper()
	text := ""
	for _, s := range servers {
		text += knownhosts.Line([]string{knownhosts.Normalize(s.address)}, s.key.PublicKey()) + "\n"
	}
	write(t, path, text)
}

// client is a home directory with a key that servers let in, and the options to use it.
type client struct {
	home string
	pub  ssh.PublicKey
	priv ed25519.PrivateKey
	o    Options
}

func newClient(t *testing.T) *client {
	t.Helper()
	home := t.TempDir()
	priv, signer := newKey(t)
	writeKey(t, filepath.Join(home, ".ssh/id_ed25519"), priv, "")
	c := &client{home: home, pub: signer.PublicKey(), priv: priv}
	c.o = Options{
		Home: home, LocalUser: "me", ConfigFiles: []string{filepath.Join(home, ".ssh/config")}, ConnectTimeout: 5 * time.Second,
		Getenv: func(string) string { return "" },
	}
	return c
}

func (c *client) known() string { return filepath.Join(c.home, ".ssh/known_hosts") }

func (c *client) config(t *testing.T, text string) {
	t.Helper()
	write(t, filepath.Join(c.home, ".ssh/config"), text)
}

func (c *client) dial(t *testing.T, rig *inventory.Rig) (*Host, error) {
	t.Helper()
	d := New(c.o)
	t.Cleanup(d.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h, err := d.Dial(ctx, rig)
	if h != nil {
		t.Cleanup(func() { _ = h.Close() })
	}
	return h, err
}

func rigAt(s *server) *inventory.Rig { return &inventory.Rig{Name: "node-a", Address: s.addr()} }
