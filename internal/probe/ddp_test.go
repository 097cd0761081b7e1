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

// training runs a scaling test with a Python that says what a row wants.
func training(t *testing.T, text string, o DDPOptions, change func(*facts.Host)) (*facts.DDP, string) {
	t.Helper()
	run, h := host(t, "/bin/sh", "")
	dir := strings.TrimPrefix(run.env[1], "HOME=")
	path := filepath.Join(dir, "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	h.Software.Torch = []facts.Torch{{Python: path, Version: "2.7.1+cu128", CUDA: "12.8"}}
	if change != nil {
		change(h)
	}
	if o.Limit == 0 {
		o.Limit = 20 * time.Second
	}
	o.Parameters, o.Tokens, o.Steps, o.Every = DDPParameters, DDPTokens, DDPSteps, time.Second
	s := &facts.Snapshot{}
	if err := Run(t.Context(), run, h, s, Options{DDP: &o}); err != nil {
		t.Fatal(err)
	}
	d := facts.FromSnapshot(s).DDP
	if d == nil {
		t.Fatal("nothing is kept")
	}
	return d, dir
}

func TestDDP(t *testing.T) {
	const begun = `echo '{"phase": "importing torch"}'
echo '{"phase": "training", "stage": 0, "cards": [0], "torch": "2.7.1+cu128", "nccl": "2.26.2", "parameters": 335659008}'
echo '{"phase": "measured", "stage": 0, "cards": [0], "step_ms": 104.5, "no_sync_ms": 104.5, "wait_ms": 0, "peak": 6000000000, "fetched": 0}'
echo '{"phase": "training", "stage": 1, "cards": [0, 1], "torch": "2.7.1+cu128", "nccl": "2.26.2", "parameters": 335659008}'
`
	for _, row := range []struct {
		name, text string
		options    DDPOptions
		change     func(*facts.Host)
		right      func(*facts.DDP) bool
	}{
		{"measures", begun + `echo '{"phase": "measured", "stage": 1, "cards": [0, 1], "step_ms": 150, "no_sync_ms": 105, "wait_ms": 0, "peak": 7000000000, "fetched": 0}'
echo '{"phase": "done"}'`, DDPOptions{}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPDone && d.Gradient == 4*335659008 && d.NCCL == "2.26.2" && len(d.Stages) == 2 && len(d.Stages[1].Cards) == 2 && d.Stages[1].Step == 150 && d.Stages[0].Peak == 5722
		}},
		{"hangs", begun + "sleep 60", DDPOptions{Limit: 2 * time.Second}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPHang && len(d.Stages) == 1 && strings.Contains(d.Text, ", ")
		}},
		{"an error", begun + `echo '{"error": "OutOfMemoryError: CUDA out of memory.", "cards": [0, 1], "rank": 1}'; exit 1`, DDPOptions{}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPError && strings.HasPrefix(d.Text, "OutOfMemoryError")
		}},
		{"dies", "echo 'Segmentation fault' >&2; exit 139", DDPOptions{}, nil, func(d *facts.DDP) bool { return d.Ended == facts.DDPError && d.Text == "Segmentation fault" }},
		{"no CUDA in it", `echo '{"missing": "this torch (2.7.1+cpu) is built without CUDA"}'`, DDPOptions{}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPMissing && strings.Contains(d.Text, "without CUDA")
		}},
		{"no torch", "", DDPOptions{}, func(h *facts.Host) { h.Software.Torch = nil }, func(d *facts.DDP) bool { return d.Ended == facts.DDPMissing }},
		{"Python is gone", "", DDPOptions{}, func(h *facts.Host) { h.Software.Torch[0].Python = "/nowhere/python3" }, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPMissing && d.Text == "/nowhere/python3 is not there"
		}},
		{"cards at work", "", DDPOptions{}, func(h *facts.Host) { h.Cards[0].Processes = facts.Of(1, "t") }, func(d *facts.DDP) bool { return d.Ended == facts.DDPBusy }},
		{"a command of the user's own", "", DDPOptions{Command: "echo epoch 1; exit 3"}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPDone && d.Observed != nil && d.Observed.Exit == 3 && d.Observed.Tail == "epoch 1"
		}},
		{"one that does not end", "", DDPOptions{Command: "sleep 60", Limit: 2 * time.Second}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPDone && d.Observed.Exit == -1
		}},
		{"lines of nobody", `echo '{"phase": "measured", "cards": [77], "step_ms": 1}'; echo '{"phase": "measured", "cards": [-1, 0], "step_ms": -4}'; printf '\377{'; echo; echo '{"phase": "done"}'`, DDPOptions{}, nil, func(d *facts.DDP) bool {
			return d.Ended == facts.DDPDone && len(d.Stages) == 0
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, dir := training(t, row.text, row.options, row.change)
			if !row.right(d) {
				t.Errorf("%+v", d)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "preflight.*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestStages(t *testing.T) {
	for cards, want := range map[int]string{1: "0", 2: "0,1,0+1", 4: "0,1,2,3,0+1,0+1+2+3", 6: "0,1,2,3,4,5,0+1,0+1+2+3,0+1+2+3+4+5"} {
		if got := Stages(cards); got != want {
			t.Errorf("%d cards: %s", cards, got)
		}
	}
}

// The program at least compiles, where there is a Python.
func TestDDPProgramCompiles(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	cmd := exec.Command(path, "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	cmd.Stdin = strings.NewReader(ddpProgram)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
