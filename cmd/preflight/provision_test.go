package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/rigsim"
)

// served are simulated rigs and a command line that reaches them.
func served(t *testing.T, specs ...rigsim.Spec) (*rigsim.Fleet, func(args ...string) (int, string, string)) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	rigs, err := rigsim.Serve(context.Background(), t.TempDir(), specs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rigs.Close)
	return rigs, func(args ...string) (int, string, string) {
		return command(t, append(args, "-i", rigs.InventoryPath, "--ssh-config", os.DevNull)...)
	}
}

func faulty(name string, kinds ...rigsim.Kind) rigsim.Spec {
	s := rigsim.Healthy(name, 2)
	s.Faults = kinds
	return s
}

var runID = regexp.MustCompile(`\(run (\S+)\)`)

// fix mends what software can, says what turned, leaves the rest to hands, finds nothing the second time, and can be undone.
func TestFix(t *testing.T) {
	_, run := served(t, faulty("node-a", rigsim.PersistenceOff, rigsim.PSUCapped, rigsim.NarrowSlot))
	code, plan, stderr := run("fix", "--no-probe")
	if code != checks.ExitOK || !strings.Contains(plan, "persistence: 1 changes") || !strings.Contains(plan, "power-cap: 2 changes") || !strings.Contains(plan, "only hands or a BIOS can mend\n  pcie.width: ") {
		t.Fatalf("plan: exit %d\n%s%s", code, plan, stderr)
	}
	if _, again, _ := run("fix", "--no-probe"); again != plan {
		t.Errorf("a plan changed the rig:\n%s", again)
	}
	if code, _, stderr := run("fix", "--no-probe", "--apply"); code != checks.ExitUsage || !strings.Contains(stderr, "--yes applies the plan above") {
		t.Errorf("without a terminal: exit %d %s", code, stderr)
	}
	code, out, stderr := run("fix", "--no-probe", "--apply", "--yes")
	id := runID.FindStringSubmatch(out)
	if code != checks.ExitOK || id == nil || !strings.Contains(out, "driver.persistence@rig: warn → pass") || !strings.Contains(out, "power.psu@rig: warn → pass") {
		t.Fatalf("apply: exit %d\n%s%s", code, out, stderr)
	}
	if logged, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "preflight", "changes", id[1]+".jsonl")); err != nil || len(logged) != 1 {
		t.Errorf("the changes are not written down here: %v %v", logged, err)
	}
	if code, out, _ := run("fix", "--no-probe", "--apply", "--yes"); code != checks.ExitOK || !strings.HasPrefix(out, "node-a: nothing that a playbook mends") {
		t.Errorf("second run: exit %d\n%s", code, out)
	}
	if code, out, stderr := run("provision", "persistence", "--apply", "--yes"); code != checks.ExitOK || !strings.Contains(out, "as it should be") {
		t.Errorf("the playbook again: exit %d\n%s%s", code, out, stderr)
	}
	if code, out, stderr := run("provision", "--undo", id[1]); code != checks.ExitOK || !strings.Contains(out, "node-a: 3 taken back") {
		t.Errorf("undo: exit %d\n%s%s", code, out, stderr)
	}
	if _, out, _ := run("fix", "--no-probe"); !strings.Contains(out, "power-cap: ") {
		t.Errorf("after undo the cap is still there:\n%s", out)
	}
	if code, _, stderr := run("provision", "--undo", "20000101T000000Z-000000"); code != checks.ExitUnknown || !strings.Contains(stderr, "no record of run") {
		t.Errorf("undo of nothing: exit %d %s", code, stderr)
	}
}

// An all-reduce that hangs over P2P is found by measuring, switched to another path, and measured again.
func TestFixMeasures(t *testing.T) {
	rigs, _ := served(t, faulty("node-a", rigsim.P2PHang))
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	var stdout, stderr bytes.Buffer
	env := &environment{stdout: &stdout, stderr: &stderr, language: "en"}
	f := &changeFlags{apply: true, yes: true, batch: 1, maxFailures: 1, target: targetFlags{inventory: rigs.InventoryPath, parallel: 1, ssh: sshFlags{config: os.DevNull}}}
	m := &checkFlags{failOn: "fail", engine: "auto", small: true, probeLimit: 12 * time.Second}
	if err := runFix(t.Context(), env, f, m, nil); err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	for _, want := range []string{"+NCCL_P2P_DISABLE=1", "nccl.all-reduce@rig: fail → pass"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s%s", want, stdout.String(), stderr.String())
		}
	}
}

// A change that takes effect at the next boot is told; with --allow-reboot the rig is restarted and waited for.
func TestReboot(t *testing.T) {
	_, run := served(t, rigsim.Healthy("node-a", 2))
	code, out, stderr := run("provision", "iommu", "--apply", "--yes")
	if code != checks.ExitOK || !strings.Contains(out, "at the next boot: reboot it, or run with --allow-reboot") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, stderr = run("provision", "pci-realloc", "--apply", "--yes", "--allow-reboot")
	if code != checks.ExitOK || !strings.Contains(stderr, "node-a: is back") || strings.Contains(out, "next boot: reboot it") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

// Rigs are changed in batches; after a failure no further one is begun. A locked host names its holder.
func TestRolling(t *testing.T) {
	rigs, run := served(t, rigsim.Healthy("node-a", 2), rigsim.Healthy("node-b", 2))
	lock := filepath.Join(rigs.Rigs[0].Root, "root", "var", "lib", "preflight", "lock")
	if err := os.MkdirAll(lock, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lock, "holder"), []byte("20261201T000000Z-aaaaaa ops@laptop\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := run("provision", "memlock", "--apply", "--yes", "--batch", "1")
	if code != checks.ExitUnknown || !strings.Contains(out, "node-a: another run holds this host: 20261201T000000Z-aaaaaa ops@laptop") || !strings.Contains(out, "node-b: not begun: 1 failed already") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, stderr = run("provision", "memlock", "--apply", "--yes", "--break-lock")
	if code != checks.ExitOK || strings.Count(out, "2 changes made and verified") != 2 {
		t.Errorf("with the lock broken: exit %d\n%s%s", code, out, stderr)
	}
}

// A rig whose cards are at work is left alone, and so is one on which nothing can be root.
func TestLeftAlone(t *testing.T) {
	user := rigsim.Healthy("node-b", 2)
	user.User = true
	rigs, run := served(t, rigsim.Healthy("node-a", 2), user)
	path := filepath.Join(rigs.Rigs[0].Root, "data", "smi-q.xml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	job := "<processes>\n<process_info>\n<pid>4711</pid>\n<type>C</type>\n<process_name>train</process_name>\n<used_memory>100 MiB</used_memory>\n</process_info>\n"
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), "<processes>\n", job)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := run("provision", "memlock", "--apply", "--yes", "--max-failures", "9")
	if code != checks.ExitUnknown || !strings.Contains(out, "node-b: changes need root") || !strings.Contains(out, "node-a: 0000:21:00.0 runs 1 compute processes: it is left alone") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

// Plans and results follow the language; names and what stands in files stay as they are.
func TestFixInChinese(t *testing.T) {
	_, run := served(t, faulty("rig", rigsim.PersistenceOff, rigsim.PSUCapped))
	code, plan, stderr := run("fix", "--no-probe", "--lang", "zh")
	if code != checks.ExitOK || !strings.HasPrefix(plan, "rig\n") || !strings.Contains(plan, "power-cap：2 处改动") || !strings.Contains(plan, "+Description=Power limit of the NVIDIA cards") {
		t.Errorf("exit %d\n%s%s", code, plan, stderr)
	}
	code, out, stderr := run("fix", "--no-probe", "--apply", "--yes", "--lang", "zh")
	if code != checks.ExitOK || !strings.Contains(out, "已完成并验证 ") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}
