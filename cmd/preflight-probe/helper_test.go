//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"preflight/internal/probe/wire"
)

// built is where TestMain puts the helper and the fakes; empty without a C compiler.
var built struct{ dir, missing string }

func TestMain(m *testing.M) {
	if os.Getenv("PROBE_TEST_ALARM") != "" {
		alarm(200 * time.Millisecond)
		for {
			_ = len(os.Args) // a loop that never yields: only the kernel can end it
		}
	}
	os.Exit(func() int {
		var err error
		if built.dir, err = os.MkdirTemp("", "probe-test"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(built.dir)
		built.missing = build(built.dir)
		return m.Run()
	}())
}

// build makes the helper as it is shipped, and the fakes, and says what is missing for it.
func build(dir string) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "no C compiler (cc)"
	}
	run := func(env string, argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v: %v\n%s", argv, err, out))
		}
		return ""
	}
	run("CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/helper", ".")
	shared := []string{cc, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"}
	run("LC_ALL=C", append(slices.Clone(shared), "-Wl,-soname,libcuda.so.1", "-o", dir+"/libcuda.so.1", "../../internal/fakegpu/source/libcuda.c", "-lpthread")...)
	run("LC_ALL=C", append(slices.Clone(shared), "-DWITHOUT_HOST_ALLOC", "-Wl,-soname,libcuda.so.1", "-o", dir+"/libcuda-old.so", "../../internal/fakegpu/source/libcuda.c", "-lpthread")...)
	run("LC_ALL=C", append(slices.Clone(shared), "-o", dir+"/libnccl.so.2", "../../internal/fakegpu/source/libnccl.c", "-ldl", "-lpthread")...)
	run("LC_ALL=C", append(slices.Clone(shared), "-o", dir+"/libnvidia-ml.so.1", "../../internal/fakegpu/source/libnvidia-ml.c")...)
	return ""
}

// helper is one running helper on a host of its own: temporary folder, home, environment.
type helper struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan wire.Line
	mark   string // in the environment of all its processes, and in the names of NCCL's segments
	tmp    string
	stderr bytes.Buffer
	// orphaned: it was killed outright, so that nobody was left to remove NCCL's segment.
	orphaned bool
}

// start runs the helper with --unlink from a folder of its own.
func start(t *testing.T, env ...string) *helper {
	t.Helper()
	if built.missing != "" {
		t.Skip(built.missing)
	}
	h := &helper{t: t, lines: make(chan wire.Line, 4096), tmp: t.TempDir()}
	dir := filepath.Join(h.tmp, "preflight-x")
	raw, err := os.ReadFile(built.dir + "/helper")
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(dir+"/probe", raw, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.mark = fmt.Sprintf("%d.%d.", os.Getpid(), time.Now().UnixNano())
	h.cmd = exec.Command(dir+"/probe", "--unlink")
	h.cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + h.tmp, "TMPDIR=" + h.tmp, "FAKE_NCCL_MARK=" + h.mark}, env...)
	h.cmd.Stderr = &h.stderr
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		h.in, err = h.cmd.StdinPipe()
	}
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.lines)
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, 4<<20)
		for scan.Scan() {
			var l wire.Line
			if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
				t.Errorf("no line of the protocol: %s", scan.Text())
			}
			h.lines <- l
		}
	}()
	return h
}

// segments are the files of this helper's NCCL in shared memory.
func (h *helper) segments() []string {
	all, _ := filepath.Glob("/dev/shm/nccl-" + h.mark + "*")
	return all
}

// send asks for something, with the fakes as libraries unless the request names others.
func (h *helper) send(r wire.Request) {
	h.t.Helper()
	if r.LibCUDA == "" {
		r.LibCUDA = built.dir + "/libcuda.so.1"
	}
	if r.LibNCCL == "" {
		r.LibNCCL = built.dir + "/libnccl.so.2"
	}
	raw, err := json.Marshal(r)
	if err == nil {
		_, err = h.in.Write(append(raw, '\n'))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// until reads lines up to the first that pleases.
func (h *helper) until(pleases func(wire.Line) bool) (all []wire.Line) {
	h.t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case l, open := <-h.lines:
			if !open {
				h.t.Fatalf("the helper ended; stderr %s; last lines %+v", h.stderr.String(), all[max(0, len(all)-3):])
			}
			if all = append(all, l); pleases(l) {
				return all
			}
		case <-limit:
			h.t.Fatalf("nothing for a minute; last lines %+v", all[max(0, len(all)-3):])
		}
	}
}

func done(l wire.Line) bool { return l.Phase == wire.PhaseDone }

// end closes the input and returns the exit code, having looked that nothing is left.
func (h *helper) end() int {
	h.t.Helper()
	_ = h.in.Close()
	return h.wait()
}

func (h *helper) wait() int {
	h.t.Helper()
	for range h.lines { // until the output is closed: Wait must not come before
	}
	_ = h.cmd.Wait()
	h.left()
	if ws := h.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return -int(ws.Signal())
	}
	return h.cmd.ProcessState.ExitCode()
}

// left fails the test for any process, file or shared memory that is still there.
func (h *helper) left() {
	h.t.Helper()
	var alive []string
	for range 40 { // a killed child needs a moment
		if alive = processes(h.mark); len(alive) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(alive) > 0 {
		h.t.Errorf("processes left: %v", alive)
	}
	_ = filepath.WalkDir(h.tmp, func(path string, _ os.DirEntry, _ error) error {
		if path != h.tmp {
			h.t.Errorf("file left: %s", path)
		}
		return nil
	})
	if left := h.segments(); len(left) > 0 && !h.orphaned {
		h.t.Errorf("shared memory left: %v", left)
	}
}

// processes are those with a mark in their environment, zombies not counted.
func processes(mark string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err == nil && bytes.Contains(raw, []byte(mark)) {
			out = append(out, strings.TrimSuffix(path, "/environ"))
		}
	}
	return out
}

// ask runs one request and ends the helper.
func ask(t *testing.T, r wire.Request, env ...string) ([]wire.Line, int) {
	t.Helper()
	h := start(t, env...)
	h.send(r)
	lines := h.until(done)
	return lines, h.end()
}

// pick keeps the lines that please.
func pick(lines []wire.Line, pleases func(wire.Line) bool) []wire.Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l wire.Line) bool { return !pleases(l) })
}
