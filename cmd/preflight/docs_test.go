package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"preflight/checks"
	"preflight/docs"
	"preflight/internal/catalog"
	"preflight/inventory"
	"preflight/remediation"
)

// loadOptions are those of the program: site rules are held to the real tree of facts.
func loadOptions() inventory.Options {
	return inventory.Options{HostType: checks.HostType(), GPUSlugs: catalog.MustLoad().Slugs(), CheckIDs: checks.IDs()}
}

// TestExamplesAndDocsLoad loads every example, and every HCL block of the manual, as a user would.
func TestExamplesAndDocsLoad(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(examples) < 3 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, path := range examples {
		if _, diags := inventory.Load(path, loadOptions()); diags.HasErrors() {
			t.Errorf("%s: %v", path, diags)
		}
	}
	pages, _ := filepath.Glob("../../docs/*.md")
	fence := regexp.MustCompile("(?s)```hcl\n(.*?)```")
	found := 0
	for _, path := range append(pages, "../../README.md") {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(raw), -1) {
			found++
			if _, diags := inventory.LoadBytes(filepath.Base(path), []byte(m[1]), loadOptions()); diags.HasErrors() {
				t.Errorf("%s: %v\n%s", path, diags, m[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d HCL blocks in the manual", found)
	}
}

// TestEveryCheckHasItsPage demands the same headings of each, and a page names only remedies that exist.
func TestEveryCheckHasItsPage(t *testing.T) {
	cat, err := remediation.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range cat.Codes() {
		known[c] = true
	}
	code := regexp.MustCompile("`([a-z0-9.-]+/[a-z0-9-]+)`")
	for _, c := range checks.All() {
		page, err := docs.Check(c.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, h := range []string{"# " + c.ID + ": ", "\n## Rule\n", "\n## Evidence\n", "\n## Limits\n", "\n## Remedies\n"} {
			if !strings.Contains(page, h) {
				t.Errorf("docs/checks/%s.md lacks %q", c.ID, strings.TrimSpace(h))
			}
		}
		_, list, _ := strings.Cut(page, "## Remedies")
		for _, m := range code.FindAllStringSubmatch(list, -1) {
			if !known[m[1]] {
				t.Errorf("docs/checks/%s.md names %s, which does not exist", c.ID, m[1])
			}
		}
	}
}

// TestEveryRemedyThatAFindingNamesExists reads the codes out of the checks themselves.
func TestEveryRemedyThatAFindingNamesExists(t *testing.T) {
	cat, err := remediation.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range cat.Codes() {
		known[c] = true
	}
	files, _ := filepath.Glob("../../checks/*.go")
	code := regexp.MustCompile(`"((?:gpu|driver|firmware|pcie|topology|cpu|ram|storage|power|chassis|nccl|site)\.[a-z0-9-]+(?:/[a-z0-9-]+)?)"`)
	ids := map[string]bool{}
	for _, id := range checks.IDs() {
		ids[id] = true
	}
	n := 0
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(raw), -1) {
			if ids[m[1]] {
				continue
			}
			n++
			if !known[m[1]] {
				t.Errorf("%s: %s has no remedy", f, m[1])
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d codes were found in the checks", n)
	}
}
