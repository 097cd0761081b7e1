package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/rigsim"
)

// command runs the program in this process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return outcome(t, func(env *environment) error {
		root := newRoot(env)
		root.SetArgs(args)
		return root.ExecuteContext(t.Context())
	})
}

// outcome runs a command with streams of its own.
func outcome(t *testing.T, run func(*environment) error) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(&environment{stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	var e exit
	switch {
	case errors.As(err, &e):
		if e.err != nil {
			errs.WriteString(e.err.Error())
		}
		return e.code, out.String(), errs.String()
	case err != nil:
		t.Fatal(err)
	}
	return 0, out.String(), errs.String()
}

func privateKey(t *testing.T, path string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A vendor hands over a rig, the buyer verifies the bundle and judges its snapshots again.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), rigsim.Healthy("node-a", 2))
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	if err := rigs.GiveLibraries(); err != nil {
		t.Skip(err)
	}
	inventory := filepath.Join(dir, "inventory")
	raw, err := os.ReadFile(rigs.InventoryPath)
	if err != nil {
		t.Fatal(err)
	}
	list, bundle, key := filepath.Join(dir, "answers.txt"), filepath.Join(dir, "build.tar.gz"), filepath.Join(dir, "key")
	privateKey(t, key)
	for path, text := range map[string]string{"rigs.hcl": string(raw), "profile.hcl": "profile \"handover\" {\n  acceptance = true\n}\n"} {
		if err := os.MkdirAll(inventory, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(inventory, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"accept", "-i", inventory, "--profile", "handover", "--ssh-config", os.DevNull}
	if code, _, stderr := command(t, append(common, "--write-checklist", list)...); code != 0 {
		t.Fatal(stderr)
	}
	answered, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, mark, bundle string
		code               int
		verdict            string
	}{{"all is well", "[x]", bundle, checks.ExitOK, accept.Accepted}, {"hands say no", "[!]", filepath.Join(dir, "no.tar.gz"), checks.ExitFail, accept.Refused}} {
		text := strings.Replace(strings.Replace(string(answered), "by:", "by: Li Wei", 1), "[ ]", step.mark, 1)
		if err := os.WriteFile(list, []byte(strings.ReplaceAll(text, "[ ]", "[x]")), 0o644); err != nil {
			t.Fatal(err)
		}
		f := &acceptFlags{key: key, answers: list, check: checkFlags{
			failOn: "fail", engine: "auto", small: true, probeLimit: time.Minute, profile: "handover", output: outputFlags{format: "text", file: step.bundle},
			target: targetFlags{inventory: inventory, parallel: 1, ssh: sshFlags{config: os.DevNull}},
		}}
		code, stdout, stderr := outcome(t, func(env *environment) error { return runAccept(t.Context(), env, f, nil) })
		if code != step.code || !strings.Contains(stderr, step.verdict+", signed by SHA256:") {
			t.Fatalf("%s: exit %d\n%s\n%s", step.name, code, stdout, stderr)
		}
	}
	code, stdout, stderr := command(t, "accept", "--verify", bundle)
	if code != checks.ExitUnknown || !strings.Contains(stdout, "the same verdicts") || !strings.Contains(stdout, "signed by unknown key") {
		t.Errorf("verify: exit %d\n%s%s", code, stdout, stderr)
	}
	differs(t, bundle)
}

// differs alters what the report of a bundle said, and wants it told.
func differs(t *testing.T, bundle string) {
	t.Helper()
	files, closer, err := accept.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer closer()
	b, err := intact(files)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.report.Rigs[0].Findings {
		if f := &b.report.Rigs[0].Findings[i]; f.Check == "pcie.width" {
			f.Verdict = checks.Fail
		}
	}
	got, err := rejudge(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "node-a pcie.width: fail then, pass now") {
		t.Errorf("differences: %q", got)
	}
}
