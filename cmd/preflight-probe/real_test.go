//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"preflight/internal/probe/wire"
)

// TestRealLibraries loads NVIDIA's own libraries where they are unpacked, to hold names of functions and the paths of
// errors. PREFLIGHT_REAL_LIBS is a root with libcuda1 and libnccl2 of Debian (contrib, non-free), with the libc6,
// libgcc-s1 and libstdc++6 that they need; its loader is used when it has one. No card is needed.
func TestRealLibraries(t *testing.T) {
	root := os.Getenv("PREFLIGHT_REAL_LIBS")
	if root == "" {
		t.Skip("PREFLIGHT_REAL_LIBS does not name a folder with the real libcuda.so.1 and libnccl.so.2")
	}
	find := func(name string) string {
		for _, pattern := range []string{"/usr/lib/*-linux-gnu/", "/usr/lib/*-linux-gnu/nvidia/current/", "/usr/lib64/", "/"} {
			if found, _ := filepath.Glob(root + pattern + name); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	cuda, nccl, loader := find("libcuda.so.1"), find("libnccl.so.2"), find(map[string]string{"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}[runtime.GOARCH])
	helper := filepath.Join(t.TempDir(), "helper")
	flags := "-s -w"
	if loader != "" {
		flags += " -I " + loader
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", helper, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	talk := func(r wire.Request) []wire.Line {
		cmd := exec.Command(helper)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(nccl)+":"+filepath.Dir(loader))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			err = json.NewEncoder(in).Encode(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(30*time.Second, func() { _ = in.Close() }).Stop() // its end ends the helper
		var lines []wire.Line
		for scan := bufio.NewScanner(out); scan.Scan() && (len(lines) == 0 || !done(lines[len(lines)-1])); {
			var l wire.Line
			if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
				t.Fatalf("%v: %s", err, scan.Text())
			}
			if lines = append(lines, l); done(l) {
				_ = in.Close()
			}
		}
		_ = cmd.Wait()
		return lines
	}
	t.Run("functions and versions", func(t *testing.T) {
		if cuda == "" || nccl == "" {
			t.Skip("one of the libraries is missing")
		}
		lines := talk(wire.Request{Command: wire.CommandHello, LibCUDA: cuda, LibNCCL: nccl})
		for _, l := range lines {
			t.Logf("%s %s %+v %+v", l.Phase, l.State, l.Library, l.Error)
			if e := l.Error; e != nil && e.Key != wire.KeyNoDevice {
				t.Errorf("%s: %+v", l.Phase, *e)
			}
		}
		if n := len(pick(lines, func(l wire.Line) bool { return l.Library != nil && l.Library.Version != "" })); n != 2 {
			t.Errorf("%d libraries were loaded", n)
		}
	})
	// NCCL against a driver that is none: its own words, and its log, must arrive.
	t.Run("NCCL's errors and log", func(t *testing.T) {
		if nccl == "" || built.missing != "" {
			t.Skip("no libnccl, or no C compiler for the fake driver")
		}
		lines := talk(wire.Request{Command: wire.CommandAllReduce, LibCUDA: built.dir + "/libcuda.so.1", LibNCCL: nccl, AllReduce: small("")})
		failed := pick(lines, func(l wire.Line) bool { return l.Error != nil })
		if len(failed) != 1 || failed[0].Phase != wire.PhaseNCCLInit || failed[0].Error.Code != 1 || !strings.Contains(failed[0].Error.Last, "Cuda failure") {
			t.Errorf("%+v", failed)
		}
		logs := pick(lines, func(l wire.Line) bool { return l.Log != nil && len(l.Log.Warnings) > 0 })
		if len(logs) != 1 {
			t.Errorf("NCCL's log did not arrive: %+v", lines[max(0, len(lines)-3):])
		}
	})
}
