package checks

import (
	"sort"
	"strings"
)

// gpu.model: are the cards of the declared model, and all of one model?
//
//	declared  seen                       verdict
//	slug      every card's device id     pass
//	slug      another device id          fail
//	none      one model                  pass
//	none      several models             warn: a job runs at the pace of the slowest
//	any       ids not in the catalogue   unknown
//
// The PCI device id decides, since names can be flashed. A card of the right id with an unusual amount of memory
// passes here with a note.
var gpuModel = Check{ID: "gpu.model", Title: "model of the cards", Decide: decideGPUModel}

func decideGPUModel(s Subject) []Finding {
	if len(s.Cards) == 0 {
		return []Finding{unknown(rigSubject, "no card's device id is known").knownBy("give a snapshot of the host, lspci -nn or nvidia-smi -q -x")}
	}
	if s.Rig.GPU != "" {
		return declaredModel(s)
	}
	models, nameless := map[string]int{}, ""
	for _, c := range s.Cards {
		if m := firstOf(c.Slug.Value, c.Product, c.Name.Value); m != "" {
			models[m]++
		} else {
			nameless = c.BDF
		}
	}
	names := make([]string, 0, len(models))
	for m := range models {
		names = append(names, m)
	}
	sort.Strings(names)
	if len(names) > 1 {
		return []Finding{warn(rigSubject, "different cards in one rig: %s", strings.Join(names, ", ")).saw(strings.Join(names, ", "), "one model").
			because(evs("pci:device ids", bdfs(s.Cards))).fix("gpu.model/mixed")}
	}
	if nameless != "" { // lost, or cut off by the table
		return []Finding{unknown(nameless, "%s: the device id is not known", nameless).knownBy("give lspci -nn or a snapshot of the host")}
	}
	return []Finding{pass(rigSubject, "%s, %s", plural(len(s.Cards), "card"), modelName(s.Cards[0])).saw(names[0], "one model")}
}

func declaredModel(s Subject) []Finding {
	ids := map[string]bool{}
	for _, g := range s.Cat.BySlug(s.Rig.GPU) {
		ids[g.ID] = true
	}
	var out []Finding
	for _, c := range s.Cards {
		seen := firstOf(c.Slug.Value, "10de:"+c.Product)
		switch {
		case c.Product == "":
			out = append(out, unknown(c.BDF, "%s: the device id is not known", c.BDF).saw("", s.Rig.GPU).knownBy("give lspci -nn or a snapshot of the host"))
		case !ids[c.Product]:
			out = append(out, fail(c.BDF, "%s is %s, declared %s", c.BDF, modelName(c), s.Rig.GPU).saw(seen, s.Rig.GPU).
				because(evs("pci:"+c.BDF+"/device", c.Product), ev(c.Name)).fix("gpu.model/mismatch", "bdf", c.BDF, "expected", s.Rig.GPU, "seen", seen))
		case c.Slug.Known() && c.Slug.Value != s.Rig.GPU:
			out = append(out, pass(c.BDF, "%s has the declared device id", c.BDF).saw(seen, s.Rig.GPU).noting("its memory, %d MiB, is not the factory's", c.MemoryMiB.Value))
		}
	}
	if len(out) == 0 {
		out = append(out, pass(rigSubject, "%d × %s", len(s.Cards), s.Rig.GPU).saw(s.Rig.GPU, s.Rig.GPU).because(evs("pci:device ids", s.Cards[0].Product)))
	}
	return out
}
