package rigsim

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Rig is one simulated rig that is being served.
type Rig struct {
	Name string
	Addr string // host:port on loopback
	Root string // directory that holds the rig's files (Root/root), stubs and state
	User string // login name
}

// Fleet is simulated rigs, each behind an SSH server of its own, and what a client needs to reach them.
type Fleet struct {
	Rigs          []Rig
	Dir           string
	InventoryPath string // rigs.hcl
	KnownHosts    string // known_hosts file
	KeyPath       string // private key of the client, unencrypted

	stop context.CancelFunc
	wg   sync.WaitGroup
	temp bool

	machines []*machine
}

// Serve builds rigs below dir (a temporary directory when it is empty, removed by Close) and serves them on loopback
// until ctx ends or Close is called. It writes rigs.hcl, known_hosts and a client key into dir.
func Serve(ctx context.Context, dir string, specs ...Spec) (*Fleet, error) {
	f := &Fleet{Dir: dir}
	if dir == "" {
		var err error
		if f.Dir, err = os.MkdirTemp("", "preflight-rigs-"); err != nil {
			return nil, err
		}
		f.temp = true
	}
	ctx, f.stop = context.WithCancel(ctx)
	if err := f.start(ctx, specs); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close stops the servers, ends what they run, and removes a temporary directory.
func (f *Fleet) Close() {
	f.stop()
	f.wg.Wait()
	if f.temp {
		_ = os.RemoveAll(f.Dir)
	}
}

func (f *Fleet) start(ctx context.Context, specs []Spec) error {
	f.KeyPath, f.KnownHosts, f.InventoryPath = filepath.Join(f.Dir, "client_key"), filepath.Join(f.Dir, "known_hosts"), filepath.Join(f.Dir, "rigs.hcl")
	client, err := newClientKey(f.KeyPath)
	if err != nil {
		return err
	}
	var machines []*machine
	hosts := ""
	for i, s := range specs {
		m, err := newMachine(s)
		if err != nil {
			return err
		}
		machines, f.machines = append(machines, m), append(f.machines, m)
		root := filepath.Join(f.Dir, fmt.Sprintf("rig-%d", i+1))
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		if err := build(root, m); err != nil {
			return fmt.Errorf("rig %s: %w", s.Name, err)
		}
		signer, err := newHostKey()
		if err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		rig := Rig{Name: m.Name, Addr: l.Addr().String(), Root: root, User: "root"}
		if m.User {
			rig.User = "ops"
		}
		f.Rigs = append(f.Rigs, rig)
		hosts += knownhosts.Line([]string{rig.Addr}, signer.PublicKey()) + "\n"
		f.wg.Go(func() { accept(ctx, l, newServer(rig, m, signer, client), &f.wg) })
	}
	if err := os.WriteFile(f.KnownHosts, []byte(hosts), 0o600); err != nil {
		return err
	}
	return os.WriteFile(f.InventoryPath, []byte(inventoryText(f, machines)), 0o600)
}

// newClientKey writes a private key and gives the public one.
func newClientKey(path string) (ssh.PublicKey, error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(priv, "preflight simulated rigs")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(pub)
}

func newHostKey() (ssh.Signer, error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(priv)
}

// server answers for one rig.
type server struct {
	rig    Rig
	config *ssh.ServerConfig
	fate   fate
	user   bool // commands run without root's right to read everything
}

var errNotYou = errors.New("this key may not log in")

func newServer(rig Rig, m *machine, host ssh.Signer, client ssh.PublicKey) *server {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.11",
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != rig.User || string(key.Marshal()) != string(client.Marshal()) {
				return nil, errNotYou
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(host)
	return &server{rig: rig, config: config, user: m.User, fate: fate{dies: m.dies}}
}

// Env is the environment in which a rig's commands run: its files, its stubs first in PATH.
func Env(root, user string) []string {
	return append([]string{
		"PREFLIGHT_ROOT=" + filepath.Join(root, rootDir), "PATH=" + filepath.Join(root, binDir) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME=" + filepath.Join(root, homeDir), "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "LANG=en_US.UTF-8",
	}, libraries(root)...)
}

func accept(ctx context.Context, l net.Listener, s *server, wg *sync.WaitGroup) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { s.serve(ctx, conn) })
	}
}

// serve answers one connection.
func (s *server) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if s.fate.off.Load() {
		return
	}
	over := make(chan struct{})
	defer close(over)
	go s.follow(conn, over)
	sc, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	defer func() { _ = sc.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for r := range requests {
			if r.WantReply {
				_ = r.Reply(r.Type == "keepalive@openssh.com", nil)
			}
		}
	}()
	var sessions sync.WaitGroup
	for nc := range channels {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		ch, reqs, err := nc.Accept()
		if err != nil {
			break
		}
		sessions.Go(func() { s.session(ctx, ch, reqs) })
	}
	cancel()
	sessions.Wait()
}
