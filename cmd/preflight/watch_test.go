package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/rigsim"
)

// relay is one address that leads to a rig, to another, or to nothing.
type relay struct {
	port int
	to   atomic.Value // address; "" is off
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &relay{port: l.Addr().(*net.TCPAddr).Port}
	r.to.Store(to)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", r.to.Load().(string))
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return r
}

// inventory writes a rigs.hcl of the one rig node-a, which is whatever the relay leads to, and gives its folder.
func (r *relay) inventory(t *testing.T, rigs *rigsim.Fleet) string {
	t.Helper()
	dir := t.TempDir()
	hosts, err := os.ReadFile(rigs.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`(?m)^\S+`).ReplaceAllString(string(hosts), fmt.Sprintf("[127.0.0.1]:%d", r.port))
	inventory := fmt.Sprintf("ssh {\n  known_hosts_file = %q\n  identity_files = [%q]\n}\nrig \"node-a\" {\n  address = \"127.0.0.1:%d\"\n  cards = 2\n  ssh {\n    user = \"root\"\n  }\n}\n",
		filepath.Join(dir, "known_hosts"), rigs.KeyPath, r.port)
	for name, text := range map[string]string{"known_hosts": known, "rigs.hcl": inventory} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Somebody mends a rig while it is watched: the run goes on over the fault and over the rig being gone, and ends well.
func TestWatchEndsWhenTheRigIsWell(t *testing.T) {
	sick := rigsim.Healthy("sick", 2)
	sick.Faults = []rigsim.Kind{rigsim.PersistenceOff}
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), sick, rigsim.Healthy("well", 2))
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	relay := newRelay(t, rigs.Rigs[0].Addr)
	dir := relay.inventory(t, rigs)
	go func() {
		time.Sleep(4 * time.Second)
		relay.to.Store("127.0.0.1:1") // off
		time.Sleep(3 * time.Second)
		relay.to.Store(rigs.Rigs[1].Addr)
	}()
	f := &checkFlags{
		failOn: "warn", engine: "auto", noProbe: true, probeLimit: time.Minute, watch: time.Second, only: []string{"driver"}, output: outputFlags{format: "text", quiet: true},
		target: targetFlags{inventory: filepath.Join(dir, "rigs.hcl"), parallel: 1, ssh: sshFlags{config: os.DevNull}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code, stdout, stderr := outcome(t, func(env *environment) error { return runCheck(ctx, env, f, nil) })
	if code != checks.ExitOK || !strings.Contains(stderr, "all is well after") {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{"WARN", "UNKNOWN  not reached", "PASS"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no round says %s:\n%s", want, stdout)
		}
	}
}
