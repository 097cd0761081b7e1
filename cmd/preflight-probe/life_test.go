//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"preflight/internal/probe/wire"
)

// hanging starts a job of two ranks that hangs in its initialisation.
func hanging(t *testing.T) *helper {
	t.Helper()
	h := start(t, "FAKE_GPU_FAULT=init-hang")
	h.send(wire.Request{Command: wire.CommandAllReduce, Cards: []int{0, 1}, AllReduce: small(wire.LayoutRanks)})
	inside := 0
	h.until(func(l wire.Line) bool {
		if l.Phase == wire.PhaseNCCLInit && l.State == wire.StateBegin {
			inside++
		}
		return inside == 2
	})
	return h
}

func TestEndsOfLife(t *testing.T) {
	cases := map[string]struct {
		kill func(h *helper)
		exit int
	}{
		"end of input": {func(h *helper) { _ = h.in.Close() }, exitCut},
		"SIGTERM":      {func(h *helper) { _ = h.cmd.Process.Signal(syscall.SIGTERM) }, exitCut},
		"SIGHUP":       {func(h *helper) { _ = h.cmd.Process.Signal(syscall.SIGHUP) }, exitCut},
		"SIGKILL": {func(h *helper) {
			h.orphaned = true // everything but the segment must go all the same
			_ = h.cmd.Process.Kill()
		}, -int(syscall.SIGKILL)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := hanging(t)
			c.kill(h)
			if exit := h.wait(); exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			for _, s := range h.segments() {
				_ = os.Remove(s)
			}
		})
	}
}

// One helper answers several requests, so that a hang is tried again without P2P.
func TestSecondRequestAfterAHang(t *testing.T) {
	h := start(t, "FAKE_GPU_P2P=1", "FAKE_GPU_FAULT=nccl-p2p-hang")
	r := wire.Request{Command: wire.CommandAllReduce, AllReduce: small(""), Deadlines: map[string]float64{wire.PhaseNCCLFirst: 1}}
	h.send(r)
	lines := h.until(done)
	logs := pick(lines, func(l wire.Line) bool { return l.Log != nil })
	if lines[len(lines)-1].Outcome != wire.OutcomeTimeout || len(logs) != 1 || logs[0].Log.Transport != "P2P" {
		t.Errorf("%+v", lines[len(lines)-1])
	}
	r.Env = map[string]string{"NCCL_P2P_DISABLE": "1"}
	h.send(r)
	lines = h.until(done)
	if lines[len(lines)-1].Outcome != wire.OutcomeOK {
		t.Errorf("%+v", lines[len(lines)-1])
	}
	if exit := h.end(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
}

func TestUnlinksItself(t *testing.T) {
	h := start(t)
	h.send(wire.Request{Command: wire.CommandHello})
	h.until(done)
	if left, _ := filepath.Glob(h.tmp + "/*"); len(left) > 0 {
		t.Errorf("while it runs there is %v", left)
	}
	if exit := h.end(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
}

// The alarm ends a process whose Go code never yields again.
func TestAlarm(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "PROBE_TEST_ALARM=1")
	begin := time.Now()
	err := cmd.Run()
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() || ws.Signal() != syscall.SIGALRM || time.Since(begin) > 10*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(begin))
	}
}

func TestTaskState(t *testing.T) {
	cases := map[string]byte{
		"12 (python3) D 1 12 12 0": 'D',
		"12 (a) D (b) S 1 12":      'S',
		"12 (x":                    0,
		"12 (x)":                   0,
		"":                         0,
	}
	for stat, want := range cases {
		if got := taskState(stat); got != want {
			t.Errorf("%q: %q, want %q", stat, got, want)
		}
	}
}

// A worker that SIGKILL does not end is given up: wedged when a thread of it is in state D, hung otherwise. A parent in
// vfork waits in state D as long as its child sleeps, which is as near as a test comes to a driver that does not return.
func TestAbandon(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	cases := map[string]struct {
		code         string
		key, outcome string
	}{
		"in the kernel": {"#include <unistd.h>\nint main(void) { if (vfork() == 0) for (;;) pause(); }", wire.KeyWedged, wire.OutcomeWedged},
		"elsewhere":     {"#include <unistd.h>\nint main(void) { for (;;) pause(); }", wire.KeyHang, wire.OutcomeTimeout},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "stuck")
			build := exec.Command(cc, "-w", "-x", "c", "-o", bin, "-")
			build.Stdin = strings.NewReader(c.code)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := exec.Command(bin)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			}()
			time.Sleep(300 * time.Millisecond)
			if c.key == wire.KeyWedged && !stuckInKernel(cmd.Process.Pid) {
				t.Skip("this kernel does not show a parent in vfork as state D")
			}
			var out bytes.Buffer
			s := newSupervisor(&out, nil, nil)
			s.workers = []*worker{{cmd: cmd, phase: &wire.Line{Phase: wire.PhaseNCCLInit}}}
			if s.abandon() || s.running() != 0 || s.outcome != c.outcome {
				t.Errorf("outcome %s, %d still waited for", s.outcome, s.running())
			}
			for _, want := range []string{`"phase":"nccl-init"`, `"key":"` + c.key + `"`, strconv.Itoa(cmd.Process.Pid)} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s lacks %s", out.String(), want)
				}
			}
		})
	}
}

func TestNCCLSegments(t *testing.T) {
	maps := strings.Join([]string{
		"7f00-7f10 rw-s 00000000 00:1b 11   /dev/shm/nccl-Ab12Cd",
		"7f10-7f20 rw-s 00000000 00:1b 11   /dev/shm/nccl-Ab12Cd",
		"7f20-7f30 rw-s 00000000 00:1b 12   /dev/shm/nccl-gone00 (deleted)",
		"7f30-7f40 rw-s 00000000 00:1b 13   /dev/shm/sem.other",
		"7f40-7f50 rw-s 00000000 00:1b 14   /dev/shm/nccl-x/../../../etc/passwd",
	}, "\n")
	if got := ncclSegments(maps); !slices.Equal(got, []string{"/dev/shm/nccl-Ab12Cd"}) {
		t.Errorf("%v", got)
	}
}

// The helper travels to every host, and sleeps inside the controller.
func TestSize(t *testing.T) {
	if built.missing != "" {
		t.Skip(built.missing)
	}
	info, err := os.Stat(built.dir + "/helper")
	if err != nil || info.Size() >= 4_000_000 {
		t.Errorf("%v, %d bytes", err, info.Size())
	}
}

func TestUsage(t *testing.T) {
	if built.missing != "" {
		t.Skip(built.missing)
	}
	out, err := exec.Command(built.dir+"/helper", "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "preflight-probe protocol 1 ") {
		t.Errorf("%v %s", err, out)
	}
	cmd := exec.Command(built.dir+"/helper", "--format-disk")
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("exit %d, want 2", cmd.ProcessState.ExitCode())
	}
}

func TestCrashWords(t *testing.T) {
	cases := map[string]struct {
		said string
		want string
	}{
		"Go caught it":  {"SIGSEGV: segmentation violation\nPC=0x0 m=0\n", "the process died: SIGSEGV: segmentation violation"},
		"panic":         {"noise\npanic: boom\n", "the process died: panic: boom"},
		"foreign abort": {"terminate called after throwing an instance of 'std::bad_alloc'\nmore", "the process ended with code 9 terminate called after throwing an instance of 'std::bad_alloc'"},
		"silence":       {"", "the process ended with code 9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var said tail
			_, _ = said.Write([]byte(c.said))
			if got := said.reason(9); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
