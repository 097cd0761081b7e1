package playbooks

import (
	"fmt"
	"strings"
)

// contextLines is how much of a file stands around a change.
const contextLines = 2

// unified is the difference of two texts as `diff -u` shows it. Files of playbooks are short, so the longest common
// subsequence is computed whole; beyond that the old text is replaced by the new one.
func unified(path, old, fresh string) string {
	a, b := linesOf(old), linesOf(fresh)
	var ops []op
	if len(a)*len(b) <= 4_000_000 {
		ops = script(a, b)
	} else {
		for _, l := range a {
			ops = append(ops, op{'-', l})
		}
		for _, l := range b {
			ops = append(ops, op{'+', l})
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", path, path)
	show := make([]bool, len(ops))
	for i, o := range ops {
		if o.sign == ' ' {
			continue
		}
		for j := max(i-contextLines, 0); j < min(i+contextLines+1, len(ops)); j++ {
			show[j] = true
		}
	}
	for i, o := range ops {
		switch {
		case show[i]:
			fmt.Fprintf(&out, "%c%s\n", o.sign, o.text)
		case i > 0 && show[i-1]:
			out.WriteString(" …\n")
		}
	}
	return out.String()
}

// op is one line of a difference.
type op struct {
	sign byte // ' ', '-', '+'
	text string
}

func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// script is the shortest edit by the longest common subsequence.
func script(a, b []string) []op {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []op
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, op{' ', a[i]})
			i, j = i+1, j+1
		case j < len(b) && (i == len(a) || common[i][j+1] > common[i+1][j]):
			out = append(out, op{'+', b[j]})
			j++
		default:
			out = append(out, op{'-', a[i]})
			i++
		}
	}
	return out
}
