package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// verdicts are the worst of each check of an input.
func verdicts(t *testing.T, name string, raw []byte) map[string]checks.Verdict {
	t.Helper()
	in := &inputs{loose: saved{dumps: facts.NewDumps()}}
	if err := in.stream(name, name, bytes.NewReader(raw)); err != nil {
		return nil
	}
	machines, err := in.result()
	if err != nil {
		return nil
	}
	cat, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	host := facts.FromSnapshot(machines[0].dumps.Snapshot())
	out := map[string]checks.Verdict{}
	worst := []checks.Verdict{checks.Fail, checks.Warn, checks.Unknown, checks.Pass, checks.Skip}
	for _, f := range checks.Run(&inventory.Rig{Name: "x"}, host, checks.PolicyFor(nil, len(host.Cards)), cat) {
		if was, seen := out[f.Check]; !seen || slices.Index(worst, f.Verdict) < slices.Index(worst, was) {
			out[f.Check] = f.Verdict
		}
	}
	return out
}

// A report of a sound rig that lost its end, some lines, or has some twice, may leave things unknown. It is no reason to
// call the rig broken. Counting is another matter: what lists fewer cards than the driver has is a fault.
func TestDamageMakesNoFault(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "bugreport", "rig4.log"))
	if err != nil {
		t.Fatal(err)
	}
	sound := strings.NewReplacer("Width x8 (downgraded)", "Width x16", ": 8x", ": 16x").Replace(string(raw))
	for id, v := range verdicts(t, "r.log", []byte(sound)) {
		if v == checks.Fail {
			t.Fatalf("the whole report fails %s", id)
		}
	}
	lines := strings.SplitAfter(sound, "\n")
	r := rand.New(rand.NewSource(1))
	damaged := map[string]string{}
	for i := range 40 {
		cut := len(sound) * i / 40
		damaged[fmt.Sprintf("cut at %d", cut)] = sound[:cut]
		at := r.Intn(len(lines) - 30)
		n := 1 + r.Intn(25)
		damaged[fmt.Sprintf("lines %d to %d twice", at, at+n)] = strings.Join(lines[:at+n], "") + strings.Join(lines[at:], "")
		if strings.Contains(lines[at], "journalctl") {
			continue // whose lines the next ones are is not to be known then
		}
		damaged[fmt.Sprintf("line %d damaged", at)] = strings.Join(lines[:at], "") + "\xff\xfe\x00" + lines[at][:len(lines[at])/2] + strings.Join(lines[at+1:], "")
	}
	for name, text := range damaged {
		for id, v := range verdicts(t, "r.log", []byte(text)) {
			if v == checks.Fail {
				t.Errorf("%s: %s fails", name, id)
			}
		}
	}
}

// What is no text that preflight knows ends quickly, with the reason, and nothing of it reaches the terminal raw.
func TestOddFilesAndNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, raw []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, raw, 0o600); err != nil {
			t.Skip("this file system has no such names:", err)
		}
		return p
	}
	wide := func(text string, low int) []byte {
		out := make([]byte, 2*len(text))
		for i := range len(text) {
			out[2*i+low] = text[i]
		}
		return out
	}
	comma := write("lspci,a\nb\x1b[31m.txt", []byte(someLspci))
	for name, path := range map[string]string{
		"comma, line end and colour in a name": comma, "UTF-16, low byte first, no mark": write("le.txt", wide(someLspci, 0)), "UTF-16, high byte first, no mark": write("be.txt", wide(someLspci, 1)),
	} {
		machines, err := take(nil, separatePaths([]string{path})...)
		if err != nil || len(facts.FromSnapshot(machines[0].dumps.Snapshot()).Cards) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := separatePaths([]string{"a.txt,b.txt", comma}); len(got) != 3 {
		t.Errorf("%q", got)
	}
	_, err := take(nil, filepath.Join(dir, "no\x1b[31m"))
	if err == nil || strings.ContainsRune(shown(err), '\x1b') {
		t.Errorf("%v", err)
	}
}

// A report that repeats one section for ever says so once, and does not take for ever.
func TestARepeatedSectionIsToldOnce(t *testing.T) {
	section := strings.Repeat("_", 44) + "\n\n/usr/bin/lspci -nn\n\n" + someLspci + "\n"
	var text strings.Builder
	text.WriteString("Start of NVIDIA bug report log file\n\n")
	for text.Len() < 8<<20 {
		text.WriteString(section)
	}
	start := time.Now()
	d := facts.NewDumps()
	if err := d.AddBugReport("r.log", strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	if len(d.Unread()) != 1 || time.Since(start) > 20*time.Second {
		t.Errorf("%d remarks in %v", len(d.Unread()), time.Since(start))
	}
}
