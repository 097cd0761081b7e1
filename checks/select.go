package checks

import (
	"fmt"
	"strings"

	"preflight/inventory"
)

// Selection is a user's choice of checks: ids, or their first part ("firmware" means every firmware.…).
type Selection struct {
	Only []string
	Skip []string
	// Asked are checks of what the run does only because somebody asked for it: that they stay unknown is then a result.
	Asked []string
}

// Validate refuses names that match no check, since a typo would silently check nothing.
func (s Selection) Validate() error {
	for _, list := range [][]string{s.Only, s.Skip} {
		for _, name := range list {
			known := strings.HasPrefix(name, "site.") || name == "site"
			for _, id := range IDs() {
				known = known || selects(name, id)
			}
			if !known {
				hint := ""
				if near := inventory.Nearest(name, IDs()); near != "" {
					hint = fmt.Sprintf(" (did you mean %s?)", near)
				}
				return fmt.Errorf("no check is called %q%s; there are %s", name, hint, strings.Join(IDs(), ", "))
			}
		}
	}
	return nil
}

func selects(name, id string) bool { return name == id || strings.HasPrefix(id, name+".") }

// Has says whether a check was chosen.
func (s Selection) Has(id string) bool {
	chosen := len(s.Only) == 0
	for _, n := range s.Only {
		chosen = chosen || selects(n, id)
	}
	for _, n := range s.Skip {
		chosen = chosen && !selects(n, id)
	}
	return chosen
}

// Apply replaces the findings of checks that the user chose not to look at: that is unknown, not a pass. It returns
// the policy under which those unknowns are not required.
func (s Selection) Apply(fs []Finding, p Policy) ([]Finding, Policy) {
	if len(s.Asked) > 0 {
		p.Asked = map[string]bool{}
		for _, name := range s.Asked {
			for _, id := range IDs() {
				p.Asked[id] = p.Asked[id] || selects(name, id)
			}
		}
	}
	if len(s.Only) == 0 && len(s.Skip) == 0 {
		return fs, p
	}
	out := make([]Finding, 0, len(fs))
	left := map[string]bool{}
	for _, f := range fs {
		if s.Has(f.Check) {
			out = append(out, f)
			continue
		}
		if !left[f.Check] {
			left[f.Check] = true
			c := Check{ID: f.Check}
			not := unknown(rigSubject, "not looked at, by choice").knownBy("run preflight check without --only and --skip")
			not.Args = map[string]string{leftOut: "yes"}
			out = append(out, c.finish([]Finding{not})...)
		}
	}
	dropDanglingCauses(out)
	p.Ignore = left
	return out, p
}

// leftOut marks, in a finding's Args, a check that the user chose to leave out.
const leftOut = "left_out"

// LeftOut says whether a finding stands for a check that was not looked at, by choice.
func LeftOut(f Finding) bool { return f.Args[leftOut] != "" }

// dropDanglingCauses clears causes that point at findings which are no longer there.
func dropDanglingCauses(fs []Finding) {
	there := map[string]bool{}
	for _, f := range fs {
		there[f.ID] = f.Verdict == Fail || f.Verdict == Warn
	}
	for i := range fs {
		if c := fs[i].Cause; c != nil && !there[*c] {
			fs[i].Cause = nil
		}
	}
}
