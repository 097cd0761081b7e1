package facts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// logRule turns a kernel line into an event. The first group named "bdf" is the device, "code" a number.
type logRule struct {
	kind   string
	needle string // a word of every line that matches; expressions are slow, and a log has many lines
	re     *regexp.Regexp
}

// logRules, most telling first; one line gives at most one event. Wordings of both kernel generations (before and
// after 6.9) and of the NVIDIA driver's kernel interface are listed.
var logRules = []logRule{
	{"xid", "Xid (", regexp.MustCompile(`NVRM: Xid \((?:PCI:)?(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (?P<code>\d+)`)},
	{"off-bus", "fallen off", regexp.MustCompile(`NVRM: (?:GPU (?:at )?(?:PCI:)?(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?.*|.*)fallen off the bus`)},
	{"bar-invalid", "is 0M @", regexp.MustCompile(`NVRM: BAR(?P<code>\d) is 0M @ 0x0 \(PCI:(?P<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})`)},
	{"bar", "[mem ", regexp.MustCompile(`(?:pci|pcieport|nvidia) (?P<bdf>[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): (?:BAR (?P<code>\d+)|bridge window):? ?(?:no space for |can't claim |failed to assign )?\[mem [^]]*\](?:: (?:can't assign; no space|failed to assign|can't claim; no compatible bridge window))?`)},
	{"open-needed", "NVIDIA", regexp.MustCompile(`requires use of the NVIDIA open kernel modules|NVIDIA GPU .* installed in this system (?:is not supported|requires)`)},
	{"api-mismatch", "API mismatch", regexp.MustCompile(`NVRM: API mismatch`)},
	{"not-called", "was not called", regexp.MustCompile(`NVRM: The NVIDIA probe routine was not called for \d+ device`)},
	{"unsigned", "", regexp.MustCompile(`(?i)(Loading of unsigned module is rejected|Key was rejected by service|module verification failed.*nvidia)`)},
	{"init-failed", "failed", regexp.MustCompile(`NVRM: (?:GPU (?P<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.\d: )?.*(?:RmInitAdapter failed|rm_init_adapter failed)`)},
	{"none-initialized", "None of the NVIDIA", regexp.MustCompile(`NVRM: None of the NVIDIA (?:graphics adapters|devices) were initialized`)},
	// Of AER, only the line of the function that had the error counts; the root port's report of it names another.
	{"aer-fatal", "PCIe Bus Error", regexp.MustCompile(bdfOf + `PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)`)},
	{"aer-nonfatal", "PCIe Bus Error", regexp.MustCompile(bdfOf + `PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\)`)},
	{"aer", "PCIe Bus Error", regexp.MustCompile(bdfOf + `PCIe Bus Error: severity=Correct(?:ed|able)`)},
	{"iommu-fault", "IO_PAGE_FAULT", regexp.MustCompile(`(?:\b(?P<bdf>[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): )?AMD-Vi: .*IO_PAGE_FAULT(?: device=(?P<bdf2>(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d))?`)},
	{"iommu-fault", "DMAR: ", regexp.MustCompile(`DMAR: .*[Rr]equest device \[(?:0x)?(?P<bdf>[0-9a-f]{2}:(?:0x)?[0-9a-f]{2}\.\d)\].*fault`)},
}

// logNeedles are words of which every line that a rule matches holds one: a boot log has thousands of others, and
// expressions are slow.
var logNeedles = []string{"NVRM", "NVIDIA", "BAR ", "bridge window", "odule", "rejected", "PCIe Bus Error", "AMD-Vi", "DMAR"}

// bdfOf is the address of the function that a kernel line is about.
const bdfOf = `\b(?P<bdf>[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): `

var namedGPU = regexp.MustCompile(`NVRM: The NVIDIA GPU ([0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)`)

// Bounds of what is kept of one log: events in all, and events that say the same of the same device. A flood of
// one message must not push out the one that matters.
const (
	logLimit   = 4096
	logRepeats = 16
	lineLimit  = 4096 // bytes of a line that are looked at
)

// readKernelLog reads dmesg, and the journal where it was given (a host gives it only where dmesg is restricted). What
// the first says is not counted again where the second repeats it.
func readKernelLog(b *builder) {
	for _, path := range []string{"cmd/dmesg.txt", "cmd/journal.txt"} {
		// A log cut at its size limit is a tail, and a tail is still worth reading.
		raw, ok := b.snap.Files[path]
		if it, seen := b.items[path]; seen && it.Status != StatusOK && it.Status != StatusTruncated {
			continue
		}
		if !ok || len(strings.TrimSpace(string(raw))) == 0 {
			continue
		}
		text, earlier := lastBoot(string(raw))
		b.earlierBoots(earlier, source(path))
		switch {
		case b.snap.Manifest.Tool == dumpsTool && !wholeLog(text):
			b.gap(KindLog, "the kernel's log in the input is an excerpt: that nothing more happened is not in it")
		case b.snap.Manifest.Cut != "" && b.items[path].Status == StatusTruncated:
			// The stream ended within it: this is its head, and what broke last is not in it.
		default:
			b.host.Log.Read = First(b.host.Log.Read, Of(true, source(path)))
			b.host.Log.Since = First(b.host.Log.Since, firstStamp(text, source(path)))
		}
		b.logEvents(text, source(path))
		b.logOwners(text, source(path))
	}
	if b.host.Log.Read.Known() {
		b.filled(KindLog)
	} else {
		b.gap(KindLog, "%s", b.why("cmd/dmesg.txt", "no kernel log in the input"))
	}
}

func (b *builder) logEvents(text, src string) {
	seen, before := map[string]int{}, map[string]bool{}
	for _, e := range b.host.Log.Events {
		before[message(e)] = true
	}
	named, namedAt := "", 0 // the driver splits "The NVIDIA GPU BDF … has / fallen off the bus" over three lines
	for n, line := range strings.Split(text, "\n") {
		line = line[:min(len(line), lineLimit)]
		b.logWindows(line, src)
		if m := namedGPU.FindStringSubmatch(line); m != nil {
			named, namedAt = m[1], n
		}
		ev, ok := logEvent(line)
		if !ok || len(b.host.Log.Events) >= logLimit {
			continue
		}
		if ev.Kind == "off-bus" && ev.BDF == "" && n-namedAt <= 3 {
			ev.BDF = named
		}
		key := eventKey(ev)
		if seen[key]++; seen[key] > logRepeats || before[message(ev)] {
			continue
		}
		ev.Source = src + ":" + strconv.Itoa(n+1)
		b.host.Log.Events = append(b.host.Log.Events, ev)
	}
	b.cancelAssigned(text, src)
}

// message is an event without the time and the host that a log puts in front.
func message(e LogEvent) string {
	if i := strings.Index(e.Text, "NVRM:"); i >= 0 {
		return e.Text[i:]
	}
	if i := strings.Index(e.Text, e.BDF); i >= 0 {
		return e.Kind + " " + e.Text[i:]
	}
	return e.Text
}

func logEvent(line string) (LogEvent, bool) {
	if !slices.ContainsFunc(logNeedles, func(n string) bool { return strings.Contains(line, n) }) {
		return LogEvent{}, false
	}
	for _, r := range logRules {
		if !strings.Contains(line, r.needle) {
			continue
		}
		m := r.re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		ev := LogEvent{Kind: r.kind, Text: strings.TrimSpace(line)}
		for i, name := range r.re.SubexpNames() {
			switch {
			case m[i] == "":
			case strings.HasPrefix(name, "bdf"):
				ev.BDF = wholeBDF(strings.ToLower(m[i]))
			case name == "code":
				ev.Code, _ = strconv.Atoi(m[i])
			}
		}
		if ev.Kind == "bar" && !unassignedBAR(ev) {
			return LogEvent{}, false
		}
		return ev, true
	}
	return LogEvent{}, false
}

// wholeBDF completes what a line left out: NVRM prints no function, the IOMMU drivers may print no domain.
func wholeBDF(s string) string {
	s = strings.ReplaceAll(s, "0x", "")
	if domain, rest, ok := strings.Cut(s, ":"); ok && strings.Count(s, ":") == 2 {
		s = lspciBDF(domain, rest)
	} else {
		s = "0000:" + s
	}
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// unassignedBAR keeps only failures of memory BARs 0 to 5 and of bridge windows (13 to 15 in older wording). I/O
// windows, ROMs (6) and SR-IOV BARs (7 to 12) fail on healthy machines.
func unassignedBAR(ev LogEvent) bool {
	failed := strings.Contains(ev.Text, "no space") || strings.Contains(ev.Text, "failed to assign") || strings.Contains(ev.Text, "can't claim")
	return failed && !strings.Contains(ev.Text, "VF BAR") && (ev.Code <= 5 || ev.Code == 14 || ev.Code == 15)
}

var barAssigned = regexp.MustCompile(`(?:pci|pcieport|nvidia) ([0-9a-f:.]+): BAR (\d+):? (?:assigned \[mem|\[mem [^]]*\]: assigned)`)

// cancelAssigned drops BAR failures that a later attempt of the kernel mended.
func (b *builder) cancelAssigned(text, src string) {
	lastOK := map[string]int{}
	for n, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, "BAR ") {
			continue
		}
		if m := barAssigned.FindStringSubmatch(line); m != nil {
			lastOK[m[1]+"#"+m[2]] = n + 1
		}
	}
	kept := b.host.Log.Events[:0]
	for _, ev := range b.host.Log.Events {
		if ev.Kind == "bar" && strings.HasPrefix(ev.Source, src+":") {
			at, _ := strconv.Atoi(ev.Source[strings.LastIndexByte(ev.Source, ':')+1:])
			if lastOK[ev.BDF+"#"+strconv.Itoa(ev.Code)] > at {
				continue
			}
		}
		kept = append(kept, ev)
	}
	b.host.Log.Events = kept
}
