package facts

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

const pciDevices = "sys/bus/pci/devices/"

var bdfPattern = regexp.MustCompile(`^[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Flag bits of a line in sysfs `resource` (kernel include/linux/ioport.h).
const (
	ioresourceMem      = 0x200
	ioresourcePrefetch = 0x2000
	ioresourceMem64    = 0x100000
	ioresourceUnset    = 0x20000000
)

// maxFunctions bounds the PCI functions of one host (servers with many virtual functions show some thousands), and
// maxBridges those above one of them.
const (
	maxFunctions = 8192
	maxBridges   = 32
)

// readPCI builds the device list from sysfs: ids, chain of bridges, BARs and links. Every user may read these.
func readPCI(b *builder) {
	addresses := b.pciAddresses()
	if len(addresses) > maxFunctions {
		b.gap(KindPCI, "%d PCI functions, more than the %d that are read", len(addresses), maxFunctions)
		return
	}
	for _, bdf := range addresses {
		d, ok := b.device(bdf)
		if ok {
			b.host.PCI = append(b.host.PCI, d)
		}
	}
	if len(b.host.PCI) == 0 {
		b.gap(KindPCI, "%s", b.why("sys/bus/pci/devices", "no PCI devices in the input"))
		return
	}
	for _, d := range b.host.PCI {
		if isCard(d) && len(b.host.Cards) < maxCards {
			b.host.Cards = append(b.host.Cards, Card{Device: d})
		}
	}
	for i := range b.host.Cards {
		b.cardBARs(&b.host.Cards[i])
	}
}

// isCard is the definition of an NVIDIA GPU: vendor 10de and class VGA or 3D, not a virtual function. Audio (0403),
// USB-C (0c03, 0c80) and NVSwitch (0680) functions of the same vendor are not cards.
func isCard(d Device) bool {
	return d.Vendor == "10de" && !d.VF && (strings.HasPrefix(d.Class, "0300") || strings.HasPrefix(d.Class, "0302"))
}

// pciAddresses lists every BDF below sys/bus/pci/devices, from links and from files.
func (b *builder) pciAddresses() []string {
	set := map[string]bool{}
	add := func(path string) {
		rest, ok := strings.CutPrefix(path, pciDevices)
		if !ok {
			return
		}
		bdf, _, _ := strings.Cut(rest, "/")
		if bdfPattern.MatchString(bdf) {
			set[bdf] = true
		}
	}
	for p := range b.snap.Links {
		add(p)
	}
	for p := range b.snap.Files {
		add(p)
	}
	out := make([]string, 0, len(set))
	for bdf := range set {
		out = append(out, bdf)
	}
	sort.Strings(out)
	return out
}

func (b *builder) device(bdf string) (Device, bool) {
	dir := pciDevices + bdf + "/"
	hex := func(name string) string {
		t, _ := b.text(dir + name)
		return strings.TrimPrefix(strings.ToLower(t), "0x")
	}
	d := Device{
		BDF: bdf, Class: hex("class"), Vendor: hex("vendor"), Product: hex("device"),
		SubVend: hex("subsystem_vendor"), SubDev: hex("subsystem_device"),
		NUMA: b.number(dir + "numa_node"), Second: b.number(dir + "secondary_bus_number"), Subord: b.number(dir + "subordinate_bus_number"),
		Link: b.sysfsLink(dir),
	}
	d.RootBus, d.Chain = b.chain(bdf)
	d.Socket = b.nearestSocket(dir + "local_cpulist")
	if target, ok := b.snap.Links[dir+"driver"]; ok {
		d.Driver = Of(target[strings.LastIndexByte(target, '/')+1:], "sysfs:"+dir+"driver")
	} else if _, listed := b.snap.Links[strings.TrimSuffix(dir, "/")]; listed {
		d.Driver = Of("", "sysfs:"+dir)
	}
	_, d.VF = b.snap.Links[dir+"physfn"]
	if t, _ := b.text(dir + "removable"); t == "removable" {
		d.Removed = true
	}
	if data, ok := b.read(dir + "resource"); ok {
		d.BARs = parseResource(string(data), "sysfs:"+dir+"resource")
	}
	d.AER = b.aerCounters(dir)
	return d, d.Vendor != "" || d.Class != ""
}

// nearestSocket is the package of the first CPU that is local to a device. NUMA nodes do not tell it: one socket can
// show several of them (NPS4, SNC).
func (b *builder) nearestSocket(path string) Fact[int] {
	t, ok := b.text(path)
	if !ok {
		return Fact[int]{}
	}
	first := strings.FieldsFunc(t, func(r rune) bool { return r == ',' || r == '-' })
	if len(first) == 0 {
		return Fact[int]{}
	}
	n, ok := b.packages[first[0]]
	if !ok {
		return Fact[int]{}
	}
	return Of(n, source(path))
}

// chain splits the resolved sysfs path of a device into its root bus and the bridges above it.
func (b *builder) chain(bdf string) (rootBus string, bridges []string) {
	target, ok := b.snap.Links[pciDevices+bdf]
	if !ok {
		return "", nil
	}
	for _, part := range strings.Split(target, "/") {
		switch {
		case strings.HasPrefix(part, "pci"):
			rootBus = strings.TrimPrefix(part, "pci")
		case len(bridges) == maxBridges:
			return rootBus, nil
		case bdfPattern.MatchString(part) && part != bdf:
			bridges = append(bridges, part)
		}
	}
	return rootBus, bridges
}

// number reads a decimal or 0x file as a fact.
func (b *builder) number(path string) Fact[int] {
	t, ok := b.text(path)
	if !ok {
		return Fact[int]{}
	}
	n, err := strconv.ParseInt(t, 0, 64)
	if err != nil {
		return Fact[int]{}
	}
	return Of(int(n), source(path))
}

// sysfsLink reads the four link attributes. Width 63 and speed "Unknown" together with unreadable ids are what a
// device that left the bus answers (config reads return all ones).
func (b *builder) sysfsLink(dir string) Link {
	l := Link{Width: b.number(dir + "current_link_width"), MaxWidth: b.number(dir + "max_link_width")}
	for _, w := range []*Fact[int]{&l.Width, &l.MaxWidth} {
		if w.Value < 0 || w.Value > 255 {
			*w = Fact[int]{}
		}
	}
	l.Speed = b.speed(dir + "current_link_speed")
	l.MaxSpeed = b.speed(dir + "max_link_speed")
	if w, ok := l.Width.Get(); ok && w == 63 {
		l.Broken = Of(true, l.Width.Source)
		l.Width, l.Speed, l.MaxSpeed = Fact[int]{}, Fact[float64]{}, Fact[float64]{}
	}
	if w, ok := l.MaxWidth.Get(); ok && (w == 63 || w == 255) {
		l.MaxWidth = Fact[int]{}
	}
	return l
}

// speed reads "16.0 GT/s PCIe" or the older "16 GT/s"; "Unknown" is absent.
func (b *builder) speed(path string) Fact[float64] {
	t, ok := b.text(path)
	if !ok {
		return Fact[float64]{}
	}
	f, err := strconv.ParseFloat(strings.Fields(t)[0], 64)
	if err != nil || !(f > 0 && f < 1000) { // NaN is neither
		return Fact[float64]{}
	}
	return Of(f, source(path))
}

// parseResource reads the first six lines of a sysfs `resource` file: the BARs. Further lines are the ROM, SR-IOV
// BARs and bridge windows, whose number depends on the kernel's configuration.
func parseResource(text, src string) []BAR {
	var bars []BAR
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if i > 5 || len(f) != 3 {
			break
		}
		start, err1 := strconv.ParseUint(f[0], 0, 64)
		end, err2 := strconv.ParseUint(f[1], 0, 64)
		flags, err3 := strconv.ParseUint(f[2], 0, 64)
		if err1 != nil || err2 != nil || err3 != nil {
			break
		}
		bar := BAR{
			Index: i, Start: start, Mem: flags&ioresourceMem != 0, Mem64: flags&ioresourceMem64 != 0,
			Prefetch: flags&ioresourcePrefetch != 0, Source: src + "#" + strconv.Itoa(i),
		}
		if end > start {
			bar.Size = end - start + 1
		}
		bar.Unassigned = flags&ioresourceUnset != 0 || (bar.Size > 0 && start == 0)
		if bar.Size > 0 || flags != 0 || i < 2 {
			bars = append(bars, bar)
		}
	}
	return bars
}

// cardBARs derives a card's BAR1 size from its resource file: BAR1 is the framebuffer aperture on every NVIDIA card
// (with a 64-bit BAR0, as on A100 and H100, the aperture is BAR2 in PCI numbering: then line 2).
func (b *builder) cardBARs(c *Card) {
	for _, bar := range c.BARs {
		if (bar.Index == 1 || bar.Index == 2) && bar.Mem && bar.Size > 0 {
			c.BAR1MiB = Of(int64(bar.Size>>20), bar.Source)
			break
		}
	}
	if t, ok := b.text(pciDevices + c.BDF + "/resource1_resize"); ok {
		mask, err := strconv.ParseUint(strings.TrimPrefix(t, "0x"), 16, 64)
		if err == nil {
			c.ReBARMiB = Of(sizesOfMask(mask), "sysfs:"+pciDevices+c.BDF+"/resource1_resize")
		}
	}
}

// sizesOfMask turns the bit mask of resizeN (bit n: 2^n MiB) into sizes.
func sizesOfMask(mask uint64) []int64 {
	sizes := []int64{}
	for n := range 44 {
		if mask&(1<<n) != 0 {
			sizes = append(sizes, 1<<n)
		}
	}
	return sizes
}
