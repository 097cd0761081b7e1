package report

import (
	"fmt"
	"sort"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
)

// row is one line of the terminal view: findings of one check that say the same of several subjects.
type row struct {
	finding checks.Finding
	count   int
	effects []row // what this one explains
	fix     int
}

// text is the summary, for several cards without the first one's address.
func (r row) text(l lang.Language, cards int) string {
	s := r.finding.Summary
	if r.count == 1 || !strings.Contains(r.finding.Subject, ":") { // several runs are no several cards
		return s
	}
	rest := strings.TrimLeft(strings.TrimPrefix(s, r.finding.Subject), ":： ")
	if cards > 0 {
		return l.Sayf("%d of %d cards: ", r.count, cards) + rest
	}
	return fmt.Sprintf("%d ×: %s", r.count, rest)
}

// rows groups the warns and fails of a rig: causes first, what they explain below them, worst first.
func rows(g Rig) []row {
	fixOf := map[string]int{}
	for _, x := range g.Fixes {
		fixOf[x.Code] = x.Number
	}
	merged := map[string]int{}
	var all []row
	rowOf := map[string]int{} // finding id -> index in all
	for _, f := range g.Findings {
		if f.Verdict != checks.Fail && f.Verdict != checks.Warn {
			continue
		}
		key := strings.Join([]string{f.Check, string(f.Verdict), f.Remedy, f.Observed, f.Expected}, "\x00")
		i, ok := merged[key]
		if !ok {
			i = len(all)
			merged[key] = i
			all = append(all, row{finding: f, fix: fixOf[f.Remedy]})
		}
		all[i].count++
		rowOf[f.ID] = i
	}
	var top []row
	child := map[int][]row{}
	for i, r := range all {
		if r.finding.Cause != nil {
			if at, ok := rowOf[*r.finding.Cause]; ok && at != i {
				root := rootOf(all, rowOf, at)
				child[root] = append(child[root], r)
				continue
			}
		}
		top = append(top, row{finding: r.finding, count: r.count, fix: r.fix, effects: nil})
	}
	for i := range top {
		top[i].effects = child[rowOf[top[i].finding.ID]]
	}
	sort.SliceStable(top, func(i, j int) bool { return rank(top[i].finding.Verdict) < rank(top[j].finding.Verdict) })
	return top
}

func rank(v checks.Verdict) int {
	if v == checks.Fail {
		return 0
	}
	return 1
}

// rootOf follows causes up to the one that has none.
func rootOf(all []row, rowOf map[string]int, at int) int {
	for range len(all) {
		c := all[at].finding.Cause
		if c == nil {
			return at
		}
		up, ok := rowOf[*c]
		if !ok || up == at {
			return at
		}
		at = up
	}
	return at
}
