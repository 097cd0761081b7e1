package checks

import (
	"fmt"
	"sort"
	"strings"

	"preflight/internal/facts"
	"preflight/inventory"
)

// cluster.consistency: are the rigs that train together alike where a difference breaks or slows a job?
//
//	rig without a group, or the only one of it in this run    skip
//	no other rig of the group could be read                   unknown
//	a value unlike that of more than half of the rigs         warn on the rig that deviates; the majority is named
//	no value on more than half of them (two rigs differ)      warn on each: which one is right nobody knows
//	all alike                                                 pass
//	the driver could not be compared                          unknown
//
// Compared: driver, module flavour and CUDA, NCCL of torch, kernel and its options, BIOS by board, VBIOS, BAR1 and
// power limit by card model, persistence; IOMMU, Above 4G Decoding, ACS redirection above cards, boot mode, NUMA nodes by
// processor. Any other fact that a rig does not tell is not compared there, and the note says so.
var clusterConsistency = Check{ID: "cluster.consistency", Title: "rigs alike", Decide: func(s Subject) []Finding {
	if s.Rig.Group == "" {
		return []Finding{skip(rigSubject, "the rig belongs to no group")}
	}
	return []Finding{skip(rigSubject, "the only rig of group %s in this run", s.Rig.Group)}
}}

// Member is one rig of a run; Host is nil when it could not be read.
type Member struct {
	Rig  *inventory.Rig
	Host *facts.Host
}

// RunFleet judges what shows only across rigs. It gives for each member the findings that take the place of those
// which [Run] gave for cluster.consistency; nil where there is nothing to replace.
func RunFleet(all []Member) [][]Finding {
	out := make([][]Finding, len(all))
	groups := map[string][]int{}
	for i, m := range all {
		if m.Rig != nil && m.Rig.Group != "" {
			groups[m.Rig.Group] = append(groups[m.Rig.Group], i)
		}
	}
	for name, members := range groups {
		if len(members) < 2 {
			continue
		}
		for i, fs := range compareGroup(name, all, members) {
			out[i] = clusterConsistency.finish(fs)
		}
	}
	return out
}

// compareGroup judges the rigs of one group that were read.
func compareGroup(group string, all []Member, members []int) map[int][]Finding {
	var read []int
	var unread []string
	for _, i := range members {
		if all[i].Host == nil {
			unread = append(unread, all[i].Rig.Name)
			continue
		}
		read = append(read, i)
	}
	sort.Strings(unread)
	out := map[int][]Finding{}
	if len(read) == 1 {
		out[read[0]] = []Finding{unknown(rigSubject, "no other rig of group %s could be read", group).noting("not read: %s", strings.Join(unread, ", ")).knownBy("make the other rigs reachable")}
		return out
	}
	values := map[int]map[string]trait{}
	for _, i := range read {
		values[i] = traitsOf(all[i].Host)
	}
	for _, key := range traitKeys(values) {
		for i, f := range compareTrait(key, all, read, values) {
			out[i] = append(out[i], f)
		}
	}
	for _, i := range read {
		if len(out[i]) == 0 {
			out[i] = []Finding{alike(i, read, values, group)}
		}
		last := &out[i][len(out[i])-1]
		if gaps := untold(i, read, values); gaps != "" {
			*last = last.noting("not compared: %s", gaps)
		}
		if len(unread) > 0 {
			*last = last.noting("not read: %s", strings.Join(unread, ", "))
		}
	}
	return out
}

// alike is the finding of a rig from which nothing differs. Without the driver's version on both sides that says little.
func alike(i int, read []int, values map[int]map[string]trait, group string) Finding {
	d, others := values[i]["driver"], 0
	for _, j := range read {
		if j != i && values[j]["driver"].value != "" {
			others++
		}
	}
	them := plural(len(read)-1, "other rig")
	switch {
	case d.value == "":
		return unknown(rigSubject, "nothing differs from %s of group %s, but its driver's version is not known", them, group).knownBy("give nvidia-smi -q, or a snapshot of the host")
	case others == 0:
		return unknown(rigSubject, "nothing differs from %s of group %s, but no other driver's version is known", them, group).knownBy("give nvidia-smi -q, or a snapshot, of the other rigs")
	}
	return pass(rigSubject, "alike in all that was compared with %s of group %s", them, group).because(evs(d.source, d.value))
}

// compareTrait gives a finding to each rig whose value is not the majority's.
func compareTrait(key string, all []Member, read []int, values map[int]map[string]trait) map[int]Finding {
	holders := map[string][]string{}
	told := 0
	for _, i := range read {
		if t, ok := values[i][key]; ok && t.value != "" {
			holders[t.value] = append(holders[t.value], all[i].Rig.Name)
			told++
		}
	}
	if len(holders) < 2 {
		return nil
	}
	majority := ""
	for v, names := range holders {
		if 2*len(names) > told {
			majority = v
		}
	}
	out := map[int]Finding{}
	for _, i := range read {
		t, ok := values[i][key]
		if !ok || t.value == "" || t.value == majority {
			continue
		}
		here := brief(t.value)
		f := warn(key, "%s: %s here, and the rigs of the group do not agree", t.title, here).saw(t.value, "one value").noting("%s", sides(holders))
		if majority != "" {
			f = warn(key, "%s: %s here, %s on %d of %d rigs", t.title, here, brief(majority), len(holders[majority]), told).saw(t.value, majority).noting("%s", sides(holders))
		}
		out[i] = f.because(evs(t.source, t.value)).fix("cluster.consistency/"+t.remedy, "what", t.title, "here", t.value, "there", firstOf(majority, "one value for all"))
	}
	return out
}

// The longest value and the most sides that a line still holds; the whole value is the observed one.
const (
	briefValue = 48
	briefSides = 4
)

// brief cuts a long value, such as a command line of the kernel.
func brief(value string) string {
	if r := []rune(value); len(r) > briefValue {
		return string(r[:briefValue]) + "…"
	}
	return value
}

// sides names the rigs of each value, the larger side first: "550.90.07: node-a, node-b; 535.183: node-c".
func sides(holders map[string][]string) string {
	values := make([]string, 0, len(holders))
	for v := range holders {
		values = append(values, v)
	}
	sort.Slice(values, func(i, j int) bool {
		a, b := values[i], values[j]
		if len(holders[a]) != len(holders[b]) {
			return len(holders[a]) > len(holders[b])
		}
		return a < b
	})
	var parts []string
	for i, v := range values {
		if i == briefSides {
			parts = append(parts, fmt.Sprintf("+%d", len(values)-i))
			break
		}
		names := holders[v]
		sort.Strings(names)
		if len(names) > 8 {
			names = append(append([]string{}, names[:8]...), fmt.Sprintf("+%d", len(names)-8))
		}
		parts = append(parts, brief(v)+" = "+strings.Join(names, " "))
	}
	return strings.Join(parts, "; ")
}

func traitKeys(values map[int]map[string]trait) []string {
	set := map[string]bool{}
	for _, traits := range values {
		for k := range traits {
			set[k] = true
		}
	}
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// untold lists what this rig does not tell, though another does. What depends on a board or a card model that this rig
// does not have is not missed.
func untold(i int, read []int, values map[int]map[string]trait) string {
	var out []string
	for _, key := range traitKeys(values) {
		if t, has := values[i][key]; t.value != "" || !has {
			continue
		}
		for _, j := range read {
			if t := values[j][key]; t.value != "" {
				out = append(out, t.title)
				break
			}
		}
	}
	return strings.Join(out, ", ")
}
