package facts

import "strings"

// readIOMMU: groups exist only while an IOMMU is in use; their type says whether DMA is translated ("DMA", "DMA-FQ")
// or passed through ("identity").
func readIOMMU(b *builder) {
	types := map[string]int{}
	for path, raw := range b.snap.Files {
		rest, ok := strings.CutPrefix(path, "sys/kernel/iommu_groups/")
		if ok && strings.HasSuffix(rest, "/type") {
			types[strings.TrimSpace(string(raw))]++
		}
	}
	cards := map[string]string{}
	for _, c := range b.host.Cards {
		target := b.snap.Links[pciDevices+c.BDF+"/iommu_group"]
		if t, ok := b.text("sys/kernel/iommu_groups/" + target[strings.LastIndexByte(target, '/')+1:] + "/type"); ok && target != "" {
			cards[c.BDF] = t
		}
	}
	classes, listed := b.snap.Dirs["sys/class/iommu"]
	switch {
	case len(types) > 0:
		b.host.IOMMU = IOMMU{On: Of(true, "sysfs:sys/kernel/iommu_groups"), Types: types, Cards: cards}
	case len(classes) > 0:
		b.host.IOMMU.On = Of(true, "sysfs:sys/class/iommu")
	case listed:
		b.host.IOMMU.On = Of(false, "sysfs:sys/class/iommu")
	default:
		if it, ok := b.items["sys/class/iommu"]; ok && it.Status == StatusAbsent {
			b.host.IOMMU.On = Of(false, "sysfs:sys/class/iommu")
			return
		}
		b.gap(KindIOMMU, "no IOMMU facts in the input")
	}
}
