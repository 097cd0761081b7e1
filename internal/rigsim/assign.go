package rigsim

import "strings"

// Flag bits of sysfs `resource` lines (include/linux/ioport.h), as the kernel prints them for such BARs.
const (
	flagMem32     = 0x40200
	flagMem64Pref = 0x14220c
	flagMem64     = 0x140204
	flagIO        = 0x40101
	flagROM       = 0x46200
	flagUnset     = 0x20000000
	flagBridgeIO  = 0x101
	flagBridgeMem = 0x200
	flagBridge64  = 0x102201
)

const (
	mib = uint64(1) << 20
	kib = uint64(1) << 10
)

// barsOf is what each kind of function asks for.
func (m *machine) barsOf(d *device) []bar {
	switch {
	case d.Physfn != nil:
		return nil
	case strings.HasPrefix(d.Class, "03") && d.Vendor == "10de":
		aperture := uint64(256)
		for _, c := range m.Cards {
			if c.device == d {
				aperture = uint64(c.BAR1MiB)
			}
		}
		return []bar{
			{Index: 0, Size: 16 * mib, Flags: flagMem32},
			{Index: 1, Size: aperture * mib, Flags: flagMem64Pref},
			{Index: 3, Size: 32 * mib, Flags: flagMem64Pref},
			{Index: 5, Size: 128, Flags: flagIO},
		}
	case strings.HasPrefix(d.Class, "0403"):
		return []bar{{Index: 0, Size: 16 * kib, Flags: flagMem32}}
	case d.Block != "":
		return []bar{{Index: 0, Size: 16 * kib, Flags: flagMem64}}
	case d.Net != "":
		return []bar{{Index: 0, Size: 2 * mib, Flags: flagMem64Pref}, {Index: 4, Size: 16 * kib, Flags: flagMem64Pref}}
	case d.Device == "2000" && d.Vendor == "1a03":
		return []bar{{Index: 0, Size: 16 * mib, Flags: flagMem32}, {Index: 1, Size: 128 * kib, Flags: flagMem32}}
	}
	return nil
}

// assign hands out addresses as firmware does: 32-bit BARs below 4 GiB, prefetchable 64-bit ones in a window of the
// root bus above, unless there is none.
func (m *machine) assign() {
	low, io := uint64(0x90000000), uint64(0x1000)
	if m.Low4G {
		low = 0x40000000
	}
	for i, bus := range m.Board.RootBuses {
		high := uint64(0x20000000000) + uint64(i)*0x10000000000
		highStart := high
		low = align(low, 32*mib)
		if m.Low4G && m.hasSmallAperture(bus) {
			low = align(low, 256*mib)
		}
		lowStart := low
		for _, big := range []bool{true, false} { // large BARs first, so that alignment wastes nothing
			for _, d := range m.Devs {
				if d.RootBus != bus {
					continue
				}
				for _, b := range m.barsOf(d) {
					if (b.Size >= 256*mib) != big {
						continue
					}
					switch {
					case m.Low4G && b.Flags == flagMem64Pref && m.starved(d):
						b.Unset = true
					case b.Flags == flagIO:
						b.Start, io = io, io+0x1000
					case b.Flags == flagMem64Pref && !m.Low4G:
						b.Start = align(high, b.Size)
						high = b.Start + b.Size
					default:
						b.Start = align(low, b.Size)
						low = b.Start + b.Size
					}
					d.BARs = append(d.BARs, b)
				}
			}
		}
		m.Windows = append(m.Windows, window{bus, lowStart, max(align(low, 32*mib), lowStart+32*mib) - 1})
		low = m.Windows[len(m.Windows)-1].End + 1
		if !m.Low4G {
			m.Windows = append(m.Windows, window{bus, highStart, highStart + 0x10000000000 - 1})
		}
	}
	for _, d := range m.Devs {
		sortBARs(d.BARs)
	}
}

func align(n, to uint64) uint64 { return (n + to - 1) / to * to }

func sortBARs(b []bar) {
	for i := 1; i < len(b); i++ {
		for j := i; j > 0 && b[j].Index < b[j-1].Index; j-- {
			b[j], b[j-1] = b[j-1], b[j]
		}
	}
}

// starved says whether a card finds no room below 4 GiB: the first half of the cards took it.
func (m *machine) starved(d *device) bool {
	for _, c := range m.Cards {
		if c.device == d {
			return c.Index >= len(m.Cards)/2
		}
	}
	return false
}

func (m *machine) hasSmallAperture(bus int) bool {
	for _, c := range m.Cards {
		if c.RootBus == bus && !m.starved(c.device) {
			return true
		}
	}
	return false
}

// settle works out the links: both ends of one show the same width and speed. An idle card's link rests at Gen1; all
// others run as fast as both ends can.
func (m *machine) settle() {
	for _, d := range m.Devs {
		p := d.Parent
		if p == nil || p.Kind == 5 || d.Physfn != nil || d.Kind == 0xff || d.Kind == 7 && p.Kind == 7 {
			continue
		}
		if !strings.HasSuffix(d.BDF, ".0") && len(m.Devs) > 0 { // further functions share the link of function 0
			first := m.find(d.BDF[:len(d.BDF)-1] + "0")
			if first != nil {
				d.Width, d.Gen, d.LoadGen, d.MaxGen, d.MaxWidth = first.Width, first.Gen, first.LoadGen, first.MaxGen, first.MaxWidth
			}
			continue
		}
		d.Width = or(d.Width, min(p.MaxWidth, d.MaxWidth))
		d.LoadGen = or(d.LoadGen, min(p.MaxGen, d.MaxGen))
		d.Gen = d.LoadGen
		if d.Vendor == "10de" {
			d.Gen = 1
		}
		if d.Dead {
			p.Width, p.Gen, p.LoadGen = 0, 1, 1
			continue
		}
		p.Width, p.Gen, p.LoadGen = d.Width, d.Gen, d.LoadGen
	}
	for _, d := range m.Devs {
		if d.Kind == 4 || d.Kind == 6 {
			d.Gen, d.LoadGen = or(d.Gen, 1), or(d.LoadGen, 1)
		}
	}
}

func (m *machine) find(bdf string) *device {
	for _, d := range m.Devs {
		if d.BDF == bdf {
			return d
		}
	}
	return nil
}

// remove takes a card and its further functions off the bus. Its slot goes on saying that something is plugged in.
func (m *machine) remove(c *card) {
	c.Missing = true
	kept := m.Devs[:0]
	for _, d := range m.Devs {
		if d.Parent != c.Port || d == c.Port {
			kept = append(kept, d)
		}
	}
	m.Devs = kept
}
