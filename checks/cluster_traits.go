package checks

import (
	"fmt"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// trait is one value of a rig that is compared across its group.
type trait struct {
	title  string // for messages
	value  string
	source string
	remedy string // second part of the code
}

// traitsOf gathers what a rig tells, by key. A key with a colon is about one board or card model, which other rigs of
// the group need not have. What a rig should tell and does not has an empty value.
func traitsOf(h *facts.Host) map[string]trait {
	out := map[string]trait{}
	put := func(key, title, remedy, value, source string) {
		if source == "" {
			value = ""
		}
		out[key] = trait{title: title, value: value, source: source, remedy: remedy}
	}
	d := h.Driver
	put("driver", "driver", "driver", d.Version.Value, d.Version.Source)
	put("module", "driver's module", "driver", boolWord(d.Open, "open", "proprietary"), d.Open.Source)
	if !d.Version.Known() {
		put("cuda", "CUDA of the driver", "driver", d.CUDA.Value, d.CUDA.Source) // it follows from the version where that is told
	}
	put("kernel", "kernel", "kernel", h.OS.Kernel.Value, h.OS.Kernel.Source)
	put("cmdline", "kernel options", "cmdline", relevantOptions(h.OS.Cmdline), h.OS.Cmdline.Source)
	put("iommu", "IOMMU", "bios", iommuWord(h.IOMMU), h.IOMMU.On.Source)
	put("boot", "boot mode", "bios", boolWord(h.Boot.UEFI, "UEFI", "legacy"), h.Boot.UEFI.Source)
	value, source := ncclOf(h)
	put("nccl", "NCCL of torch", "nccl", value, source)
	value, source = above4GWord(h)
	put("above-4g", "Above 4G Decoding", "bios", value, source)
	value, source = acsWord(h)
	put("acs", "ACS redirection", "bios", value, source)
	if board := firstOf(h.Board.Name.Value, h.Board.Product.Value); board != "" {
		put("bios:"+board, fmt.Sprintf("BIOS of %s", board), "bios", h.BIOS.Version.Value, h.BIOS.Version.Source)
	}
	if cpu := h.CPU.Model.Value; cpu != "" && h.CPU.Nodes.Known() {
		put("numa:"+cpu, fmt.Sprintf("NUMA nodes with %s", cpu), "bios", fmt.Sprint(h.CPU.Nodes.Value), h.CPU.Nodes.Source)
	}
	cardTraits(h, put)
	return out
}

// cardTraits adds what each card model shows: the set of values of all cards of that model.
func cardTraits(h *facts.Host, put func(key, title, remedy, value, source string)) {
	models := map[string][]facts.Card{}
	for _, c := range h.Cards {
		models[modelName(c)] = append(models[modelName(c)], c)
	}
	for model, cards := range models {
		persistence, sources := valuesOf(cards, func(c facts.Card) (string, string) { return boolWord(c.Persistence, "on", "off"), c.Persistence.Source })
		put("persistence:"+model, fmt.Sprintf("persistence mode of %s", model), "persistence", persistence, sources)
		limit, sources := valuesOf(cards, func(c facts.Card) (string, string) {
			return wattsWord(c.PowerLimit), c.PowerLimit.Source
		})
		put("power:"+model, fmt.Sprintf("power limit of %s", model), "power", limit, sources)
		aperture, sources := valuesOf(cards, func(c facts.Card) (string, string) { return mibWord(c.BAR1MiB), c.BAR1MiB.Source })
		put("bar1:"+model, fmt.Sprintf("BAR1 of %s", model), "bios", aperture, sources)
	}
	boards := map[string][]facts.Card{} // the same model of two makers has two VBIOS lines
	for _, c := range h.Cards {
		name := modelName(c)
		if c.SubVend != "" {
			name += " " + c.SubVend + ":" + c.SubDev
		}
		boards[name] = append(boards[name], c)
	}
	for board, cards := range boards {
		vbios, sources := valuesOf(cards, func(c facts.Card) (string, string) { return strings.ToLower(c.VBIOS.Value), c.VBIOS.Source })
		put("vbios:"+board, fmt.Sprintf("VBIOS of %s", board), "vbios", vbios, sources)
	}
}

// valuesOf joins the distinct values of several cards; nothing when a card does not tell.
func valuesOf(cards []facts.Card, of func(facts.Card) (value, source string)) (values, source string) {
	set := map[string]bool{}
	for _, c := range cards {
		v, src := of(c)
		if src == "" {
			return "", ""
		}
		set[v], source = true, src
	}
	list := make([]string, 0, len(set))
	for v := range set {
		list = append(list, v)
	}
	sort.Strings(list)
	return strings.Join(list, " and "), source
}

func boolWord(f facts.Fact[bool], yes, no string) string {
	switch v, ok := f.Get(); {
	case !ok:
		return ""
	case v:
		return yes
	}
	return no
}

func wattsWord(f facts.Fact[float64]) string {
	if !f.Known() {
		return ""
	}
	return fmt.Sprintf("%.0f W", f.Value)
}

func mibWord(f facts.Fact[int64]) string {
	if !f.Known() {
		return ""
	}
	return fmt.Sprintf("%d MiB", f.Value)
}

// optionPrefixes are kernel options that matter to cards, DMA and memory; others (root=, console=) differ by right.
var optionPrefixes = []string{
	"pci=", "pcie_", "pcie=", "iommu", "intel_iommu", "amd_iommu", "nvidia", "hugepages", "default_hugepagesz", "mitigations", "numa", "isolcpus", "nohz_full",
	"intel_idle", "processor.", "module_blacklist", "modprobe.blacklist", "mem=", "rd.driver.blacklist", "nomodeset", "cgroup",
}

func relevantOptions(f facts.Fact[string]) string {
	if !f.Known() {
		return ""
	}
	var out []string
	for _, word := range strings.Fields(f.Value) {
		for _, p := range optionPrefixes {
			if strings.HasPrefix(word, p) {
				out = append(out, word)
				break
			}
		}
	}
	sort.Strings(out)
	return firstOf(strings.Join(out, " "), "none")
}

// iommuWord is "off", or "on" with how the DMA of the cards is treated; nothing where that is not told.
func iommuWord(i facts.IOMMU) string {
	switch on, ok := i.On.Get(); {
	case !ok:
		return ""
	case !on:
		return "off"
	}
	kinds := map[string]bool{}
	for _, kind := range i.Cards {
		kinds[kind] = true
	}
	for kind := range i.Types {
		kinds[kind] = kinds[kind] || len(i.Cards) == 0 // a port for strangers (Thunderbolt) is translated on every rig
	}
	for kind, on := range kinds {
		if on && strings.HasPrefix(kind, "DMA") {
			return "on, translating"
		}
	}
	if kinds["identity"] {
		return "on, passing through"
	}
	return ""
}

// above4GWord says where firmware put the cards' apertures; told only when every card has an address.
func above4GWord(h *facts.Host) (value, source string) {
	for _, c := range h.Cards {
		for _, b := range c.BARs {
			if !b.Mem64 || b.Unassigned || b.Size == 0 {
				continue
			}
			if b.Start >= 1<<32 {
				return "cards above 4 GiB", b.Source
			}
			value, source = "cards below 4 GiB", b.Source
		}
	}
	return value, source
}

// acsRedirects are the bits of ACS control that send peer traffic up to the root complex.
const acsRedirects = 0x4 | 0x8 | 0x10

// acsWord says whether a port above a card redirects; other ports (of drives, of a BMC) differ by right.
func acsWord(h *facts.Host) (value, source string) {
	above := map[string]bool{}
	for _, c := range h.Cards {
		for _, b := range c.Chain {
			above[b] = true
		}
	}
	for _, d := range h.PCI {
		control, ok := d.ACS.Get()
		if !ok || !above[d.BDF] {
			continue
		}
		if control&acsRedirects != 0 {
			return "on", d.ACS.Source
		}
		value, source = "off", d.ACS.Source
	}
	return value, source
}

// ncclOf is the NCCL that training will load, where one Python alone has torch.
func ncclOf(h *facts.Host) (value, source string) {
	if len(h.Software.Torch) != 1 {
		return "", ""
	}
	t := h.Software.Torch[0]
	return firstOf(t.NCCL, t.NCCLBuilt), t.Source
}
