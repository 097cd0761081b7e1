package report

import (
	"fmt"
	"sort"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
)

// Row is one line of a view for people: findings of one check that say the same of several subjects.
type Row struct {
	Finding checks.Finding // the first of them
	Count   int
	Effects []Row // what this one explains
	Fix     int   // number of its fix; 0 for none
}

// Text is the summary, for several cards without the first one's address.
func (r Row) Text(l lang.Language, cards int) string {
	s := r.Finding.Summary
	if r.Count == 1 || !strings.Contains(r.Finding.Subject, ":") { // several runs are no several cards
		return s
	}
	rest := strings.TrimLeft(strings.TrimPrefix(s, r.Finding.Subject), ":： ")
	if cards > 0 {
		return l.Sayf("%d of %d cards: ", r.Count, cards) + rest
	}
	return fmt.Sprintf("%d ×: %s", r.Count, rest)
}

// Rows groups the warns and fails of a rig: causes first, what they explain below them, worst first.
func Rows(g Rig) []Row {
	fixOf := map[string]int{}
	for _, x := range g.Fixes {
		fixOf[x.Code] = x.Number
	}
	merged := map[string]int{}
	var all []Row
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
			all = append(all, Row{Finding: f, Fix: fixOf[f.Remedy]})
		}
		all[i].Count++
		rowOf[f.ID] = i
	}
	var top []Row
	child := map[int][]Row{}
	for i, r := range all {
		if r.Finding.Cause != nil {
			if at, ok := rowOf[*r.Finding.Cause]; ok && at != i {
				root := rootOf(all, rowOf, at)
				child[root] = append(child[root], r)
				continue
			}
		}
		top = append(top, Row{Finding: r.Finding, Count: r.Count, Fix: r.Fix})
	}
	for i := range top {
		top[i].Effects = child[rowOf[top[i].Finding.ID]]
	}
	sort.SliceStable(top, func(i, j int) bool { return rank(top[i].Finding.Verdict) < rank(top[j].Finding.Verdict) })
	return top
}

func rank(v checks.Verdict) int {
	if v == checks.Fail {
		return 0
	}
	return 1
}

// rootOf follows causes up to the one that has none.
func rootOf(all []Row, rowOf map[string]int, at int) int {
	for range len(all) {
		c := all[at].Finding.Cause
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
