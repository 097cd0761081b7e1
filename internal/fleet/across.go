package fleet

import "preflight/checks"

// Across puts into each rig's findings what shows only beside the other rigs of its group. Findings stay in the order
// of the catalogue.
func Across(results []Result) {
	members := make([]checks.Member, len(results))
	for i, r := range results {
		members[i] = checks.Member{Rig: r.Rig, Host: r.Host}
	}
	for i, found := range checks.RunFleet(members) {
		if len(found) == 0 || len(results[i].Findings) == 0 {
			continue
		}
		var out []checks.Finding
		placed := false
		for _, f := range results[i].Findings {
			if f.Check != found[0].Check {
				out = append(out, f)
				continue
			}
			if !placed {
				out, placed = append(out, found...), true
			}
		}
		if !placed {
			out = append(out, found...)
		}
		results[i].Findings = out
	}
}
