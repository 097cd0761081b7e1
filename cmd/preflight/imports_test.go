package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says which of our packages each room may import. Imports run downward only: a check never knows a remedy,
// facts never know a threshold, and nothing but the commands knows everything.
var arrows = map[string][]string{
	"internal/catalog":     {},
	"internal/lang":        {},
	"inventory":            {"internal/catalog"},
	"internal/facts":       {"internal/catalog", "internal/probe/wire", "internal/sample"},
	"checks":               {"internal/sample", "inventory", "internal/facts", "internal/catalog"},
	"internal/workload":    {},
	"internal/fit":         {"checks", "inventory", "internal/facts", "internal/workload", "internal/catalog"},
	"remediation":          {"checks", "internal/catalog", "internal/lang"},
	"internal/remote":      {"inventory"},
	"internal/collect":     {"internal/facts"},
	"internal/probe":       {"internal/facts", "internal/sample", "internal/probe/wire"},
	"internal/probe/wire":  {},
	"cmd/preflight-probe":  {"internal/probe/wire"},
	"internal/accept":      {},
	"internal/diff":        {"checks"},
	"internal/export":      {"inventory"},
	"internal/report":      {"internal/accept", "internal/diff", "internal/workload", "remediation", "checks", "internal/facts", "internal/lang"},
	"internal/report/html": {"internal/sample", "internal/report", "internal/accept", "internal/workload", "checks", "internal/facts", "internal/lang"},
	"internal/fleet":       {"internal/collect", "internal/probe", "internal/facts", "internal/catalog", "inventory", "checks"},
	"internal/progress":    {"internal/fleet", "checks"},
	"internal/fakegpu":     {},
	"internal/rigsim":      {"internal/fakegpu", "internal/collect", "internal/facts", "internal/catalog", "inventory", "checks"},
	"internal/stubtools":   {},
	"internal/sample":      {},
	"internal/watch":       {"internal/sample"},
	"docs":                 {},
	"playbooks":            {"remediation", "checks", "inventory", "internal/facts", "internal/catalog", "internal/stubtools"},
	"cmd/preflight":        {"*"},
	"internal/integration": {"*"},
}

func TestImportsRunDownward(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(rel))
		test := strings.HasSuffix(rel, "_test.go")
		allowed, known := arrows[room]
		if !known && strings.Contains(room, "/testdata") {
			return nil
		}
		if !known {
			t.Errorf("%s: no arrow is declared for this room", rel)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			ours, isOurs := strings.CutPrefix(name, "preflight/")
			if isOurs && !test && !slices.Contains(allowed, "*") && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which is not below it", rel, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilesStaySmall keeps every file within one sitting: under 400 lines, functions under 60.
func TestFilesStaySmall(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := strings.Split(string(raw), "\n")
		if len(lines) > 400 {
			t.Errorf("%s has %d lines", path, len(lines))
		}
		start, name := 0, ""
		for i, l := range lines {
			switch {
			case strings.HasPrefix(l, "func "):
				start, name = i, l
			case l == "}" && name != "":
				if i-start > 60 {
					t.Errorf("%s: %s has %d lines", path, name, i-start)
				}
				name = ""
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
