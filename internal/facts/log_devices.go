package facts

import (
	"regexp"
	"strconv"
	"strings"
)

// The kernel lists each function as it finds it at boot. Where a log is all there is, that list stands in for lspci.
var (
	logFound  = regexp.MustCompile(`pci (?P<bdf>[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): \[([0-9a-f]{4}):([0-9a-f]{4})\] type \S+ class 0x([0-9a-f]{6})`)
	logBridge = regexp.MustCompile(`pci ([0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): PCI bridge to \[bus ([0-9a-f]{2})(?:-([0-9a-f]{2}))?\]`)
	logNarrow = regexp.MustCompile(`pci ([0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): [\d.]+ Gb/s available PCIe bandwidth, limited by ([\d.]+) GT/s (?:PCIe )?x(\d+) link at ([0-9a-f:.]+) \(capable of [\d.]+ Gb/s with ([\d.]+) GT/s (?:PCIe )?x(\d+) link\)`)
	logNoRoom = regexp.MustCompile(`size (0x[0-9a-f]+)`)
)

// readLogDevices takes cards and the bridges above them from the boot messages, when nothing else lists the bus. It is
// what was there at boot, and only as far as the log goes back.
func readLogDevices(b *builder) {
	if len(b.host.PCI) > 0 {
		return
	}
	j := &pciJoin{b: b, at: map[string]int{}, rebar: map[string][]Fact[[]int64]{}, bar1: map[string][]Fact[int64]{}, narrow: map[string]string{}}
	for _, path := range []string{"cmd/dmesg.txt", "cmd/journal.txt"} {
		src := source(path)
		text, _ := lastBoot(string(b.snap.Files[path]))
		for n, line := range strings.Split(text, "\n") {
			if line = line[:min(len(line), lineLimit)]; strings.Contains(line, "pci ") {
				j.logLine(line, src+":"+strconv.Itoa(n+1))
			}
		}
	}
	if len(b.host.PCI) == 0 {
		return
	}
	for _, ev := range b.host.Log.Events {
		if i, ok := j.at[ev.BDF]; ok && ev.Kind == "bar" && ev.Code <= 5 {
			d := &b.host.PCI[i]
			d.BARs = addUnassigned(d.BARs, ev)
		}
	}
	j.from = "the kernel log"
	b.chains()
	for i := range b.host.PCI {
		if d := &b.host.PCI[i]; len(d.Chain) == 0 && j.narrow[d.BDF] != "" {
			d.Chain = []string{j.narrow[d.BDF]} // the port that limits it is above it for certain; others may be, too
		}
	}
	j.cards()
	j.gaps()
}

func (j *pciJoin) logLine(line, src string) {
	if m := logFound.FindStringSubmatch(line); m != nil {
		j.add(Device{BDF: m[1], Vendor: m[2], Product: m[3], Class: m[4]})
		return
	}
	if m := logBridge.FindStringSubmatch(line); m != nil {
		last := firstNonEmpty(m[3], m[2])
		j.add(Device{BDF: m[1], Class: "060400", Second: lspciInt(m[2], 16, src), Subord: lspciInt(last, 16, src)})
		return
	}
	m := logNarrow.FindStringSubmatch(line)
	if m == nil {
		return
	}
	j.add(Device{BDF: m[1], Link: Link{MaxSpeed: logSpeed(m[5], src), MaxWidth: lspciInt(m[6], 10, src)}})
	// The link that limits is named by the port above it; that port may be any on the way.
	if bdfPattern.MatchString(m[4]) && m[4] != m[1] {
		j.narrow[m[1]] = m[4]
		j.add(Device{BDF: m[4], Class: "060400", Link: Link{Speed: logSpeed(m[2], src), Width: lspciInt(m[3], 10, src)}})
	}
}

func logSpeed(s, src string) Fact[float64] {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 || f >= 1000 {
		return Fact[float64]{}
	}
	return Of(f, src)
}

// addUnassigned notes a BAR that the kernel could not place and did not place later.
func addUnassigned(bars []BAR, ev LogEvent) []BAR {
	for _, b := range bars {
		if b.Index == ev.Code {
			return bars
		}
	}
	bar := BAR{Index: ev.Code, Mem: true, Mem64: strings.Contains(ev.Text, "64bit"), Prefetch: strings.Contains(ev.Text, "pref"), Unassigned: true, Source: ev.Source}
	if m := logNoRoom.FindStringSubmatch(ev.Text); m != nil {
		bar.Size, _ = strconv.ParseUint(m[1], 0, 64)
	}
	return append(bars, bar)
}
