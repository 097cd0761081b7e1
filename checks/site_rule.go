package checks

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"preflight/internal/facts"
)

// siteRules judges a site's own expressions. An absent fact makes a rule unknown, never false.
func siteRules(s Subject) []Finding {
	if s.Rig.Profile == nil || len(s.Rig.Profile.Rules) == 0 {
		return nil
	}
	host := HostValue(s.Host)
	var out []Finding
	for _, r := range s.Rig.Profile.Rules {
		c := Check{ID: "site." + r.Name, Title: r.Name}
		f := pass(rigSubject, "%s holds", r.Name)
		v, diags := r.Eval(host)
		switch {
		case diags.HasErrors():
			f = unknown(rigSubject, "%s could not be computed: %s", r.Name, strings.TrimSpace(diags[0].Summary+". "+diags[0].Detail)).knownBy("correct the rule in rigs.hcl")
		case !v.IsKnown():
			f = unknown(rigSubject, "%s rests on a fact that was not read", r.Name).knownBy("let preflight read what the rule names (root may be needed)")
		case v.IsNull() || v.False():
			f = fail(rigSubject, "%s", firstOf(r.Message, r.Name+" does not hold")).fix("site.rule", "message", firstOf(r.Message, r.Name))
		}
		out = append(out, c.finish([]Finding{f.because(evs("rigs.hcl:check "+r.Name, r.Range.String()))})...)
	}
	return out
}

// HostType is the type of `host` in a site's rules: the tree of facts with plain values at its leaves. Rules are
// checked against it when an inventory is loaded, so that a typo in a path is found before any host is touched.
func HostType() cty.Type { return facts.Type() }

// HostValue is the host as an expression sees it; what is absent is unknown.
func HostValue(h *facts.Host) cty.Value { return facts.Value(h) }
