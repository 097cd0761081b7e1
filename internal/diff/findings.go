package diff

import (
	"slices"
	"strings"

	"preflight/checks"
)

// translation maps the addresses of cards on the first side to those on the second.
func translation(old, now namer) *strings.Replacer {
	at := map[string]string{}
	for bdf, id := range now.ids {
		at[id] = bdf
	}
	var pairs []string
	for bdf, id := range old.ids {
		if to := at[id]; to != "" && to != bdf {
			pairs = append(pairs, bdf, to)
		}
	}
	return strings.NewReplacer(pairs...)
}

// bad is a verdict that somebody must mend.
func bad(v checks.Verdict) bool { return v == checks.Fail || v == checks.Warn }

// findings compares by id, after the addresses of the first side were translated. A check that was not looked at on one of
// the sides is left out: that is no change.
func findings(before, after []checks.Finding, moved *strings.Replacer, skip func(string) bool) []Verdict {
	was := map[string]checks.Finding{}
	var order []string
	for _, f := range before {
		f.ID = moved.Replace(f.ID)
		if _, seen := was[f.ID]; !seen && f.ID != "" { // without an id in a foreign report: there is nothing to follow
			order = append(order, f.ID)
			was[f.ID] = f
		}
	}
	out := []Verdict{}
	is := map[string]checks.Finding{}
	for _, f := range after {
		if _, seen := is[f.ID]; seen || f.ID == "" || leftOut(f, skip) || checks.LeftOut(f) || notLooked(before, f.Check) {
			continue
		}
		is[f.ID] = f
		if v, told := turn(was[f.ID], f, worst(before, f.Check)); told {
			out = append(out, v)
		}
	}
	for _, id := range order {
		f := was[id]
		if _, there := is[id]; there || leftOut(f, skip) || notLooked(after, f.Check) || worst(after, f.Check) == "" {
			continue
		}
		now := worst(after, f.Check)
		switch {
		case bad(f.Verdict) && now == checks.Unknown:
			out = append(out, Verdict{id, Lost, f.Verdict, now, summary(after, f.Check, now)})
		case bad(f.Verdict):
			out = append(out, Verdict{id, Fixed, f.Verdict, now, f.Summary})
		}
	}
	slices.SortStableFunc(out, func(a, b Verdict) int { return slices.Index(turns, a.Turn) - slices.Index(turns, b.Turn) })
	return out
}

// turn is how one finding changed, where before is the whole check's verdict when the finding itself was not there.
func turn(b, a checks.Finding, before checks.Verdict) (Verdict, bool) {
	was := b.Verdict
	if b.ID == "" {
		was = before
		switch {
		case bad(was) && a.Verdict == checks.Unknown:
			return Verdict{}, false // told with the fault that is no longer seen
		case bad(was) && bad(a.Verdict):
			was = "" // others of the check were bad; this one is new
		}
	}
	v := Verdict{ID: a.ID, Before: was, After: a.Verdict, Summary: a.Summary}
	switch {
	case before == "" && !bad(a.Verdict):
		return v, false
	case before == "": // the check is younger than the other side: what it finds may have been there
		v.Turn = Known
	case a.Verdict == was && !bad(a.Verdict):
		return v, false
	case a.Verdict == was:
		v.Turn = Unchanged
	case was == checks.Warn && a.Verdict == checks.Fail:
		v.Turn = Risen
	case was == checks.Fail && a.Verdict == checks.Warn:
		v.Turn = Fallen
	case bad(a.Verdict):
		v.Turn = New
	case a.Verdict == checks.Unknown && was != "" && was != checks.Skip:
		v.Turn = Lost
	case bad(was) && b.ID != "":
		v.Turn = Fixed
	case was == checks.Unknown:
		v.Turn = Known
	default:
		return v, false
	}
	return v, true
}

func leftOut(f checks.Finding, skip func(string) bool) bool { return skip != nil && skip(f.Check) }

// notLooked says whether a side left a check out by choice.
func notLooked(fs []checks.Finding, check string) bool {
	for _, f := range fs {
		if f.Check == check {
			return checks.LeftOut(f)
		}
	}
	return false
}

// worst is a check's verdict on one side; "" when the side does not have the check.
func worst(fs []checks.Finding, check string) checks.Verdict {
	var out checks.Verdict
	for _, f := range fs {
		switch {
		case f.Check != check:
		case out == "":
			out = f.Verdict
		default:
			out = checks.Worst(out, f.Verdict)
		}
	}
	return out
}

func summary(fs []checks.Finding, check string, v checks.Verdict) string {
	for _, f := range fs {
		if f.Check == check && f.Verdict == v {
			return f.Summary
		}
	}
	return ""
}

// Regressed says whether anything got worse: a new or risen fault, a fact that fell, a part that is gone, a rig that is lost.
func (r Result) Regressed() bool {
	for _, g := range r.Rigs {
		if slices.ContainsFunc(g.Facts, func(c Change) bool { return c.Effect == Worse || c.Effect == Gone }) ||
			slices.ContainsFunc(g.Findings, func(v Verdict) bool { return v.Turn == Risen || v.Turn == New && v.After == checks.Fail }) {
			return true
		}
	}
	return false
}

// Darkened says whether something that was known is not known any more, or a rig was not reached.
func (r Result) Darkened() bool {
	for _, g := range r.Rigs {
		if g.Presence == "lost" || g.Presence == "gone" || slices.ContainsFunc(g.Findings, func(v Verdict) bool { return v.Turn == Lost }) {
			return true
		}
	}
	return false
}

// Empty says whether nothing changed at all.
func (r Result) Empty() bool {
	for _, g := range r.Rigs {
		if g.Presence != "both" || len(g.Facts) > 0 || slices.ContainsFunc(g.Findings, func(v Verdict) bool { return v.Turn != Unchanged }) {
			return false
		}
	}
	return true
}
