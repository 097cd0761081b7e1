package rigsim

import (
	"encoding/binary"
	"strconv"
)

// image is a configuration space of 4096 bytes.
type image []byte

func (c image) b8(at int, v int)     { c[at] = byte(v) }
func (c image) w16(at int, v int)    { binary.LittleEndian.PutUint16(c[at:], uint16(v)) }
func (c image) d32(at int, v uint32) { binary.LittleEndian.PutUint32(c[at:], v) }

func hexInt(s string) int {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		panic("rigsim: not hex: " + s) // a constant of this package is wrong
	}
	return int(n)
}

// Capability offsets as real cards and AMD ports have them.
const (
	atPM, atMSI, atExpress = 0x60, 0x68, 0x78
)

// configOf is what reading a function's whole configuration space gives (PCI Local Bus 3.0, PCI Express Base 5.0).
func configOf(d *device) []byte {
	c := make(image, 4096)
	if d.Dead {
		for i := range c {
			c[i] = 0xff
		}
		return c
	}
	c.w16(0, hexInt(d.Vendor))
	c.w16(2, hexInt(d.Device))
	c.w16(4, 0x0406)
	class := hexInt(d.Class)
	c.b8(8, 0xa1)
	c.b8(9, class&0xff)
	c.b8(10, class>>8&0xff)
	c.b8(11, class>>16)
	c.b8(12, 0x10)
	bridge := d.Class == "060400"
	if bridge {
		c.b8(14, 1)
		c.b8(0x18, hexInt(d.BDF[5:7]))
		c.b8(0x19, d.Second)
		c.b8(0x1a, d.Subord)
	} else {
		putBARs(c, d)
		c.w16(0x2c, hexInt(d.SubVendor))
		c.w16(0x2e, hexInt(d.SubDevice))
	}
	if d.Kind == 0xff {
		return c[:256]
	}
	c.w16(6, 0x0010) // capability list
	c.b8(0x34, atPM)
	c.w16(atPM, 0x01|atMSI<<8)
	c.w16(atPM+2, 0x4803)
	c.w16(atMSI, 0x05|atExpress<<8)
	c.w16(atMSI+2, 0x0081)
	putExpress(c, d)
	putExtended(c, d)
	return c
}

func putBARs(c image, d *device) {
	for _, b := range d.BARs {
		at := 0x10 + 4*b.Index
		bits := uint32(0)
		switch b.Flags {
		case flagIO:
			bits = 1
		case flagMem64Pref:
			bits = 0xc
		case flagMem64:
			bits = 4
		}
		c.d32(at, uint32(b.Start)|bits)
		if bits&4 != 0 && at+4 < 0x28 {
			c.d32(at+4, uint32(b.Start>>32))
		}
	}
}

// putExpress writes the PCI Express capability: link capabilities and status, slot, second link registers.
func putExpress(c image, d *device) {
	flags := 2 | int(d.Kind)<<4
	if d.HasSlot {
		flags |= 0x100
	}
	c.w16(atExpress, 0x10)
	c.w16(atExpress+2, flags)
	c.d32(atExpress+4, 0x10008fe1) // 256-byte payload, role-based errors
	c.w16(atExpress+8, 0x2930)
	c.d32(atExpress+0xc, uint32(d.MaxGen|d.MaxWidth<<4)|0x00453800)
	c.w16(atExpress+0x10, 0x0040)
	c.w16(atExpress+0x12, d.Gen|d.Width<<4|0x1000)
	if d.HasSlot {
		c.d32(atExpress+0x14, 0x0004c000)
		status := 0
		if d.Present {
			status = 0x40
		}
		c.w16(atExpress+0x1a, status)
	}
	c.d32(atExpress+0x24, 0x00000812)
	c.d32(atExpress+0x2c, uint32(1<<(d.MaxGen+1)-2))
	c.w16(atExpress+0x30, d.MaxGen)
}

// ext is one extended capability; fill writes its body.
type ext struct {
	id, version, at int
	fill            func(c image, at int)
}

// putExtended chains the extended capabilities: those of a GPU, or those of a port.
func putExtended(c image, d *device) {
	aer := func(c image, at int) { c.d32(at+0xc, 0x00462030); c.d32(at+0x14, 0x2000); c.d32(at+0x18, 0xa0) }
	var list []ext
	switch {
	case d.Class == "060400" && d.Kind != 7:
		list = []ext{{0x0b, 1, 0x100, nil}, {0x01, 2, 0x150, aer}, {0x19, 1, 0x270, nil}, {0x0d, 1, 0x2a0, func(c image, at int) { c.w16(at+4, 0x5f); c.w16(at+6, d.ACS) }}, {0x1e, 1, 0x370, nil}}
	case d.Vendor == "10de" && len(d.ReBAR) > 0:
		list = []ext{{0x02, 1, 0x100, nil}, {0x04, 1, 0x128, nil}, {0x18, 1, 0x250, nil}, {0x1e, 1, 0x258, nil}, {0x01, 2, 0x420, aer}, {0x0b, 1, 0x600, nil}, {0x19, 1, 0x900, nil}, {0x15, 1, 0xbb0, rebar(d)}}
	default:
		list = []ext{{0x01, 2, 0x100, aer}, {0x19, 1, 0x148, nil}}
	}
	for i, e := range list {
		next := 0
		if i+1 < len(list) {
			next = list[i+1].at
		}
		c.d32(e.at, uint32(e.id|e.version<<16|next<<20))
		if e.fill != nil {
			e.fill(c, e.at)
		}
	}
}

// rebar writes capability 15h: one resizable BAR, number 1. Bit n+4 of the sizes is 2^n MiB.
func rebar(d *device) func(image, int) {
	return func(c image, at int) {
		var sizes uint32
		for _, n := range d.ReBAR {
			sizes |= 1 << (log2(n) + 4)
		}
		current := 8
		for _, b := range d.BARs {
			if b.Index == 1 {
				current = log2(int(b.Size / mib))
			}
		}
		c.d32(at+4, sizes)
		c.d32(at+8, uint32(1|1<<5|current<<8))
	}
}

func log2(n int) int {
	l := 0
	for n > 1 {
		n >>= 1
		l++
	}
	return l
}
