package workload

import (
	"fmt"
	"reflect"
)

// Job is one workload on all rigs of a run.
type Job struct {
	Name        string       `json:"name,omitempty"` // of the inventory's block
	Title       string       `json:"title"`
	Assumed     []string     `json:"assumed"` // what nobody said
	Assessments []Assessment `json:"rigs"`
	References  []Assessment `json:"references"` // machines of the catalogue to compare with
	Costs       []CostRow    `json:"costs"`
	Open        []Open       `json:"unknown"`
}

// Open is a rig of which nothing can be said, and what would change that.
type Open struct {
	Rig string `json:"rig"`
	Why string `json:"why"`
}

// Judge works a job out on rigs and on machines to compare with. Rigs that are the same in every figure are judged once.
func Judge(w Workload, rigs, references []Rig, open []Open) Job {
	j := Job{Name: w.Name, Title: w.Title(), Assumed: append([]string{}, w.Assumed...), Assessments: []Assessment{}, References: []Assessment{}, Open: append([]Open{}, open...)}
	for _, r := range merged(rigs) {
		j.Assessments = append(j.Assessments, Assess(w, r))
	}
	for _, r := range references {
		if r.Reference = true; !among(j.Assessments, r) {
			j.References = append(j.References, Assess(w, r))
		}
	}
	for i := range j.Assessments {
		for _, other := range j.References {
			if x, ok := Versus(j.Assessments[i], other); ok {
				j.Assessments[i].Answers = append(j.Assessments[i].Answers, x)
				break // one example is enough
			}
		}
	}
	j.Costs = Costs(append(append([]Assessment{}, j.Assessments...), j.References...))
	return j
}

// among says whether a machine to compare with is one of the rigs themselves.
func among(list []Assessment, r Rig) bool {
	for _, a := range list {
		if a.Rig.Cards == r.Cards && a.Rig.Card.Slug == r.Card.Slug {
			return true
		}
	}
	return false
}

// merged joins rigs that differ in nothing but their names, in the order of the first of each.
func merged(rigs []Rig) []Rig {
	var out []Rig
	for _, r := range rigs {
		found := false
		for i := range out {
			a, b := out[i], r
			a.Names, b.Names = nil, nil
			if reflect.DeepEqual(a, b) {
				out[i].Names, found = append(out[i].Names, r.Names...), true
				break
			}
		}
		if !found {
			r.Names = append([]string{}, r.Names...)
			out = append(out, r)
		}
	}
	return out
}

// Title is the job in a few words that are the same in every language.
func (w Workload) Title() string {
	s := fmt.Sprintf("%s · %s · %s", w.Model.Name, w.Method, w.Precision)
	if w.Serving() {
		return s + fmt.Sprintf(" · s %d · r %d", w.Sequence, w.Requests)
	}
	if !w.adapted() {
		s += " · " + w.Optimizer
	}
	s += fmt.Sprintf(" · s %d", w.Sequence)
	if !w.chooseBatch {
		s += fmt.Sprintf(" · b %d", w.MicroBatch)
	}
	if w.Strategy != "auto" {
		s += " · " + w.Strategy
	}
	return s
}

// Worst is the worst verdict of a job: FitsNot before unknown before the rest; "" when there is no rig.
func (j Job) Worst() string {
	worst := ""
	for _, a := range j.Assessments {
		switch {
		case a.Fit == FitsNot:
			return FitsNot
		case worst == "" || a.Fit == FitsChanged:
			worst = a.Fit
		}
	}
	if len(j.Open) > 0 {
		return Unclear
	}
	return worst
}
