package facts

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	iomemLine  = regexp.MustCompile(`^([0-9a-f]+)-([0-9a-f]+) : PCI Bus ([0-9a-f]{4}:[0-9a-f]{2})$`)
	rootWindow = regexp.MustCompile(`pci_bus ([0-9a-f]{4}:[0-9a-f]{2}): root bus resource \[mem 0x([0-9a-f]+)-0x([0-9a-f]+)`)
)

// readIOMem takes the windows of PCI root buses: top-level "PCI Bus" ranges of /proc/iomem. RAM, ECAM ("PCI
// MMCONFIG") and reserved ranges above 4 GiB are not windows. To a plain user every address reads as zero.
func readIOMem(b *builder) {
	const path = "proc/iomem"
	raw, ok := b.read(path)
	if !ok {
		b.gap(KindIOMem, "%s", b.why(path, "no /proc/iomem in the input"))
		return
	}
	real := false
	for _, line := range strings.Split(string(raw), "\n") {
		m := iomemLine.FindStringSubmatch(strings.TrimRight(line, "\r "))
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "00000000-00000000") && strings.Contains(line, " : ") {
			real = true
		}
		if m == nil || strings.HasPrefix(line, " ") {
			continue
		}
		start, err1 := strconv.ParseUint(m[1], 16, 64)
		end, err2 := strconv.ParseUint(m[2], 16, 64)
		if err1 == nil && err2 == nil && end > start && len(b.host.Windows) < maxWindows {
			b.host.Windows = append(b.host.Windows, Window{Bus: m[3], Start: start, End: end, Source: "file:" + path})
		}
	}
	if !real {
		b.gap(KindIOMem, "proc/iomem shows zero addresses without root")
	}
}

// maxWindows bounds the windows kept; two sockets have some dozens of root buses with up to five windows each.
const maxWindows = 1024

// logWindows takes the same windows from the boot messages; they also say whether the boot was seen at all.
func (b *builder) logWindows(line, src string) {
	m := rootWindow.FindStringSubmatch(line)
	if m == nil || len(b.host.Windows) >= maxWindows {
		return
	}
	start, err1 := strconv.ParseUint(m[2], 16, 64)
	end, err2 := strconv.ParseUint(m[3], 16, 64)
	if err1 != nil || err2 != nil {
		return
	}
	for _, w := range b.host.Windows {
		if w.Start == start && w.End == end {
			return
		}
	}
	b.host.Windows = append(b.host.Windows, Window{Bus: m[1], Start: start, End: end, Source: src})
}
