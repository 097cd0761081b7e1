package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
)

// python runs the torch engine with a Python that says what a row wants, and reads its program to the end first.
func python(t *testing.T, text string, limit time.Duration) *facts.Host {
	t.Helper()
	run, h := host(t, "/bin/sh", "")
	dir := strings.TrimPrefix(run.env[1], "HOME=")
	path := filepath.Join(dir, "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	h.Software.Torch = []facts.Torch{{Python: path, Version: "2.7.1+cu128", CUDA: "12.8"}}
	s := &facts.Snapshot{}
	if err := Run(t.Context(), run, h, s, Options{Engine: "torch", Limit: limit, AllReduce: true}); err != nil {
		t.Fatal(err)
	}
	return facts.FromSnapshot(s)
}

func TestTorch(t *testing.T) {
	const begun = `echo '{"phase": "opening the cards", "torch": "2.7.1+cu128", "ranks": 2}'
echo '{"phase": "initialisation", "nccl": "2.26.2"}'
echo '{"phase": "the first all-reduce"}'
`
	for _, row := range []struct {
		name, text string
		right      func(facts.NCCLRun) bool
	}{
		{"measures", begun + `echo '{"phase": "measuring", "ranks": 2, "bytes": 268435456, "time_us": 19000, "wrong": 0}'`, func(r facts.NCCLRun) bool {
			return r.Engine == "torch" && r.Library == "2.26.2" && r.Ranks == 2 && r.Wrong == 0 && len(r.Rows) == 1 && r.Rows[0].BusBW > 14.1 && r.Rows[0].BusBW < 14.2
		}},
		{"wrong sums", begun + `echo '{"ranks": 2, "bytes": 1048576, "time_us": 90, "wrong": 7}'`, func(r facts.NCCLRun) bool { return r.Wrong == 7 }},
		{"hangs", begun + "sleep 60", func(r facts.NCCLRun) bool { return r.Hung && r.Phase == "the first all-reduce" && r.Ranks == 2 }},
		{"an error", begun + `echo '{"error": "DistBackendError: NCCL error: unhandled cuda error"}'; exit 1`, func(r facts.NCCLRun) bool { return strings.HasPrefix(r.Error, "DistBackendError") && !r.Hung }},
		{"no CUDA in it", `echo '{"missing": "this torch (2.7.1+cpu) is built without CUDA"}'`, func(r facts.NCCLRun) bool { return r.Engine == "none" && strings.Contains(r.Missing, "without CUDA") }},
		{"dies", "echo 'Segmentation fault' >&2; exit 139", func(r facts.NCCLRun) bool { return r.Error == "Segmentation fault" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			limit := 10 * time.Second
			if row.name == "hangs" {
				limit = 2 * time.Second
			}
			h := python(t, row.text, limit)
			if len(h.NCCL) != 1 || !row.right(h.NCCL[0]) {
				t.Errorf("%+v", h.NCCL)
			}
		})
	}
}

// The program at least compiles, where there is a Python.
func TestTorchProgramCompiles(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	cmd := exec.Command(path, "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	cmd.Stdin = strings.NewReader(torchProgram)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
