package probe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/fakegpu"
)

// fakes builds the helper, and libraries that behave as libcuda and libnccl do, once for all tests.
var fakes = sync.OnceValues(func() (built, error) {
	dir, err := os.MkdirTemp("", "probe-fakes-")
	if err != nil {
		return built{}, err
	}
	b := built{libs: dir}
	program := filepath.Join(dir, "preflight-probe")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "preflight/cmd/preflight-probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("go build: %w\n%s", err, out)
	}
	if b.program, err = os.ReadFile(program); err != nil {
		return b, err
	}
	if err := fakegpu.Build(dir); err != nil {
		return b, err
	}
	return b, nil
})

type built struct {
	program []byte
	libs    string
}

func (b built) helper(string) ([]byte, string, error) {
	return b.program, fmt.Sprintf("%x", sha256.Sum256(b.program)), nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := fakes(); err == nil {
		_ = os.RemoveAll(b.libs)
	}
	os.Exit(code)
}

// measured runs the native engine on a host whose cards are made up, with faults.
func measured(t *testing.T, sh, fault string, more ...string) *facts.Host {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler for the made-up driver")
	}
	b, err := fakes()
	if err != nil {
		t.Fatal(err)
	}
	run, h := host(t, sh, "")
	run.env = append(run.env, fakegpu.Cards{BDFs: []string{"0000:01:00.0", "0000:21:00.0"}, Links: []float64{24.6, 24.6}, Name: "NVIDIA GeForce RTX 4090", Fault: fault}.Env(b.libs)...)
	run.env = append(run.env, more...)
	s := &facts.Snapshot{Files: map[string][]byte{}}
	if err := Run(t.Context(), run, h, s, Options{Engine: "native", Limit: 8 * time.Second, Links: fault == "", AllReduce: true, Small: true, helper: b.helper}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", s.Files[facts.ProbeNativePath])
	return facts.FromSnapshot(s)
}

func TestNativeMeasures(t *testing.T) {
	for _, sh := range []string{"/bin/sh", "busybox ash"} {
		t.Run(sh, func(t *testing.T) {
			h := measured(t, sh, "")
			if h.Helper.Ended.Value != "exit" || h.Helper.Reason.Known() {
				t.Errorf("%+v", h.Helper)
			}
			if len(h.Rates) == 0 || len(h.Copies) != 4 || len(h.Load) != 2 {
				t.Errorf("%d rates, %d copies, %d links", len(h.Rates), len(h.Copies), len(h.Load))
			}
			if len(h.NCCL) != 2 {
				t.Fatalf("%d runs: %+v", len(h.NCCL), h.NCCL)
			}
			for i, layout := range []string{"single", "ranks"} {
				if r := h.NCCL[i]; r.Engine != "native" || r.Layout != layout || r.Ranks != 2 || r.Wrong != 0 || r.Hung || r.Transport != "SHM" || r.Library != "2.22.3" || len(r.Rows) != 3 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Each fault of the made-up driver is seen for what it is, and nothing stays on the host (see host's cleanup).
func TestNativeFaults(t *testing.T) {
	hung := func(phase string, noP2P bool) func(facts.NCCLRun) bool {
		return func(r facts.NCCLRun) bool { return r.Hung && r.Phase == phase && r.NoP2P == noP2P }
	}
	for _, row := range []struct {
		fault  string
		more   []string
		runs   []func(facts.NCCLRun) bool
		reason string // key of the helper's reason
		copies string // result of a P2P copy
	}{
		{"init-hang", nil, []func(facts.NCCLRun) bool{hung("nccl-init", false), hung("nccl-init", true)}, "", ""},
		{"nccl-p2p-hang", []string{"FAKE_GPU_P2P=1"}, []func(facts.NCCLRun) bool{hung("nccl-first", false), func(r facts.NCCLRun) bool { return r.NoP2P && len(r.Rows) == 3 && r.Wrong == 0 }}, "", "ok"},
		{"p2p-corrupt", []string{"FAKE_GPU_P2P=1"}, []func(facts.NCCLRun) bool{func(r facts.NCCLRun) bool { return r.NoP2P && len(r.Rows) == 3 }}, "", "corrupt"},
		{"wrong-sums", nil, []func(facts.NCCLRun) bool{func(r facts.NCCLRun) bool { return r.Wrong > 0 }}, "", ""},
		{"crash", nil, []func(facts.NCCLRun) bool{func(r facts.NCCLRun) bool { return r.Key == "crash" && r.Error != "" }}, "", ""},
		{"not-ready", nil, nil, "system-not-ready", ""},
		{"no-device", nil, nil, "no-device", ""},
	} {
		t.Run(row.fault, func(t *testing.T) {
			h := measured(t, "/bin/sh", row.fault, row.more...)
			if h.Helper.Key.Value != row.reason {
				t.Errorf("the helper gives %q: %+v", h.Helper.Key.Value, h.Helper)
			}
			if len(h.NCCL) < len(row.runs) {
				t.Fatalf("%d runs: %+v", len(h.NCCL), h.NCCL)
			}
			for i, right := range row.runs {
				if !right(h.NCCL[i]) {
					t.Errorf("run %d: %+v", i, h.NCCL[i])
				}
			}
			if row.copies != "" && !slices.ContainsFunc(h.Copies, func(c facts.PeerCopy) bool { return c.Path == "p2p" && c.Result == row.copies }) {
				t.Errorf("no copy is %s: %+v", row.copies, h.Copies)
			}
		})
	}
}

// Without the helper, or where it cannot be placed, another engine's turn comes, and the report says why.
func TestWithoutTheHelper(t *testing.T) {
	run, h := host(t, "/bin/sh", "")
	s := &facts.Snapshot{}
	none := func(string) ([]byte, string, error) { return nil, "", errors.New("built without") }
	if err := Run(t.Context(), run, h, s, Options{Limit: time.Second, Links: true, AllReduce: true, helper: none}); err != nil {
		t.Fatal(err)
	}
	seen := facts.FromSnapshot(s)
	if len(seen.NCCL) != 1 || !strings.Contains(seen.NCCL[0].Missing, "native: built without; nccl-tests: no all_reduce_perf") || !strings.Contains(seen.NCCL[0].Missing, "torch: ") {
		t.Errorf("%+v", seen.NCCL)
	}
	if seen.Helper.Ended.Value != "never" || seen.Helper.Reason.Value != "built without" {
		t.Errorf("%+v", seen.Helper)
	}
}

// A program that the host cannot start (another libc, another architecture) is no fault of the cards.
func TestHelperThatDoesNotStart(t *testing.T) {
	run, h := host(t, "/bin/sh", "")
	s := &facts.Snapshot{}
	odd := []byte("\x7fELF no program at all")
	helper := func(string) ([]byte, string, error) { return odd, fmt.Sprintf("%x", sha256.Sum256(odd)), nil }
	if err := Run(t.Context(), run, h, s, Options{Engine: "native", Limit: time.Second, Links: true, AllReduce: true, helper: helper}); err != nil {
		t.Fatal(err)
	}
	seen := facts.FromSnapshot(s)
	if len(seen.NCCL) != 1 || !strings.Contains(seen.NCCL[0].Missing, "does not run on this host") || !strings.Contains(seen.Helper.Reason.Value, "does not run on this host") {
		t.Errorf("%+v, %+v", seen.NCCL, seen.Helper)
	}
}

// A directory without room for the helper is passed by; the next one takes it. The small file system is real.
func TestFullDirectoryIsPassedBy(t *testing.T) {
	run, h := host(t, "/bin/sh", "")
	full := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", full).CombinedOutput(); err != nil {
		t.Skipf("no file system of its own: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", full).Run() })
	run.env = append(run.env, "XDG_RUNTIME_DIR="+full)
	odd := []byte(strings.Repeat("no program ", 400<<10))
	helper := func(string) ([]byte, string, error) { return odd, fmt.Sprintf("%x", sha256.Sum256(odd)), nil }
	s := &facts.Snapshot{}
	if err := Run(t.Context(), run, h, s, Options{Engine: "native", Limit: time.Second, Links: true, AllReduce: true, helper: helper}); err != nil {
		t.Fatal(err)
	}
	seen := facts.FromSnapshot(s)
	if strings.HasPrefix(seen.Helper.Place.Value, full) || !strings.Contains(seen.Helper.Reason.Value, "does not run on this host") {
		t.Errorf("%+v", seen.Helper)
	}
	if left, _ := os.ReadDir(full); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
