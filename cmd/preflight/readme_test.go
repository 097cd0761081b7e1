package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"preflight/checks"
)

// Both READMEs give the same commands and the same inventory, and name every check.
func TestReadmesAgree(t *testing.T) {
	fence := regexp.MustCompile("(?s)```(?:sh|hcl)\n.*?```")
	var blocks [2][]string
	for i, path := range []string{"../../README.md", "../../README.zh-CN.md"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks[i] = fence.FindAllString(string(raw), -1)
		for _, id := range checks.IDs() {
			if !strings.Contains(string(raw), "checks/"+id+".md)") {
				t.Errorf("%s names no %s", path, id)
			}
		}
	}
	if len(blocks[0]) < 5 || len(blocks[0]) != len(blocks[1]) {
		t.Fatalf("%d blocks of commands in English, %d in Chinese", len(blocks[0]), len(blocks[1]))
	}
	for i := range blocks[0] {
		if blocks[0][i] != blocks[1][i] {
			t.Errorf("the Chinese README says\n%s\nwhere the English one says\n%s", blocks[1][i], blocks[0][i])
		}
	}
}

// Links of the manual lead somewhere.
func TestLinksOfTheManual(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, dir := range []string{"../../", "../../docs/"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".md") {
				continue
			}
			raw, err := os.ReadFile(dir + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
				if _, err := os.Stat(dir + m[1]); err != nil {
					t.Errorf("%s links to %s, which is not there", dir+e.Name(), m[1])
				}
			}
		}
	}
}
