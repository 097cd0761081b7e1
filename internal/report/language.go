package report

import (
	"slices"

	"preflight/checks"
	"preflight/internal/lang"
)

// In returns the report with everything that people read said in a language. Ids, verdicts, evidence, facts and
// commands are the same in every language. Fixes are taken as they are: remedies are written in each language.
func (r *Report) In(l lang.Language) *Report {
	if l != lang.Zh {
		return r
	}
	out := *r
	out.Rigs = slices.Clone(r.Rigs)
	for i := range out.Rigs {
		g := &out.Rigs[i]
		g.Findings = slices.Clone(g.Findings)
		for j := range g.Findings {
			g.Findings[j] = sayFinding(l, g.Findings[j])
		}
		g.Notes = sayAll(l, g.Notes)
		if g.Error != nil {
			g.Error = &Failure{Phase: g.Error.Phase, Summary: l.Say(g.Error.Summary), Advice: sayAll(l, g.Error.Advice)}
		}
	}
	return &out
}

func sayFinding(l lang.Language, f checks.Finding) checks.Finding {
	for _, text := range []*string{&f.Observed, &f.Expected, &f.Summary, &f.Note, &f.Known} {
		*text = l.Say(*text)
	}
	return f
}

func sayAll(l lang.Language, texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, l.Say(s))
	}
	return out
}
