package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/report"
	"preflight/internal/rigsim"
)

// sinceRun is check over SSH on the one rig of a folder, whose runs are kept beside its inventory.
func sinceRun(t *testing.T, dir string, change func(*checkFlags)) (code int, stdout, stderr string) {
	t.Helper()
	f := &checkFlags{
		failOn: "fail", engine: "auto", noProbe: true, probeLimit: time.Minute, only: []string{"firmware", "gpu.count"}, output: outputFlags{format: "text"},
		target: targetFlags{inventory: filepath.Join(dir, "rigs.hcl"), parallel: 1, ssh: sshFlags{config: os.DevNull}},
	}
	change(f)
	return outcome(t, func(env *environment) error { return runCheck(t.Context(), env, f, nil) })
}

// The job after a BIOS update, over SSH: a run is kept, the rig comes back otherwise, and the comparison with the last run says
// what changed. A run in which the rig did not answer holds nothing to compare with, so it is not the last one.
func TestSinceLastOverSSH(t *testing.T) {
	updated := rigsim.Healthy("updated", 2)
	updated.Faults = []rigsim.Kind{rigsim.BIOSReset}
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), rigsim.Healthy("before", 2), updated)
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	relay := newRelay(t, rigs.Rigs[0].Addr)
	dir := relay.inventory(t, rigs)
	runs := filepath.Join(dir, "runs")
	keep := func(f *checkFlags) { f.save = runs }
	last := func(f *checkFlags) { f.save, f.since = runs, "last" }

	if code, stdout, stderr := sinceRun(t, dir, keep); code != checks.ExitOK {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := sinceRun(t, dir, last); code != checks.ExitOK || !strings.Contains(stdout, "node-a  nothing changed") {
		t.Errorf("the same rig: exit %d\n%s%s", code, stdout, stderr)
	}
	relay.to.Store("127.0.0.1:1") // it reboots
	if code, stdout, stderr := sinceRun(t, dir, last); code != checks.ExitUnknown || !strings.Contains(stdout, "node-a  not reached now") {
		t.Errorf("off: exit %d\n%s%s", code, stdout, stderr)
	}
	relay.to.Store(rigs.Rigs[1].Addr)
	path := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr := sinceRun(t, dir, func(f *checkFlags) { last(f); f.output.format = "text,json=" + path })
	for _, want := range []string{"✗ new  firmware.resizable-bar@", "BAR1: 32768 MiB → 256 MiB", "BIOS version: 1106 → 1203"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q: exit %d\n%s%s", want, code, stdout, stderr)
		}
	}
	if code != checks.ExitFail {
		t.Errorf("exit %d", code)
	}
	followsSchema(t, path)
	private(t, runs)
}

// followsSchema validates a report with changes against the file that users get.
func followsSchema(t *testing.T, path string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil || doc["changes"] == nil {
		t.Errorf("changes %v: %v", doc["changes"], err)
	}
}

// private holds that what is kept can be read by its owner alone, and that nothing half-written lies there.
func private(t *testing.T, runs string) {
	t.Helper()
	var kept []string
	err := filepath.WalkDir(runs, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 || strings.HasPrefix(d.Name(), ".") {
			t.Errorf("%s: %s", path, info.Mode())
		}
		if d.Name() == "report.json" {
			kept = append(kept, path)
		}
		return nil
	})
	if err != nil || len(kept) != 4 {
		t.Errorf("%v kept: %v", kept, err)
	}
}

// A stream of lines is the same side as the whole report.
func TestSidesOfReports(t *testing.T) {
	dir := t.TempDir()
	g := report.Rig{Name: "node-a", Verdict: checks.Fail, Facts: map[string]any{"bios": map[string]any{"version": "2.4"}}, Findings: []checks.Finding{
		{ID: "cpu.cores@rig", Check: "cpu.cores", Verdict: checks.Pass}, {ID: "cluster.consistency@rig", Check: "cluster.consistency", Verdict: checks.Fail},
	}}
	r := &report.Report{Schema: report.Schema, Tool: report.Tool{Name: "preflight", Version: "1"}, Rigs: []report.Rig{g}}
	r.Finish()
	var whole, lines strings.Builder
	if err := report.WriteJSON(&whole, r); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJSONL(&lines, r); err != nil {
		t.Fatal(err)
	}
	side := func(name, text string) (any, error) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		states, is, err := reportSide(path)
		if !is {
			t.Errorf("%s is not taken for a report", name)
		}
		return states, err
	}
	a, errA := side("whole.json", whole.String())
	b, errB := side("lines.jsonl", lines.String())
	if d := cmp.Diff(a, b); d != "" || errA != nil || errB != nil {
		t.Errorf("%v %v\n%s", errA, errB, d)
	}
	cut := lines.String()[:strings.LastIndex(strings.TrimSpace(lines.String()), "\n")+1]
	for name, c := range map[string]struct{ text, want string }{
		"a stream cut off":     {cut, "its last line, of the type run, is missing"},
		"cut in a line":        {lines.String()[:len(lines.String())-9], "is no complete report"},
		"cut in the whole":     {whole.String()[:whole.Len()/2], "is no complete report"},
		"two reports":          {whole.String() + whole.String(), "there is more after its end"},
		"a comparison":         {`{"schema": "preflight/diff/v1"}`, "it is a comparison"},
		"a report of no rig":   {`{"schema": "preflight/report/v1", "rigs": []}`, "of no rig"},
		"a later layout":       {`{"schema": "preflight/report/v9"}`, `has the schema "preflight/report/v9"`},
		"something else":       {`{"schema": ["x"]}`, "is no report"},
		"a rig that is a list": {`{"schema": "preflight/report/v1", "rigs": [[]]}`, "is no complete report"},
	} {
		if _, err := side("x.json", c.text); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
