package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/report"
	"preflight/internal/rigsim"
)

// Two rigs run one all-reduce over SSH; every rig of the report tells it, and so does a snapshot that is read again.
func TestAcrossOverSSH(t *testing.T) {
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), rigsim.Healthy("node-a", 2), rigsim.Healthy("node-b", 4))
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	f := &checkFlags{
		failOn: "fail", engine: "auto", small: true, probeLimit: 30 * time.Second, across: true, only: []string{"nccl.all-reduce"}, save: filepath.Join(dir, "runs"),
		output: outputFlags{format: "json=" + filepath.Join(dir, "r.json")},
		target: targetFlags{inventory: rigs.InventoryPath, parallel: 2, ssh: sshFlags{config: os.DevNull}},
	}
	code, stdout, stderr := outcome(t, func(env *environment) error { return runCheck(t.Context(), env, f, []string{"node-*"}) })
	raw, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatalf("exit %d: %v\n%s\n%s", code, err, stdout, stderr)
	}
	var r report.Report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, g := range r.Rigs {
		for _, x := range g.Findings {
			if x.Check == "nccl.all-reduce" {
				seen[g.Name] = x.Subject + " " + string(x.Verdict) + " " + x.Summary
			}
		}
	}
	for _, name := range []string{"node-a", "node-b"} { // loopback tells no line rate, so the figure proves no speed
		if !strings.HasPrefix(seen[name], "across unknown ") || !strings.Contains(seen[name], "GB/s across hosts; the line rate of lo on node-a is not known") {
			t.Errorf("%s: %q\n%s", name, seen[name], stderr)
		}
	}
	if code != checks.ExitUnknown {
		t.Errorf("exit %d", code)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "runs", "*", "snapshots", "node-b.tar.gz"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v %v", kept, err)
	}
	_, stdout, stderr = command(t, "check", "--from", kept[0], "--only", "nccl")
	if !strings.Contains(stdout, "GB/s across hosts; the line rate of lo on node-a is not known") {
		t.Errorf("read again: %s%s", stdout, stderr)
	}
}
