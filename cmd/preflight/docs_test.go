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
	for language, headings := range map[string][]string{
		"en": {": ", "\n## Rule\n", "\n## Evidence\n", "\n## Limits\n", "\n## Remedies\n"},
		"zh": {"：", "\n## 规则\n", "\n## 依据\n", "\n## 局限\n", "\n## 修复\n"},
	} {
		for _, c := range checks.All() {
			page, err := docs.Check(language, c.ID)
			if err != nil {
				t.Errorf("%s: %v", language, err)
				continue
			}
			if !strings.HasPrefix(page, "# "+c.ID+headings[0]) {
				t.Errorf("%s: the page of %s does not begin with its title", language, c.ID)
			}
			for _, h := range headings[1:] {
				if !strings.Contains(page, h) {
					t.Errorf("%s: the page of %s lacks %q", language, c.ID, strings.TrimSpace(h))
				}
			}
			_, list, _ := strings.Cut(page, headings[4])
			for _, m := range code.FindAllStringSubmatch(list, -1) {
				if !known[m[1]] {
					t.Errorf("%s: the page of %s names %s, which does not exist", language, c.ID, m[1])
				}
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
	code := regexp.MustCompile(`"((?:gpu|driver|firmware|pcie|topology|cpu|ram|storage|power|chassis|nccl|site|runtime|container|host)\.[a-z0-9-]+(?:/[a-z0-9-]+)?)"`)
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
