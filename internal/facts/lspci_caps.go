package facts

import (
	"strconv"
	"strings"
)

// capability reads the heading of a capability, and the lines below the ones that matter.
func (l *lspciText) capability(t string) {
	d := l.at
	if m := lspciCap.FindStringSubmatch(t); m != nil {
		l.opened = true
		d.cap = m[2]
		if len(m[1]) >= 3 { // extended capabilities begin at 100h
			l.extended = true
		}
		if strings.Contains(d.cap, "Resizable BAR") && !strings.HasPrefix(d.cap, "Virtual") || strings.HasPrefix(d.cap, "#15") {
			d.hasBAR = true
		}
		l.express(d.cap)
		return
	}
	name, rest, _ := strings.Cut(t, ":")
	src := l.file.src(name)
	switch name {
	case "LnkCap":
		d.Link.MaxWidth, d.Link.MaxSpeed = lspciLinkOf(rest, src)
	case "LnkSta":
		d.Link.Width, d.Link.Speed = lspciLinkOf(rest, src)
		if strings.Contains(rest, "Width x63") {
			d.Link.Broken = Of(true, src)
			d.Link.Speed = Fact[float64]{}
		}
	case "SltSta":
		if flags, ok := lspciFlags(rest)["PresDet"]; ok {
			d.Presence = Of(flags, src)
		}
	case "ACSCtl":
		d.ACS = lspciWord(rest, acsBits, src)
	case "UESta":
		d.AER.Uncorrectable = lspciWord(rest, uncorrectableBits, src)
	case "CESta":
		d.AER.Correctable = lspciWord(rest, correctableBits, src)
	default:
		l.resizable(t)
	}
}

func (l *lspciText) express(heading string) {
	m := lspciExpress.FindStringSubmatch(heading)
	if m == nil || lspciPorts[m[1]] == "" {
		return
	}
	l.at.PortType = Of(lspciPorts[m[1]], l.file.src("Express"))
}

// lspciLinkOf reads "Port #0, Speed 16GT/s, Width x16, ASPM L1 …". Width 63 and unknown speeds are absent.
func lspciLinkOf(rest, src string) (width Fact[int], speed Fact[float64]) {
	m := lspciLink.FindStringSubmatch(rest)
	if m == nil {
		return width, speed
	}
	if w, err := strconv.Atoi(m[2]); err == nil && w < 63 {
		width = Of(w, src)
	}
	if f, err := strconv.ParseFloat(m[1], 64); err == nil && f > 0 && f < 1000 {
		speed = Of(f, src)
	}
	return width, speed
}

// lspciFlags are the words of a register with their sign.
func lspciFlags(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range lspciFlag.FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2] == "+"
	}
	return out
}

// lspciWord puts a register together again from its words; absent when none of them is there.
func lspciWord(text string, bits map[string]int, src string) Fact[int] {
	word, seen := 0, false
	for name, on := range lspciFlags(text) {
		bit, ok := bits[name]
		seen = seen || ok
		if ok && on {
			word |= 1 << bit
		}
	}
	if !seen {
		return Fact[int]{}
	}
	return Of(word, src)
}

// resizable reads "BAR 1: current size: 256MB, supported: 64MB … 32GB" below a physical Resizable BAR capability. The
// aperture is BAR1, or BAR2 where BAR0 is 64-bit.
func (l *lspciText) resizable(t string) {
	d := l.at
	m := lspciRebar.FindStringSubmatch(t)
	if m == nil || strings.HasPrefix(d.cap, "Virtual") || m[1] != "1" && m[1] != "2" || d.sizes != nil {
		return
	}
	d.hasBAR = true
	d.sizes = sortedSizes(strings.Fields(m[3]))
	if now, err := lspciMiB(m[2]); err == nil {
		l.bar1[d.BDF] = Of(now, l.file.src("Resizable BAR, current size"))
	}
}

// finish closes the function that was open.
func (l *lspciText) finish() {
	d := l.at
	if d == nil {
		return
	}
	l.at = nil
	if l.modules && !d.Driver.Known() {
		d.Driver = Of("", l.file.src("Kernel modules"))
	}
	switch {
	case len(d.sizes) > 0:
		l.rebar[d.BDF] = Of(d.sizes, l.file.src("Resizable BAR"))
	case l.extended && d.details && !d.hasBAR:
		l.rebar[d.BDF] = Of([]int64{}, l.file.src("no Resizable BAR"))
	}
	if len(d.config) >= 64 {
		l.image(d)
	}
	l.devices = append(l.devices, d.Device)
}

// image reads the bytes of -x as configuration space; they also name what the header printed by name only.
func (l *lspciText) image(d *lspciBlock) {
	src := l.file.src("config")
	cfg := ParseConfig(d.config)
	d.applyConfig(cfg, src)
	if len(d.config) > 64 {
		l.opened = true
	}
	if cfg.Dead {
		return
	}
	hex := func(v uint16) string { return strconv.FormatUint(uint64(v)|1<<16, 16)[1:] }
	d.Vendor, d.Product = firstNonEmpty(d.Vendor, hex(le16(d.config, 0))), firstNonEmpty(d.Product, hex(le16(d.config, 2)))
	if d.config[0x0e]&0x7f == 0 { // header of an endpoint
		d.SubVend, d.SubDev = firstNonEmpty(d.SubVend, hex(le16(d.config, 0x2c))), firstNonEmpty(d.SubDev, hex(le16(d.config, 0x2e)))
	}
	if d.Class == "" {
		d.Class = strconv.FormatUint(uint64(le32(d.config, 8)>>8)|1<<24, 16)[1:]
	}
	if d.config[0x0e]&0x7f == 1 && !d.Second.Known() { // header of a bridge
		d.Second, d.Subord = Of(int(d.config[0x19]), src), Of(int(d.config[0x1a]), src)
	}
	if _, known := l.rebar[d.BDF]; known {
		return
	}
	switch {
	case cfg.ReBAR1 != nil:
		l.rebar[d.BDF] = Of(cfg.ReBAR1, src+"#ReBAR")
	case cfg.Extended && len(d.config) == 4096:
		l.rebar[d.BDF] = Of([]int64{}, src+"#no-ReBAR")
	}
}
