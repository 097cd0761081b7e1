package main

import (
	"os"
	"strings"
	"testing"

	"preflight/checks"
	"preflight/internal/rigsim"
)

// A scaling test over SSH: a rig that trains as its links allow passes, one whose gradients crawl fails; without torch nobody knows.
func TestDDPOverSSH(t *testing.T) {
	bare := burning("bare")
	bare.Faults = []rigsim.Kind{rigsim.TorchCPU}
	rigs, run := served(t, rigsim.Healthy("sound", 2), burning("slow", rigsim.DDPSlow), bare)
	code, out, stderr := run("probe", "ddp", "sound")
	if code != checks.ExitOK || !strings.Contains(out, "✓ 1 passed") || !strings.Contains(out, "training  a synthetic model of 350 million parameters") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, _ = run("probe", "ddp", "slow", "--data", "/data")
	if code != checks.ExitFail || !strings.Contains(out, "✗ ddp.scaling  2 cards ") || !strings.Contains(out, "slower than the links allow") {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = run("probe", "ddp", "bare")
	if code != checks.ExitUnknown || !strings.Contains(out, "ddp.scaling: no scaling test: ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = command(t, "probe", "ddp", "-i", rigs.InventoryPath, "--ssh-config", os.DevNull, "sound", "--interval", "1s", "--", "sleep", "2")
	if code != checks.ExitUnknown || !strings.Contains(out, "sleep 2 ran 2 s: too few samples") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// What cannot be a scaling test is refused before a rig is touched.
func TestDDPFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--size 7":                   "--size 7: a number of parameters, such as 350M or 1.3B",
		"--size 1M":                  "--size 1M: 34M",
		"--tokens 3":                 "--tokens 3: 64 to 1048576",
		"--steps 1":                  "--steps 1: 5 to 10000",
		"--probe-timeout 1s":         "--probe-timeout 1s: 30s to 6h",
		"--interval 1m":              "--interval 1m0s: 1s to 10s",
		"--data train":               "--data train: the full path of a folder on the rigs",
		"--":                         "nothing stands behind --",
		"--data /d -- torchrun x.py": "--data is for the synthetic model",
	} {
		code, _, stderr := command(t, append([]string{"probe", "ddp", "-i", "nowhere.hcl"}, strings.Fields(args)...)...)
		if code != checks.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, stderr, want)
		}
	}
}

// A command's words reach the rig's shell as they were typed.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"torchrun": "torchrun", "--x=1": "--x=1", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "": "''"} {
		if got := quoted(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
