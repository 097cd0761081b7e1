package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"preflight/internal/collect"
	"preflight/internal/rigsim"
)

// build makes the controller as `make build` does.
func build(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "preflight")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// BenchmarkStart is one `preflight version`; the target is under 30 ms.
func BenchmarkStart(b *testing.B) {
	bin := build(b)
	for b.Loop() {
		if err := exec.Command(bin, "version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// benchHosts is how many simulated hosts the two below read at once.
const benchHosts = 16

// BenchmarkHosts reads simulated hosts over SSH on loopback: check (which parses and judges as well) and collect
// (which parses, blanks serials and writes archives) beside `xargs -P 32 ssh` running the same script and keeping its
// output.
func BenchmarkHosts(b *testing.B) {
	bin := build(b)
	var specs []rigsim.Spec
	for i := range benchHosts {
		specs = append(specs, rigsim.Healthy(fmt.Sprintf("host-%02d", i), 4))
	}
	rigs, err := rigsim.Serve(b.Context(), b.TempDir(), specs...)
	if err != nil {
		b.Fatal(err)
	}
	defer rigs.Close()
	b.Run("preflight-check", func(b *testing.B) {
		for b.Loop() {
			out, err := exec.Command(bin, "check", "-i", rigs.InventoryPath, "-F", os.DevNull, "--no-probe", "-q").CombinedOutput()
			if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 4 { //nolint:errorlint // exactly what Run returns
				b.Fatalf("%v\n%s", err, out)
			}
		}
	})
	b.Run("preflight-collect", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			if out, err := exec.Command(bin, "collect", "-i", rigs.InventoryPath, "-F", os.DevNull, "-o", dir).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}
	})
	b.Run("xargs-ssh", func(b *testing.B) {
		if _, err := exec.LookPath("ssh"); err != nil {
			b.Skip("no ssh client on this machine")
		}
		dir := b.TempDir()
		script := filepath.Join(dir, "script")
		if err := os.WriteFile(script, collect.Script(collect.Request{Nonce: collect.NewNonce()}), 0o600); err != nil {
			b.Fatal(err)
		}
		var ports []string
		for _, r := range rigs.Rigs {
			_, port, _ := net.SplitHostPort(r.Addr)
			ports = append(ports, port)
		}
		line := fmt.Sprintf("xargs -P 32 -I{} sh -c 'ssh -F /dev/null -o BatchMode=yes -o UserKnownHostsFile=%s -i %s -p {} %s@127.0.0.1 \"exec /bin/sh -s\" <%s >%s/out.{}'",
			rigs.KnownHosts, rigs.KeyPath, rigs.Rigs[0].User, script, dir)
		for b.Loop() {
			cmd := exec.Command("sh", "-c", line)
			cmd.Stdin = strings.NewReader(strings.Join(ports, "\n") + "\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}
	})
}
