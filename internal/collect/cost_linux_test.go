package collect_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/rigsim"
)

// The budget for a host with 300 PCI devices.
const (
	budgetCPU       = time.Second
	budgetProcesses = 80
)

// measured runs scripts with a shell and records what that cost the host.
type measured struct {
	argv  []string
	env   []string
	cpu   time.Duration // user and system time of the shell and all that it waited for
	procs int           // processes made, the shell included; 0 when it could not be counted
}

// Run implements collect.Runner. In a PID namespace of its own the shell is process 1 and numbers are given out in
// turn, so the number of one more process at the end is the count of all before. That needs root; the stubs of the
// simulated rig that are scripts themselves add to the count, which errs to the safe side.
func (m *measured) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	count, err := os.CreateTemp("", "preflight-count-")
	if err != nil {
		return collect.Access{}, err
	}
	defer func() { _ = os.Remove(count.Name()) }()
	_ = count.Close()
	shell := strings.Join(m.argv, " ")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", shell+`; /bin/sh -c 'echo $$' >"$COUNT"`)
	cmd.Env = append(m.env, "COUNT="+count.Name())
	cmd.Stdin, cmd.Stdout = bytes.NewReader(script), stdout
	namespace := os.Geteuid() == 0
	if namespace {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	err = cmd.Run()
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if raw, readErr := os.ReadFile(count.Name()); readErr == nil && namespace {
		m.procs, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	}
	return collect.Access{Root: "root"}, err
}

// TestCost holds the budget on a tree of 300 PCI devices, with each shell.
func TestCost(t *testing.T) {
	dir := t.TempDir()
	spec := rigsim.Healthy("big", 8)
	spec.ExtraPCI = 240
	if err := rigsim.Build(dir, spec); err != nil {
		t.Fatal(err)
	}
	plain := plainTools(t, dir)
	for name, argv := range map[string][]string{"sh": {"/bin/sh", "-s"}, "busybox": {"busybox", "ash", "-s"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Skipf("%s is not installed", argv[0])
			}
			m := &measured{argv: argv, env: plain}
			s, err := collect.Collect(t.Context(), m, collect.Request{})
			if err != nil {
				t.Fatal(err)
			}
			devices := len(facts.FromSnapshot(s).PCI)
			t.Logf("%d PCI devices, %d files: %s of CPU, %d processes, %d ms", devices, len(s.Files), m.cpu, m.procs, s.Manifest.Millis)
			if devices < 300 {
				t.Errorf("%d PCI devices, 300 were to be read", devices)
			}
			if m.cpu > budgetCPU {
				t.Errorf("%s of CPU, more than %s", m.cpu, budgetCPU)
			}
			if m.procs >= budgetProcesses {
				t.Errorf("%d processes, %d are the limit", m.procs, budgetProcesses)
			}
		})
	}
}

// plainTools replaces the rig's script stubs by ones that cost a single process each, as the real programs do.
func plainTools(t *testing.T, dir string) []string {
	t.Helper()
	bin := filepath.Join(dir, "plain")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	for name, text := range map[string]string{
		"nvidia-smi": "case \"$*\" in '-q -x') exec cat " + data + "/smi-q.xml ;; *) echo 0, 00000000:01:00.0, P8, 1, 16, 0 % ;; esac",
		"dmesg":      "exec cat " + data + "/dmesg.txt",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PREFLIGHT_ROOT=" + filepath.Join(dir, "root"), "PATH=" + bin + ":/usr/bin:/bin:/usr/sbin:/sbin"}
}

// TestWatchdog: a command that hangs is ended at its deadline although it ignores every signal that can be ignored,
// and nothing that it leaves behind holds the output open. A private copy of the script has short deadlines.
func TestWatchdog(t *testing.T) {
	dir := t.TempDir()
	if err := rigsim.Build(dir, rigsim.Spec{Name: "hung", Cards: 2, Faults: []rigsim.Kind{rigsim.SMIHang}}); err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][]string{"sh": {"/bin/sh", "-s"}, "busybox": {"busybox", "ash", "-s"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Skipf("%s is not installed", argv[0])
			}
			begin := time.Now()
			r := hasty{collect.Shell{Argv: argv, Env: rigsim.Env(dir, "root")}}
			s, err := collect.Collect(t.Context(), r, collect.Request{})
			if err != nil || s.Manifest.Cut != "" {
				t.Fatalf("%v, %+v", err, s)
			}
			if took := time.Since(begin); took > 12*time.Second {
				t.Errorf("took %s", took)
			}
			if it, _ := s.Item("cmd/nvidia-smi-q.xml"); it.Status != facts.StatusTimeout || it.Millis < 1000 {
				t.Errorf("%+v", it)
			}
			if left, _ := filepath.Glob("/proc/[0-9]*/cmdline"); len(hangers(left, dir)) > 0 {
				t.Errorf("still running: %v", hangers(left, dir))
			}
		})
	}
}

// hangers are the processes among /proc/PID/cmdline files that run something of dir.
func hangers(files []string, dir string) []string {
	var out []string
	for _, f := range files {
		if raw, err := os.ReadFile(f); err == nil && bytes.Contains(raw, []byte(dir)) {
			out = append(out, string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '})))
		}
	}
	return out
}

// hasty runs the script with a deadline of one second for nvidia-smi.
type hasty struct{ collect.Shell }

func (h hasty) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	script = bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 1 "), 1)
	return h.Shell.Run(ctx, script, stdout)
}

// TestNothingStaysBehind: the private directory is gone after a run, and after one that was cut.
func TestNothingStaysBehind(t *testing.T) {
	dir := t.TempDir()
	if err := rigsim.Build(dir, rigsim.Healthy("cut", 2)); err != nil {
		t.Fatal(err)
	}
	before := leftovers(t)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // its samples of nvidia-smi alone take two seconds
	defer cancel()
	s, err := collect.Collect(ctx, collect.Shell{Env: rigsim.Env(dir, "root")}, collect.Request{})
	if err != nil || s.Manifest.Cut == "" {
		t.Fatalf("a run that was cut: %v, %+v", err, s)
	}
	if _, err := collect.Local(t.Context(), collect.Request{}); err != nil {
		t.Fatal(err)
	}
	mine := leftovers(t) // and those of other tests that run meanwhile, which vanish as well
	for dir := range before {
		delete(mine, dir)
	}
	deadline := time.Now().Add(30 * time.Second)
	for len(mine) > 0 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		there := leftovers(t)
		for dir := range mine {
			if !there[dir] {
				delete(mine, dir)
			}
		}
	}
	for dir := range mine {
		t.Errorf("%s stays behind", dir)
	}
}

// leftovers are the private directories of all collectors on this machine.
func leftovers(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		found, err := filepath.Glob(dir + "/preflight.????????")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			out[f] = true
		}
	}
	return out
}
