package inventory

import (
	"fmt"
	"path"
	"strings"
)

// groupPrefix selects by group and not by name.
const groupPrefix = "group:"

// Select returns the rigs that any pattern matches, in the order of the inventory; no pattern means all. A pattern is
// a shell glob over names ("node-*"), or over groups ("group:lab-1"). One that matches nothing is an error, since a
// rig left out by a typo would look like a rig without faults.
func (inv *Inventory) Select(patterns []string) ([]*Rig, error) {
	if len(patterns) == 0 {
		return inv.Rigs, nil
	}
	chosen := make(map[*Rig]bool, len(inv.Rigs))
	for _, p := range patterns {
		hit := false
		for _, r := range inv.Rigs {
			ok, err := matches(p, r)
			if err != nil {
				return nil, fmt.Errorf("%q is no valid pattern: %w", p, err)
			}
			if ok {
				hit, chosen[r] = true, true
			}
		}
		if !hit {
			return nil, fmt.Errorf("no rig matches %q.%s", p, inv.nearRig(p))
		}
	}
	var out []*Rig
	for _, r := range inv.Rigs {
		if chosen[r] {
			out = append(out, r)
		}
	}
	return out, nil
}

func matches(pattern string, r *Rig) (bool, error) {
	if g, ok := strings.CutPrefix(pattern, groupPrefix); ok {
		hit, err := path.Match(g, r.Group)
		return hit && r.Group != "", err
	}
	return path.Match(pattern, r.Name)
}

func (inv *Inventory) nearRig(pattern string) string {
	var known []string
	seen := map[string]bool{}
	for _, r := range inv.Rigs {
		known = append(known, r.Name)
		if r.Group != "" && !seen[r.Group] {
			seen[r.Group] = true
			known = append(known, groupPrefix+r.Group)
		}
	}
	if hint := didYouMean(pattern, known); hint != "" {
		return hint
	}
	const most = 8
	if len(known) > most {
		return fmt.Sprintf(" Declared are %s and %d more.", strings.Join(known[:most], ", "), len(known)-most)
	}
	return fmt.Sprintf(" Declared are %s.", orList(known))
}
