package facts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// linkErrors are the correctable errors that tell of a bad link. NonFatalErr is left out: probing of absent functions
// raises it on healthy machines. Kernel: Documentation/ABI/testing/sysfs-bus-pci-devices-aer.
var linkErrors = []string{"RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"}

// aerCounters reads the kernel's counters of a function since boot: lines "NAME COUNT". They stay 0 where the
// firmware kept AER for itself.
func (b *builder) aerCounters(dir string) AER {
	sum := func(file string, wanted func(string) bool) Fact[int64] {
		text, ok := b.text(dir + file)
		if !ok {
			return Fact[int64]{}
		}
		var n int64
		for _, line := range strings.Split(text, "\n") {
			name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
			v, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			if err != nil {
				return Fact[int64]{} // not the file that it should be
			}
			if wanted(name) && v > 0 {
				n += v
			}
		}
		return Of(n, source(dir+file))
	}
	total := func(name string) bool { return strings.HasPrefix(name, "TOTAL_ERR") }
	return AER{
		CountCorr:     sum("aer_dev_correctable", func(name string) bool { return slices.Contains(linkErrors, name) }),
		CountNonFatal: sum("aer_dev_nonfatal", total),
		CountFatal:    sum("aer_dev_fatal", total),
	}
}

const portServices = "sys/bus/pci_express/devices"

// readAEROwner: the kernel gives a root port a service device whose name ends in "pcie002" only when it handles AER
// itself; services are listed for every user.
func readAEROwner(b *builder) {
	names := b.snap.Dirs[portServices]
	if len(names) == 0 {
		return
	}
	owned := slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ":pcie002") })
	b.host.AEROwned = Of(owned, source(portServices))
}

// Lines of a boot log that say who handles AER, and what the IOMMU does.
var (
	oscControls = regexp.MustCompile(`_OSC: OS now controls \[([^\]]*)\]`)
	oscRefuses  = regexp.MustCompile(`_OSC: (?:platform does not support \[[^\]]*\bAER\b|platform retains control of PCIe features)`)
	aerEnabled  = regexp.MustCompile(`pcieport .*(?:AER: enabled with IRQ|AER enabled with IRQ)`)
	iommuGroup  = regexp.MustCompile(`(?i)adding (?:device \S+ )?to (?:iommu )?group \d+|DMAR: IOMMU enabled|DMAR: Intel\(R\) Virtualization Technology for Directed I/O|AMD-Vi: .*(?:IO_PAGE_FAULT|performance counters supported)`)
	iommuDomain = regexp.MustCompile(`iommu: Default domain type: (\w+)`)
	efiBoot     = regexp.MustCompile(`\befi: EFI v\d`)
)

// ownerNeedles are words of which every line that logOwners takes something from holds one, whatever the case.
var ownerNeedles = []string{"_OSC", "AER", "roup", "IOMMU", "DMAR", "AMD-Vi", "iommu", "efi: "}

// logOwners reads, from a kernel log, what sysfs would say better where it was read: the owner of AER, the IOMMU's
// state and the boot mode.
func (b *builder) logOwners(text, src string) {
	var grants, refusals, groups, efi bool
	domain := ""
	for line := range strings.SplitSeq(text, "\n") {
		if line = line[:min(len(line), lineLimit)]; !slices.ContainsFunc(ownerNeedles, func(n string) bool { return strings.Contains(line, n) }) {
			continue
		}
		if m := oscControls.FindStringSubmatch(line); m != nil {
			if slices.Contains(strings.Fields(m[1]), "AER") {
				grants = true
			} else {
				refusals = true
			}
		}
		refusals = refusals || oscRefuses.MatchString(line)
		grants = grants || aerEnabled.MatchString(line)
		groups = groups || iommuGroup.MatchString(line)
		efi = efi || efiBoot.MatchString(line)
		if m := iommuDomain.FindStringSubmatch(line); m != nil {
			domain = m[1]
		}
	}
	h := b.host
	if !h.AEROwned.Known() && (grants || refusals) {
		h.AEROwned = Of(grants && !refusals, src)
	}
	if efi {
		h.Boot.UEFI = First(h.Boot.UEFI, Of(true, src))
	}
	b.logIOMMU(groups, domain, strings.Contains(text, "Linux version "), src)
}

// logIOMMU: only devices that were put into groups prove an IOMMU at work. The line of the default domain type is
// printed without one, and the DMAR and IVRS tables are listed before it is decided. From its first line on, a boot
// log without groups proves that there is none.
func (b *builder) logIOMMU(groups bool, domain string, whole bool, src string) {
	m := &b.host.IOMMU
	if m.On.Known() {
		return
	}
	switch {
	case groups:
		m.On = Of(true, src)
		m.Default = known(domain, src)
	case whole:
		m.On = Of(false, src)
	default:
		return
	}
	delete(b.host.Gaps, KindIOMMU)
}
