package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/report"
	"preflight/internal/rigsim"
	"preflight/internal/sample"
)

// burnt runs a burn-in on rigs and returns what each snapshot holds of it.
func burnt(t *testing.T, rigs *rigsim.Fleet, run func(...string) (int, string, string), args ...string) (map[string]*facts.BurnIn, int, string) {
	t.Helper()
	dir := t.TempDir()
	code, out, stderr := run(append([]string{"probe", "burn-in", "--interval", "1s", "--save=" + dir}, args...)...)
	all := map[string]*facts.BurnIn{}
	for _, r := range rigs.Rigs {
		kept, _ := filepath.Glob(filepath.Join(dir, "*", "snapshots", r.Name+".tar.gz"))
		if len(kept) != 1 {
			continue
		}
		f, err := os.Open(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		s, err := facts.Load(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if all[r.Name] = facts.FromSnapshot(s).BurnIn; all[r.Name] == nil {
			t.Errorf("%s: no burn-in is kept", r.Name)
			all[r.Name] = &facts.BurnIn{}
		}
	}
	if len(all) == 0 {
		t.Fatalf("exit %d, nothing is kept\n%s%s", code, out, stderr)
	}
	reports, _ := filepath.Glob(filepath.Join(dir, "*", "report.json"))
	var r report.Report
	raw, err := os.ReadFile(reports[0])
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	verdicts := "\n"
	for _, g := range r.Rigs {
		for _, f := range g.Findings {
			verdicts += g.Name + " " + f.Check + " " + string(f.Verdict) + "\n"
		}
	}
	return all, code, out + stderr + verdicts
}

func burning(name string, faults ...rigsim.Kind) rigsim.Spec {
	s := rigsim.Healthy(name, 2)
	s.Faults = faults
	return s
}

// Each way in which a rig gives in under load is told apart, over SSH, with what was sampled; nothing stays on the rigs.
func TestBurnInOverSSH(t *testing.T) {
	rigs, run := served(t, burning("sound"), burning("bits", rigsim.BurnBits), burning("wrong", rigsim.BurnWrong), burning("lost", rigsim.BurnLost), burning("silent", rigsim.BurnSilent))
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	all, code, said := burnt(t, rigs, run, "--duration", "7s")
	for name, want := range map[string]string{"sound": facts.BurnDone, "bits": facts.BurnDone, "wrong": facts.BurnDone, "lost": facts.BurnXid, "silent": facts.BurnLostHost} {
		if b := all[name]; b == nil || b.Ended != want || b.Ended != facts.BurnDone && b.Text == "" || !b.Ran() || b.Series == nil {
			t.Errorf("%s: %+v, want it to end with %s\n%s", name, b, want, said)
		}
	}
	if t.Failed() {
		return
	}
	for _, want := range []string{
		"sound burn-in.power pass", "sound burn-in.memory pass", "sound burn-in.thermal unknown", "bits burn-in.memory fail", "wrong burn-in.memory fail",
		"bits burn-in.power pass", "lost burn-in.power fail", "silent burn-in.power fail", "silent burn-in.memory unknown",
	} {
		if !strings.Contains(said, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if code != checks.ExitFail {
		t.Errorf("exit %d", code)
	}
	if b := all["silent"]; b.After != facts.AfterRebooted {
		t.Errorf("silent: %q afterwards", b.After)
	}
	for name, test := range map[string]struct{ wrong, different bool }{"sound": {}, "bits": {wrong: true}, "wrong": {different: true}} {
		for i, c := range all[name].Cards {
			if (c.Wrong > 0) != (test.wrong && i == 1) || (c.Different > 0) != (test.different && i == 1) || c.Rounds == 0 || c.Passes == 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	b := all["sound"]
	peak := 0.0
	for _, w := range b.Series.Cards[0].Column(sample.Power) {
		peak = max(peak, w)
	}
	if idle, _ := b.Series.Cards[0].Values[0].Get(sample.Power); len(b.Cards) != 2 || idle > 50 || peak < 400 {
		t.Errorf("idle at %g W, %g W under load: %+v", idle, peak, b)
	}
	for _, r := range rigs.Rigs {
		for range 50 {
			if left, _ := filepath.Glob(filepath.Join(r.Root, "home", "preflight.*")); len(left) == 0 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if left, _ := filepath.Glob("/dev/shm/preflight.*"); len(left) > 0 && r.Name == "sound" {
			t.Errorf("left: %v", left)
		}
	}
}

// The load is aborted at the temperature that was asked for, and a sweep leaves the limits as they were.
func TestBurnInHeatAndSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	rigs, run := served(t, burning("hot"))
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	began := time.Now()
	all, _, said := burnt(t, rigs, run, "--duration", "30s", "--abort-temp", "40")
	if b := all["hot"]; b.Ended != facts.BurnHot || !strings.Contains(b.Text, "°C; the load is aborted at 40") || time.Since(began) > 50*time.Second {
		t.Errorf("after %s: %+v\n%s", time.Since(began), b, said)
	}
	all, _, said = burnt(t, rigs, run, "--duration", "40s", "--sweep", "450,315")
	b := all["hot"]
	if b.Ended != facts.BurnDone || len(b.Caps) != 2 || b.Caps[1].Watts != 315 || b.Caps[1].Speed > 0.97 || b.Caps[1].Speed < 0.9 || b.Caps[1].Drawn > 640 || b.Restored != "" {
		t.Errorf("%+v\n%s", b, said)
	}
	raw, err := os.ReadFile(filepath.Join(rigs.Rigs[0].Root, "data", "idle.csv"))
	if err != nil || strings.Contains(string(raw), "315.00 W") || strings.Count(string(raw), "\t450.00 W\t450.00 W\t") == 0 {
		t.Errorf("%v: the limits are not as they were:\n%s", err, raw)
	}
	all, _, _ = burnt(t, rigs, run, "--duration", "40s", "--sweep", "450,60")
	if b := all["hot"]; b.Ended != facts.BurnMissing || b.Ran() || !strings.Contains(b.Text, "a cap of 60 W is outside of what 0000:21:00.0 takes: 150 to 600 W") {
		t.Errorf("%+v", b)
	}
}

// Ctrl-C ends the load within two seconds, says what is known, and the exit code is that of an interruption.
func TestBurnInInterrupted(t *testing.T) {
	rigs, _ := served(t, burning("rig"))
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	gone := make(chan time.Duration, 1)
	go func() {
		dir := filepath.Join(rigs.Rigs[0].Root, "data", "burning")
		pid := 0
		for pid == 0 && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			if files, _ := filepath.Glob(dir + "/*"); len(files) == 2 {
				raw, _ := os.ReadFile(files[0])
				pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
			}
		}
		time.Sleep(time.Second)
		began := time.Now()
		interrupt()
		for syscall.Kill(pid, 0) == nil && time.Since(began) < 10*time.Second {
			time.Sleep(20 * time.Millisecond)
		}
		gone <- time.Since(began)
	}()
	b := usual
	b.duration, b.every = "60s", time.Second
	f := &checkFlags{
		failOn: "fail", engine: "auto", probeLimit: 30 * time.Second, only: measures["burn-in"], burn: b, output: outputFlags{format: "text"},
		target: targetFlags{inventory: rigs.InventoryPath, parallel: 1, ssh: sshFlags{config: os.DevNull}},
	}
	code, out, stderr := outcome(t, func(env *environment) error { return runCheck(ctx, env, f, nil) })
	interrupt()
	if took := <-gone; took > 2*time.Second {
		t.Errorf("the load went on for %s", took)
	}
	if code != checks.ExitInterrupted || !strings.Contains(out, "burn-in.memory: the load ended after") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

// What cannot be a burn-in is refused before a rig is touched.
func TestBurnInFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--duration 0":                       "--duration 0: quick (3m0s), full (30m0s), or a time from 5s to 12h0m0s",
		"--duration 30":                      "--duration 30: quick",
		"--duration -5m":                     "--duration -5m: quick",
		"--sweep x":                          "--sweep x: a power cap is a number of watts",
		"--sweep 450,450":                    "--sweep names 450 W twice",
		"--sweep 450,350 --duration 30s":     "--sweep over 2 caps takes at least 40s",
		"--abort-temp NaN":                   "--abort-temp NaN: 40 to 110 °C",
		"--abort-memory-temp NaN":            "--abort-memory-temp NaN: 40 to 120 °C",
		"--memory NaN":                       "--memory NaN: a share above 0",
		"--sweep NaN,350":                    "--sweep NaN: a power cap is a number of watts up to 5000",
		"--abort-temp 20":                    "--abort-temp 20: 40 to 110 °C",
		"--abort-memory-temp 300":            "--abort-memory-temp 300: 40 to 120 °C",
		"--memory 1.5":                       "--memory 1.5: a share above 0, at most 0.95",
		"--interval 20s":                     "--interval 20s: 1s to 10s",
		"--silence 0s":                       "--silence 0s: 1s to 1m",
		"--duration quick --sweep 0,100,200": "--sweep 0: a power cap is a number of watts",
	} {
		code, _, stderr := command(t, append([]string{"probe", "burn-in", "-i", "nowhere.hcl"}, strings.Fields(args)...)...)
		if code != checks.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, stderr, want)
		}
	}
}
