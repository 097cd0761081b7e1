package facts

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"preflight/internal/catalog"
)

// lspciText reads one output of lspci: plain, -n, -nn, -v to -vvv and -x to -xxxx, whole or cut to some lines. What a
// plain user gets ("Capabilities: <access denied>") leaves the facts of capabilities absent.
type lspciText struct {
	file    dumpFile
	cat     *catalog.Catalog
	devices []Device
	rebar   map[string]Fact[[]int64] // by BDF
	bar1    map[string]Fact[int64]   // by BDF: what Resizable BAR says is its size now, MiB
	denied  bool                     // capabilities were withheld
	opened  bool                     // capabilities were shown
	whole   bool                     // the listing begins where the bus does

	at       *lspciBlock
	modules  bool // "Kernel modules:" was printed for this function
	extended bool // an extended capability was printed, with its details
}

// lspciBlock is the function whose lines are being read.
type lspciBlock struct {
	Device
	nextBAR int
	cap     string // heading of the capability whose lines follow
	config  []byte // bytes of -x, in order
	sizes   []int64
	hasBAR  bool // a Resizable BAR capability was named, readable or not
	details bool // lines of -vv: a capability that is not printed is not there
}

// DriverInUse ends the source of a driver that lspci named.
const DriverInUse = "Kernel driver in use"

var (
	lspciHead    = regexp.MustCompile(`^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.*)$`)
	lspciNumeric = regexp.MustCompile(`^(?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})\b`)
	lspciClass   = regexp.MustCompile(` \[([0-9a-f]{4})\]$`)
	lspciIDs     = regexp.MustCompile(`\s*\[([0-9a-f]{4}):([0-9a-f]{4})\]`)
	lspciUnnamed = regexp.MustCompile(`\bDevice ([0-9a-f]{4})\b`)
	lspciTail    = regexp.MustCompile(`\s*\((?:rev [0-9a-f]{2}|prog-if [^)]*|downgraded)\)`)
	lspciProgIf  = regexp.MustCompile(`\(prog-if ([0-9a-f]{2})`)
	lspciMemory  = regexp.MustCompile(`^(?:Region (\d+): )?Memory at (\S+)(?: <[^>]*>)? \(([^,)]*), (non-)?prefetchable\)(.*)$`)
	lspciIO      = regexp.MustCompile(`^(?:Region (\d+): )?I/O ports at (\S+)(.*)$`)
	lspciSize    = regexp.MustCompile(`\[size=(\d+)([KMGT]?)\]`)
	lspciLink    = regexp.MustCompile(`Speed ([\d.]+|unknown)(?:GT/s)?(?: \([a-z]+\))?, Width x(\d+)`)
	lspciBus     = regexp.MustCompile(`^Bus: primary=[0-9a-f]+, secondary=([0-9a-f]+), subordinate=([0-9a-f]+)`)
	lspciCap     = regexp.MustCompile(`^Capabilities: \[([0-9a-f]+)(?: v\d+)?\] (.*)$`)
	lspciExpress = regexp.MustCompile(`^Express (?:\(v\d+\) )?(.*?)(?: \(Slot([+-])\))?(?:, .*)?$`)
	lspciNUMA    = regexp.MustCompile(`NUMA node:? (\d+)`)
	lspciRebar   = regexp.MustCompile(`^BAR (\d): current size: (\S+), supported:(.*)$`)
	lspciHex     = regexp.MustCompile(`^([0-9a-f]{2,3}):((?: [0-9a-f]{2}){1,16})$`)
	lspciFlag    = regexp.MustCompile(`([A-Za-z]+)([+-])`)
)

// lspciPorts are the words of lspci for the kinds of ports that configuration space numbers.
var lspciPorts = map[string]string{
	"Root Port": "root", "Upstream Port": "upstream", "Downstream Port": "downstream", "Endpoint": "endpoint", "Legacy Endpoint": "legacy-endpoint",
	"PCI-Express to PCI/PCI-X Bridge": "pcie-to-pci", "PCI/PCI-X to PCI-Express Bridge": "pci-to-pcie", "Root Complex Integrated Endpoint": "rc-endpoint",
	"Root Complex Event Collector": "rc-event",
}

// Bits of the control word of ACS, and of the status words of Advanced Error Reporting, by lspci's names for them
// (PCI Express Base 5.0, 7.7.8 and 7.8.4; pciutils ls-ecaps.c).
var (
	acsBits           = map[string]int{"SrcValid": 0, "TransBlk": 1, "ReqRedir": 2, "CmpltRedir": 3, "UpstreamFwd": 4, "EgressCtrl": 5, "DirectTrans": 6}
	uncorrectableBits = map[string]int{
		"DLP": 4, "SDES": 5, "TLP": 12, "FCP": 13, "CmpltTO": 14, "CmpltAbrt": 15, "UnxCmplt": 16, "RxOF": 17, "MalfTLP": 18, "ECRC": 19,
		"UnsupReq": 20, "ACSViol": 21, "UncorrIntErr": 22, "BlockedTLP": 23, "AtomicOpBlocked": 24, "TLPBlockedErr": 25, "PoisonTLPBlocked": 26,
	}
	correctableBits = map[string]int{"RxErr": 0, "BadTLP": 6, "BadDLLP": 7, "Rollover": 8, "Timeout": 12, "NonFatalErr": 13, "AdvNonFatalErr": 13, "CorrIntErr": 14, "HeaderOF": 15}
)

// parseLspci reads one text. The catalogue names what lspci printed by name only; it may be nil.
func parseLspci(d dumpFile, cat *catalog.Catalog) *lspciText {
	l := &lspciText{file: d, cat: cat, rebar: map[string]Fact[[]int64]{}, bar1: map[string]Fact[int64]{}}
	for _, line := range d.lines() {
		if m := lspciHead.FindStringSubmatch(line); m != nil {
			l.finish()
			l.begin(m)
			continue
		}
		if l.at != nil {
			l.line(strings.TrimSpace(line))
		}
	}
	l.finish()
	return l
}

// begin opens a function: "BUS CLASS: VENDOR DEVICE (rev)", with numbers, names or both.
func (l *lspciText) begin(m []string) {
	if len(l.devices) >= maxFunctions {
		l.at = nil
		return
	}
	blk := &lspciBlock{Device: Device{BDF: lspciBDF(m[1], m[2])}}
	src := l.file.src("header")
	if strings.Contains(m[3], "(rev ff)") {
		blk.Link.Broken = Of(true, src)
	}
	if n := lspciNumeric.FindStringSubmatch(m[3]); n != nil {
		blk.Class, blk.Vendor, blk.Product = n[1]+"00", n[2], n[3]
	} else {
		l.named(blk, m[3])
	}
	if p := lspciProgIf.FindStringSubmatch(m[3]); p != nil && len(blk.Class) == 6 {
		blk.Class = blk.Class[:4] + p[1]
	}
	if len(l.devices) == 0 && strings.Contains(blk.BDF, ":00:") && (strings.HasPrefix(blk.Class, "0600") || blk.BDF == "0000:00:00.0") {
		l.whole = true
	}
	l.at, l.modules, l.extended = blk, false, false
}

// named reads "VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)".
func (l *lspciText) named(blk *lspciBlock, text string) {
	class, rest, ok := strings.Cut(text, ": ")
	if !ok {
		return
	}
	if c := lspciClass.FindStringSubmatch(class); c != nil {
		blk.Class = c[1] + "00"
	} else if code := classCodes[class]; code != "" {
		blk.Class = code + "00"
	}
	rest = lspciTail.ReplaceAllString(rest, "")
	blk.Vendor, blk.Product = lspciIdentity(rest)
	blk.Label = strings.TrimSpace(lspciIDs.ReplaceAllString(rest, ""))
	if blk.Vendor == "10de" && blk.Product == "" && l.cat != nil {
		blk.Product = cardByName(l.cat, blk.Label)
	}
}

// lspciIdentity takes vendor and device from "[10de:2684]", else from the vendor's name and "Device 2684".
func lspciIdentity(text string) (vendor, device string) {
	if all := lspciIDs.FindAllStringSubmatch(text, -1); len(all) > 0 {
		m := all[len(all)-1]
		return m[1], m[2]
	}
	for _, v := range vendorNames {
		if strings.HasPrefix(text, v.name) {
			vendor = v.id
			break
		}
	}
	if m := lspciUnnamed.FindStringSubmatch(text); m != nil {
		device = m[1]
	}
	return vendor, device
}

// cardByName finds the device id of "AD102 [GeForce RTX 4090]" when one id alone has that name in the catalogue.
func cardByName(cat *catalog.Catalog, label string) string {
	i, j := strings.LastIndexByte(label, '['), strings.LastIndexByte(label, ']')
	if i < 0 || j < i {
		return ""
	}
	want, id := strings.ToLower(label[i+1:j]), ""
	for _, g := range cat.GPUs {
		if strings.ToLower(g.Name) != want {
			continue
		}
		if id != "" && id != g.ID {
			return ""
		}
		id = g.ID
	}
	return id
}

func lspciBDF(domain, rest string) string {
	if domain == "" {
		return "0000:" + rest
	}
	if len(domain) > 4 {
		domain = strings.TrimLeft(domain[:len(domain)-4], "0") + domain[len(domain)-4:]
	}
	return domain + ":" + rest
}

// line reads one line below a header.
func (l *lspciText) line(t string) {
	d := l.at
	switch {
	case t == "":
	case strings.HasPrefix(t, "Subsystem: "):
		d.SubVend, d.SubDev = lspciIdentity(strings.TrimPrefix(t, "Subsystem: "))
	case strings.HasPrefix(t, "Kernel driver in use: "):
		d.Driver = Of(strings.TrimPrefix(t, "Kernel driver in use: "), l.file.src(DriverInUse))
	case strings.HasPrefix(t, "Kernel modules:"):
		l.modules = true
	case strings.HasPrefix(t, "Capabilities: <access denied>"):
		l.denied = true
	case strings.HasPrefix(t, "!!! Unknown header type"):
		d.Link.Broken = Of(true, l.file.src("header type"))
	case strings.HasPrefix(t, "Control: "):
		d.details = true
	default:
		if m := lspciNUMA.FindStringSubmatch(t); m != nil {
			d.NUMA = lspciInt(m[1], 10, l.file.src("NUMA node"))
		}
		if !l.resource(t) {
			l.capability(t)
		}
	}
}

// resource reads BARs and bus numbers.
func (l *lspciText) resource(t string) bool {
	d := l.at
	if m := lspciBus.FindStringSubmatch(t); m != nil {
		d.Second, d.Subord = lspciInt(m[1], 16, l.file.src("Bus")), lspciInt(m[2], 16, l.file.src("Bus"))
		return true
	}
	if m := lspciMemory.FindStringSubmatch(t); m != nil && d.cap == "" { // below a capability they are those of virtual functions
		bar := BAR{Index: d.barIndex(m[1]), Mem: true, Mem64: m[3] == "64-bit", Prefetch: m[4] == "", Size: lspciBytes(m[5])}
		bar.Source = l.file.src("Region " + strconv.Itoa(bar.Index))
		start, err := strconv.ParseUint(m[2], 16, 64)
		bar.Start, bar.Unassigned = start, err != nil
		d.nextBAR = bar.Index + 1
		if bar.Mem64 {
			d.nextBAR++
		}
		d.BARs = append(d.BARs, bar)
		return true
	}
	if m := lspciIO.FindStringSubmatch(t); m != nil && d.cap == "" {
		bar := BAR{Index: d.barIndex(m[1]), Size: lspciBytes(m[3])}
		bar.Start, _ = strconv.ParseUint(m[2], 16, 64)
		bar.Source = l.file.src("Region " + strconv.Itoa(bar.Index))
		d.nextBAR = bar.Index + 1
		d.BARs = append(d.BARs, bar)
		return true
	}
	if m := lspciHex.FindStringSubmatch(t); m != nil {
		l.hexLine(m[1], m[2])
		return true
	}
	return false
}

// barIndex is the printed number of a region; -v prints none, and then regions follow each other.
func (d *lspciBlock) barIndex(printed string) int {
	if n, err := strconv.Atoi(printed); err == nil {
		return n
	}
	return d.nextBAR
}

// hexLine collects the bytes of -x. A line that does not follow on ends the usable image.
func (l *lspciText) hexLine(offset, bytes string) {
	at, err := strconv.ParseInt(offset, 16, 32)
	if err != nil || int(at) != len(l.at.config) || at >= 4096 {
		return
	}
	for _, h := range strings.Fields(bytes) {
		v, err := strconv.ParseUint(h, 16, 8)
		if err != nil {
			return
		}
		l.at.config = append(l.at.config, byte(v))
	}
}

// lspciBytes reads "[size=32G]".
func lspciBytes(t string) uint64 {
	m := lspciSize.FindStringSubmatch(t)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseUint(m[1], 10, 32)
	if err != nil {
		return 0
	}
	return n << map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
}

func lspciInt(s string, base int, src string) Fact[int] {
	n, err := strconv.ParseInt(s, base, 32)
	if err != nil {
		return Fact[int]{}
	}
	return Of(int(n), src)
}

// lspciMiB reads a size of the Resizable BAR list: "256MB", "32GB", "1TB".
func lspciMiB(s string) (int64, error) {
	for suffix, shift := range map[string]int{"MB": 0, "GB": 10, "TB": 20} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			v, err := strconv.ParseInt(n, 10, 32)
			if err != nil || v <= 0 || v > math.MaxInt32>>1 {
				return 0, fmt.Errorf("size %q", s)
			}
			return v << shift, nil
		}
	}
	return 0, fmt.Errorf("size %q", s)
}

// sortedSizes are the sizes of a list, ascending and once each.
func sortedSizes(list []string) []int64 {
	seen := map[int64]bool{}
	out := []int64{}
	for _, s := range list {
		if v, err := lspciMiB(s); err == nil && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}
