package rigsim

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// dmiTable builds a raw SMBIOS table (DMTF DSP0134, version 3.3).
type dmiTable struct {
	out    []byte
	handle uint16
}

// dmiBody is the formatted area of one record, from offset 4 on, and its strings.
type dmiBody struct {
	data    []byte
	strings []string
}

func (b *dmiBody) u8(v ...int) *dmiBody {
	for _, x := range v {
		b.data = append(b.data, byte(x))
	}
	return b
}

func (b *dmiBody) u16(v int) *dmiBody {
	b.data = binary.LittleEndian.AppendUint16(b.data, uint16(v))
	return b
}

func (b *dmiBody) u32(v uint32) *dmiBody {
	b.data = binary.LittleEndian.AppendUint32(b.data, v)
	return b
}

// str appends the index of a string; an empty one has index 0.
func (b *dmiBody) str(s string) *dmiBody {
	if s == "" {
		return b.u8(0)
	}
	b.strings = append(b.strings, s)
	return b.u8(len(b.strings))
}

func (t *dmiTable) add(kind byte, b *dmiBody) uint16 {
	h := t.handle
	t.handle++
	t.out = append(t.out, kind, byte(4+len(b.data)), byte(h), byte(h>>8))
	t.out = append(t.out, b.data...)
	for _, s := range b.strings {
		t.out = append(append(t.out, s...), 0)
	}
	if len(b.strings) == 0 {
		t.out = append(t.out, 0)
	}
	t.out = append(t.out, 0)
	return h
}

// dmiOf builds the table of a rig: types 0, 1, 2, 3, 4, 9, 16, 17, 39 (servers) and the end marker.
func dmiOf(m *machine) []byte {
	b := m.Board
	t := &dmiTable{}
	t.add(0, (&dmiBody{}).str(b.BIOSVendor).str(b.BIOS).u16(0xf000).str(b.BIOSDate).u8(0xff).u32(0x1b899880).u32(0).u16(0x0d03).u8(5, 22, 255, 255).u16(32))
	sys := (&dmiBody{}).str(b.SysVendor).str(b.Product).str("0123456789").str("S" + strings.ToUpper(m.identity("system", 10)))
	sys.data = append(sys.data, []byte(m.identity("system uuid", 16))...)
	t.add(1, sys.u8(6).str("To be filled by O.E.M.").str("To be filled by O.E.M."))
	t.add(2, (&dmiBody{}).str(b.Vendor).str(b.Name).str(b.Version).str("WM"+strings.ToUpper(m.identity("board", 10))).str("").u8(9).str("").u16(3).u8(10, 0))
	t.add(3, (&dmiBody{}).str(b.SysVendor).u8(int(b.Chassis)).str("").str("C"+strings.ToUpper(m.identity("chassis", 10))).str("").u8(3, 3, 3, 3).u32(0).u8(0, 1, 0, 0).str(""))
	for s := range b.Sockets {
		t.add(4, processor(m, s))
	}
	addSlots(t, m)
	ecc := 3
	if b.Server || m.CPU.Socket == "sTR5" {
		ecc = 6
	}
	array := t.add(16, (&dmiBody{}).u8(3, 3, ecc).u32(0x80000000).u16(0xfffe).u16(b.DIMMs).u32(0).u32(1))
	for i := range b.DIMMs {
		t.add(17, dimm(m, i, array))
	}
	if b.Server && m.Spec.Cards > 4 {
		for i := range m.PSUs {
			t.add(39, (&dmiBody{}).u8(i+1).str(fmt.Sprintf("PSU%d", i+1)).str("PWS-2K22A-1R").str("SUPERMICRO").str("P"+strings.ToUpper(m.identity(fmt.Sprint("psu", i), 12))).
				str("").str("PWS-2K22A-1R").str("1.2").u16(m.Watts).u16(0x11a6|1<<1).u16(0xffff).u16(0xffff).u16(0xffff))
		}
	}
	t.add(127, &dmiBody{})
	return t.out
}

func processor(m *machine, socket int) *dmiBody {
	b := (&dmiBody{}).str(fmt.Sprintf("CPU%d", socket+1)).u8(3, 0x6b).str("Advanced Micro Devices, Inc.").u32(0x00a00f11).u32(0x178bfbff).str(m.CPU.Name)
	b.u8(0x8b).u16(100).u16(m.CPU.MHz+900).u16(m.CPU.MHz).u8(0x41, int(m.CPU.Upgrade)).u16(0xffff).u16(0xffff).u16(0xffff)
	return b.str("Unknown").str("Unknown").str("Unknown").u8(m.Cores, m.Cores, m.Cores*2).u16(0xfc).u16(0x6b).u16(m.Cores).u16(m.Cores).u16(m.Cores * 2)
}

// addSlots writes a type 9 record for every slot of the board, with the address of what it holds.
func addSlots(t *dmiTable, m *machine) {
	for i, p := range m.Board.Ports {
		usage, bus, devfn := 3, 0xff, 0xff
		for _, c := range m.onBus() {
			if m.Switches == 0 && c.Index == i {
				usage = 4
				bus, devfn = hexInt(c.BDF[5:7]), 0
			}
		}
		lanes := map[int]int{4: 10, 8: 11, 16: 13}[p.Width]
		kind := map[int]int{3: 0xb0, 4: 0xb8, 5: 0xc4}[m.CPU.PortGen] // PCI Express Gen N x16
		t.add(9, (&dmiBody{}).str(p.Slot).u8(kind, lanes, usage, 4).u16(i+1).u8(4, 1).u16(0).u8(bus, devfn, lanes, 0))
	}
}

func dimm(m *machine, i int, array uint16) *dmiBody {
	size, speed := 0, 0
	maker, serial, part := "Unknown", "Unknown", "Unknown"
	kind := int(m.Board.DIMMKind)
	if i < m.DIMMsUsed {
		size, speed = m.DIMMGiB*1024, m.Board.DIMMMTs
		maker, serial, part = "Samsung", strings.ToUpper(m.identity(fmt.Sprint("dimm", i), 8)), "M393A4K40DB3-CWE"
	} else {
		kind = 2
	}
	word, extended := size, uint32(0)
	if size >= 0x7fff {
		word, extended = 0x7fff, uint32(size)
	}
	channel, socket, place := m.dimmPlace(i)
	locator := fmt.Sprintf("DIMM_%c%d", 'A'+channel, place+1)
	if m.Board.Sockets > 1 {
		locator = fmt.Sprintf("P%d-DIMM%c%d", socket+1, 'A'+channel, place+1)
	}
	b := (&dmiBody{}).u16(int(array)).u16(0xfffe).u16(72).u16(64).u16(word).u8(9, 0).str(locator).str(fmt.Sprintf("P%d_Node0_Channel%d_Dimm%d", socket, channel, place)).u8(kind)
	return b.u16(0x2080).u16(speed).str(maker).str(serial).str("").str(part).u8(2).u32(extended).u16(speed).u16(1200).u16(1200).u16(1200)
}

// dimmPlace says where the i-th module goes: first one into every channel of a socket, socket by socket.
func (m *machine) dimmPlace(i int) (channel, socket, place int) {
	channels := map[string]int{"AM5": 2}[m.CPU.Socket]
	if channels == 0 {
		channels = 8
	}
	return i % channels, i / channels % m.Board.Sockets, i / channels / m.Board.Sockets
}

// writeDMI writes the table and the strings that the kernel takes from it.
func writeDMI(t *tree, m *machine) {
	b := m.Board
	for name, value := range map[string]string{
		"bios_vendor": b.BIOSVendor, "bios_version": b.BIOS, "bios_date": b.BIOSDate, "bios_release": "5.22", "board_vendor": b.Vendor, "board_name": b.Name, "board_version": b.Version,
		"sys_vendor": b.SysVendor, "product_name": b.Product, "product_version": "0123456789", "product_family": "To be filled by O.E.M.", "product_sku": "To be filled by O.E.M.",
		"chassis_type": fmt.Sprint(b.Chassis), "chassis_vendor": b.SysVendor, "chassis_version": "0123456789",
	} {
		t.file("sys/class/dmi/id/"+name, or(value, "\n"))
	}
	table := dmiOf(m)
	entry := make([]byte, 24)
	copy(entry, "_SM3_")
	entry[6], entry[7], entry[8], entry[10] = 24, 3, 3, 1
	binary.LittleEndian.PutUint32(entry[12:], uint32(len(table)))
	var sum byte
	for _, x := range entry {
		sum += x
	}
	entry[5] = -sum
	mode := t.rootOnly(m)
	t.bytes("sys/firmware/dmi/tables/DMI", table, mode)
	t.bytes("sys/firmware/dmi/tables/smbios_entry_point", entry, mode)
}
