package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"preflight/checks"
	"preflight/internal/lang"
)

// spoken says where sentences for people are written: functions whose literals are shown, by directory. An empty list
// takes every literal that reads like words.
var spoken = []struct {
	dir   string
	calls []string
}{
	{"checks", nil},
	{"internal/facts", []string{"gap", "regap", "why"}},
	{"internal/workload", nil},
	{"internal/report", nil},
	{"internal/remote", []string{"fail", "lost"}},
	{"internal/collect", []string{"-"}},
	{"internal/fleet", []string{"-"}},
	{"cmd/preflight", []string{"-", "print"}},
}

// words is what a sentence or a spoken word looks like, once placeholders are gone.
var words = regexp.MustCompile(`(^|[ (])[a-z]{2,}([ ,;:)]|$)`)

var placeholders = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z%]`)

// notSpoken are literals in the rooms above that no person reads as a sentence.
var notSpoken = regexp.MustCompile(`^(json:|checks: |catalogue:|Gen%d x%d$|GeForce $|chipset port $|Incompatible NCCL versions$|no-cgroups = true$|device handle$|docker run |%s %q is not known; |%d·Σ| \(did you mean|## )`)

// forPrograms are the formats of a report that programs read: their own words stay English.
var forPrograms = []string{"prometheus.go", "junit.go", "sarif.go", "csv.go", "jsonl.go"}

// silent are functions whose arguments are patterns, programs' errors, or raw evidence.
var silent = []string{"MustCompile", "Errorf", "evs"}

// literals lists the strings of a room that people read.
func literals(t *testing.T, dir string, calls []string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(forPrograms, filepath.Base(file)) {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		take := func(n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				switch l := n.(type) {
				case *ast.CallExpr:
					if slices.Contains(silent, callee(l)) {
						return false
					}
				case *ast.Field: // struct tags
					return false
				case *ast.BasicLit:
					if s, err := strconv.Unquote(l.Value); err == nil && l.Kind == token.STRING && strings.Contains(s, " ") && words.MatchString(placeholders.ReplaceAllString(s, "")) && !notSpoken.MatchString(s) {
						found[s] = true
					}
				}
				return true
			})
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if calls == nil {
				take(tree)
				return false
			}
			if part := failureText(n); part != nil {
				take(part)
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if slices.Contains(calls, callee(call)) {
				for _, a := range call.Args {
					take(a)
				}
			}
			return true
		})
	}
	out := make([]string, 0, len(found))
	for s := range found {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

// callee is the last name of a called function.
func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// failureText is what an error of a connection says: Summary and Advice, where they are written.
func failureText(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Summary" || key.Name == "Advice") {
			return n.Value
		}
	case *ast.AssignStmt:
		if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && (to.Sel.Name == "Summary" || to.Sel.Name == "Advice" || to.Sel.Name == "Notes") {
			return n.Rhs[0]
		}
	}
	return nil
}

func TestEverySentenceHasChinese(t *testing.T) {
	for _, room := range spoken {
		for _, s := range literals(t, room.dir, room.calls) {
			if !lang.Zh.Speaks(s) {
				t.Errorf("%s: no Chinese for %q", room.dir, s)
			}
		}
	}
}

// properNames are titles that are names in every language.
var properNames = []string{"Above 4G Decoding", "Resizable BAR", "NCCL all-reduce", "PyTorch", "IOMMU", "ACS"}

func TestEveryTitleHasChinese(t *testing.T) {
	for _, c := range checks.All() {
		if !lang.Zh.Speaks(c.Title) && !slices.Contains(properNames, c.Title) {
			t.Errorf("%s: no Chinese for %q", c.ID, c.Title)
		}
	}
}
