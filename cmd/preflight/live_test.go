package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/rigsim"
)

// watch shows each card once, follows load, tells a new Xid by its name, and keeps what it records.
func TestWatch(t *testing.T) {
	rigs, run := served(t, rigsim.Healthy("node-a", 2), rigsim.Healthy("node-b", 4))
	code, out, stderr := run("watch", "--once")
	if code != checks.ExitOK || !strings.Contains(out, "2 rigs, 6 cards  ✓ 2\n✓ node-a  2× GeForce RTX 4090  0 %  ") || strings.Count(out, "Gen1 x16") != 6 {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	for path, text := range map[string]string{
		"data/busy":     "",
		"root/dev/kmsg": "4,3,999999999999999,-;NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n",
	} {
		full := filepath.Join(rigs.Rigs[0].Root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(t.TempDir(), "night.csv")
	code, out, stderr = run("watch", "--for", "4s", "--interval", "1s", "--record", record, "--format", "csv")
	if code != checks.ExitOK || !strings.Contains(out, "✗ 1  ✓ 1\n✗ node-a  2× GeForce RTX 4090  99 %  ") || !strings.Contains(out, "Xid 79 (") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	raw, err := os.ReadFile(record)
	if err != nil || strings.Count(string(raw), "\n") < 1+2*6 || !strings.HasPrefix(string(raw), "time,rig,card,name,power_w,") {
		t.Errorf("%v %s", err, raw)
	}
	code, out, stderr = run("watch", "--for", "3s", "--format", "jsonl", "node-b")
	if code != checks.ExitOK || !strings.HasPrefix(out, "{") || strings.Contains(out, "node-a") || strings.Contains(out, "rigs, ") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	prom := filepath.Join(t.TempDir(), "p.prom")
	code, out, stderr = run("watch", "--for", "3s", "--interval", "1s", "--format", "prometheus", "--record", prom)
	raw, err = os.ReadFile(prom)
	if code != checks.ExitOK || err != nil || out != "" || strings.Count(string(raw), "preflight_card_power_w{") != 6 {
		t.Errorf("exit %d %v\n%s%s%s", code, err, out, stderr, raw)
	}
	if code, _, stderr := run("watch", "--once", "--record", filepath.Join(t.TempDir(), "no", "file")); code != checks.ExitTool || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

// gate is a way to a rig that can be closed and opened again.
type gate struct {
	to    string
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", g.to)
		g.mu.Lock()
		if err != nil || g.shut {
			_ = c.Close()
			g.mu.Unlock()
			continue
		}
		g.conns = append(g.conns, c, far)
		g.mu.Unlock()
		go func() { _, _ = io.Copy(far, c); _ = far.Close() }()
		go func() { _, _ = io.Copy(c, far); _ = c.Close() }()
	}
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			_ = c.Close()
		}
		g.conns = nil
	}
}

// A rig that drops is told, tried again, and shown when it is back.
func TestWatchFollowsARigThatDrops(t *testing.T) {
	rigs, _ := served(t, rigsim.Healthy("node-a", 2))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	g := &gate{to: rigs.Rigs[0].Addr}
	go g.serve(l)
	dir := t.TempDir()
	inventory := filepath.Join(dir, "rigs.hcl")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	text := fmt.Sprintf("rig \"node-a\" {\n  address = \"127.0.0.1\"\n  ssh {\n    user           = %q\n    port           = %s\n    identity_files = [%q]\n  }\n}\n", rigs.Rigs[0].User, port, rigs.KeyPath)
	if err := os.WriteFile(inventory, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out lockedBuffer
	env := &environment{stdout: &out, stderr: &out, language: "en"}
	f := &liveFlags{interval: time.Second, hot: 85, format: "jsonl", target: targetFlags{inventory: inventory, parallel: 1, ssh: sshFlags{config: os.DevNull, hostKeys: "accept-new", knownHosts: filepath.Join(dir, "known")}}}
	done := make(chan error, 1)
	go func() { done <- runWatch(ctx, env, f, nil) }()
	samples := func(n int) {
		t.Helper()
		for range 400 {
			if strings.Count(out.String(), `"type":"sample"`) >= n {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("no %d samples:\n%s", n, out.String())
	}
	samples(4)
	g.set(true)
	time.Sleep(500 * time.Millisecond)
	had := strings.Count(out.String(), `"type":"sample"`)
	time.Sleep(2 * time.Second)
	if now := strings.Count(out.String(), `"type":"sample"`); now != had {
		t.Errorf("samples came through a shut gate: %d, then %d", had, now)
	}
	g.set(false)
	samples(had + 2)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("an end by Ctrl-C: %v", err)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
