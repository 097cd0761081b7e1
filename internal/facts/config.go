package facts

import "encoding/binary"

// Config is what PCI configuration space says of a function. Zero pointers: capability absent, or out of the bytes
// that were readable. Layouts: PCI Local Bus 3.0 chapter 6, PCI Express Base 5.0 chapter 7.
type Config struct {
	Extended bool // more than 256 bytes were read, and the extended list starts
	PortType string
	LnkCap   *LinkWord
	LnkSta   *LinkWord
	Presence *bool   // SltSta Presence Detect State, of a port with a slot
	ACS      *int    // ACS control word
	AERUncor *int    // uncorrectable error status of capability 0001h
	AERCor   *int    // correctable error status
	ReBAR1   []int64 // sizes offered for the aperture BAR, MiB; nil: no capability
	ReBARCur int64   // MiB
	Dead     bool    // all ones: the device does not answer
}

// LinkWord is speed (GT/s, 0 unknown) and width (lanes).
type LinkWord struct {
	Speed float64
	Width int
}

var speeds = map[uint32]float64{1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}

var portTypes = map[uint16]string{
	0: "endpoint", 1: "legacy-endpoint", 4: "root", 5: "upstream", 6: "downstream", 7: "pcie-to-pci", 8: "pci-to-pcie", 9: "rc-endpoint", 10: "rc-event",
}

const (
	capPCIe   = 0x10
	extAER    = 0x0001
	extACS    = 0x000d
	extReBAR  = 0x0015
	maxHops   = 64 // a sane list has fewer; a loop in a broken image ends here
	extStart  = 0x100
	statusCap = 0x10
)

// ParseConfig decodes configuration space, 64 to 4096 bytes of it. Short or broken images give what they hold.
func ParseConfig(c []byte) Config {
	var out Config
	if len(c) < 64 {
		return out
	}
	if binary.LittleEndian.Uint32(c) == 0xffffffff {
		out.Dead = true
		return out
	}
	if le16(c, 6)&statusCap != 0 {
		parseCapabilities(c, &out)
	}
	if len(c) > extStart+4 {
		if h := le32(c, extStart); h != 0 && h != 0xffffffff {
			out.Extended = true
			parseExtended(c, &out)
		}
	}
	return out
}

func parseCapabilities(c []byte, out *Config) {
	at := int(c[0x34]) &^ 3
	for hop := 0; hop < maxHops && at >= 0x40 && at+2 <= len(c) && at < 256; hop++ {
		if c[at] == capPCIe {
			parseExpress(c, at, out)
		}
		at = int(c[at+1]) &^ 3
	}
}

func parseExpress(c []byte, at int, out *Config) {
	if at+0x14 > len(c) {
		return
	}
	flags := le16(c, at+2)
	out.PortType = portTypes[flags>>4&0xf]
	lnkcap, lnksta := le32(c, at+0x0c), le16(c, at+0x12)
	out.LnkCap = &LinkWord{Speed: speeds[lnkcap&0xf], Width: int(lnkcap >> 4 & 0x3f)}
	out.LnkSta = &LinkWord{Speed: speeds[uint32(lnksta&0xf)], Width: int(lnksta >> 4 & 0x3f)}
	if flags&0x100 != 0 && at+0x1c <= len(c) { // slot implemented
		p := le16(c, at+0x1a)&0x40 != 0
		out.Presence = &p
	}
}

func parseExtended(c []byte, out *Config) {
	at := extStart
	for hop := 0; hop < maxHops && at >= extStart && at+8 <= len(c); hop++ {
		h := le32(c, at)
		switch h & 0xffff {
		case extAER: // PCIe Base 7.8.4: uncorrectable status at 4, correctable status at 10h
			if at+0x14 <= len(c) {
				u, k := int(le32(c, at+4)), int(le32(c, at+0x10))
				out.AERUncor, out.AERCor = &u, &k
			}
		case extACS:
			v := int(le16(c, at+6))
			out.ACS = &v
		case extReBAR:
			parseReBAR(c, at, out)
		}
		at = int(h >> 20 &^ 3)
	}
}

// parseReBAR reads capability 0015h (PCIe Base 7.8.6): pairs of capability (sizes in bits 31:4, bit 4 = 1 MiB) and
// control (BAR index 2:0, count 7:5, current size 13:8). The aperture is BAR1, or BAR2 where BAR0 is 64-bit.
func parseReBAR(c []byte, at int, out *Config) {
	if at+12 > len(c) {
		return
	}
	count := int(le32(c, at+8) >> 5 & 7)
	for i := 0; i < count && at+12+8*i <= len(c); i++ {
		capWord, ctl := le32(c, at+4+8*i), le32(c, at+8+8*i)
		if bar := ctl & 7; bar != 1 && bar != 2 {
			continue
		}
		mask := uint64(capWord>>4) | uint64(ctl>>16)<<28 // larger sizes (128 TB up) sit in the control word
		out.ReBAR1 = sizesOfMask(mask)
		out.ReBARCur = 1 << (ctl >> 8 & 0x3f)
	}
}

func le16(c []byte, at int) uint16 {
	if at+2 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint16(c[at:])
}

func le32(c []byte, at int) uint32 {
	if at+4 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint32(c[at:])
}

// readConfig adds to the devices what only configuration space tells. 64 bytes (all that a user may read) end
// before the capability list, so they tell nothing.
func readConfig(b *builder) {
	whole := 0
	for i := range b.host.PCI {
		d := &b.host.PCI[i]
		path := pciDevices + d.BDF + "/config"
		raw, ok := b.read(path)
		if !ok {
			continue
		}
		cfg := ParseConfig(raw)
		if len(raw) > 64 {
			whole++
		}
		d.applyConfig(cfg, "sysfs:"+path)
		for k := range b.host.Cards {
			if b.host.Cards[k].BDF == d.BDF {
				b.host.Cards[k].applyCardConfig(cfg, *d, "sysfs:"+path)
			}
		}
	}
	if whole == 0 {
		b.gap(KindConfig, "PCI configuration space beyond 64 bytes needs root")
	}
}

func (d *Device) applyConfig(cfg Config, src string) {
	if cfg.Dead {
		d.Link.Broken = Of(true, src)
		return
	}
	if cfg.PortType != "" {
		d.PortType = Of(cfg.PortType, src)
	}
	if cfg.Presence != nil {
		d.Presence = Of(*cfg.Presence, src)
	}
	if cfg.ACS != nil {
		d.ACS = Of(*cfg.ACS, src)
	}
	if cfg.Extended {
		d.Extended = Of(true, src)
	}
	if cfg.AERCor != nil {
		d.AER.Uncorrectable, d.AER.Correctable = Of(*cfg.AERUncor, src+"#UESta"), Of(*cfg.AERCor, src+"#CESta")
	}
	// Kernels before 4.13 have no link attributes in sysfs; the registers say the same.
	if cfg.LnkCap != nil && cfg.LnkCap.Width > 0 {
		d.Link.MaxWidth = First(d.Link.MaxWidth, Of(cfg.LnkCap.Width, src+"#LnkCap"))
		d.Link.MaxSpeed = First(d.Link.MaxSpeed, known(cfg.LnkCap.Speed, src+"#LnkCap"))
	}
	if cfg.LnkSta != nil && cfg.LnkSta.Width > 0 {
		d.Link.Width = First(d.Link.Width, Of(cfg.LnkSta.Width, src+"#LnkSta"))
		d.Link.Speed = First(d.Link.Speed, known(cfg.LnkSta.Speed, src+"#LnkSta"))
	}
}

func (c *Card) applyCardConfig(cfg Config, d Device, src string) {
	c.Device.Link, c.Device.PortType, c.Device.ACS, c.Device.AER, c.Device.Extended = d.Link, d.PortType, d.ACS, d.AER, d.Extended
	switch {
	case cfg.ReBAR1 != nil:
		c.ReBARMiB = First(c.ReBARMiB, Of(cfg.ReBAR1, src+"#ReBAR"))
	case cfg.Extended:
		c.ReBARMiB = First(c.ReBARMiB, Of([]int64{}, src+"#no-ReBAR"))
	}
}

// known is a fact unless the value is zero.
func known[T comparable](v T, src string) Fact[T] {
	var zero T
	if v == zero {
		return Fact[T]{}
	}
	return Of(v, src)
}
