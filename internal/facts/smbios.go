package facts

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// structure is one SMBIOS record: the formatted area with its header, and its strings.
type structure struct {
	kind    byte
	data    []byte // offset 0 is the type byte, as in the specification's tables
	strings []string
}

// smbiosLimit bounds a walk over a hostile table.
const smbiosLimit = 4096

// parseSMBIOS walks a raw table (DMTF DSP0134 section 6.1). It stops at the end marker, or where the table breaks;
// the error then says at which offset. What came before is returned all the same.
func parseSMBIOS(table []byte) ([]structure, error) {
	var out []structure
	at := 0
	for at+4 <= len(table) && len(out) < smbiosLimit {
		length := int(table[at+1])
		if length < 4 || at+length > len(table) {
			return out, fmt.Errorf("SMBIOS structure at offset %d has length %d, %d bytes are left", at, length, len(table)-at)
		}
		s := structure{kind: table[at], data: table[at : at+length]}
		end := at + length
		for end < len(table) && table[end] != 0 {
			stop := end
			for stop < len(table) && table[stop] != 0 {
				stop++
			}
			s.strings = append(s.strings, string(table[end:stop]))
			end = stop + 1
		}
		if len(s.strings) == 0 {
			end++ // a record without strings ends with two NULs
		}
		out = append(out, s)
		if s.kind == 127 {
			return out, nil
		}
		at = end + 1
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("SMBIOS table of %d bytes holds no structure", len(table))
	}
	return out, nil
}

func (s structure) byteAt(off int) (byte, bool) {
	if off >= len(s.data) {
		return 0, false
	}
	return s.data[off], true
}

func (s structure) word(off int) (uint16, bool) {
	if off+2 > len(s.data) {
		return 0, false
	}
	return binary.LittleEndian.Uint16(s.data[off:]), true
}

func (s structure) dword(off int) (uint32, bool) {
	if off+4 > len(s.data) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(s.data[off:]), true
}

// text returns the string that the index byte at off refers to; placeholders of board makers are empty.
func (s structure) text(off int) string {
	i, ok := s.byteAt(off)
	if !ok || i == 0 || int(i) > len(s.strings) {
		return ""
	}
	return realText(s.strings[i-1])
}

// placeholders are what boards print where nobody filled the field in.
var placeholders = map[string]bool{
	"to be filled by o.e.m.": true, "to be filled by o.e.m": true, "default string": true, "system product name": true, "system manufacturer": true,
	"not specified": true, "not applicable": true, "unknown": true, "none": true, "n/a": true, "oem": true, "o.e.m.": true, "x.x": true,
	"system version": true, "no enclosure": true, "no dimm": true, "no module installed": true, "undefined": true, "empty": true,
}

func realText(s string) string {
	s = strings.TrimSpace(s)
	if placeholders[strings.ToLower(s)] || strings.Trim(s, "0 .-") == "" {
		return ""
	}
	return s
}

// readSMBIOS takes slots, DIMMs, supplies and sockets from the raw table.
func readSMBIOS(b *builder) {
	const path = "sys/firmware/dmi/tables/DMI"
	raw, ok := b.read(path)
	if !ok {
		b.gap(KindSMBIOS, "%s", b.why(path, "no SMBIOS table in the input"))
		return
	}
	records, err := parseSMBIOS(raw)
	if err != nil && len(records) == 0 {
		b.gap(KindSMBIOS, "%v", err)
		return
	}
	decoders := map[byte]func(*builder, structure, string){4: addSocket, 9: addSlot, 16: addArray, 17: addDIMM, 39: addPSU}
	count := map[byte]int{}
	for _, r := range records {
		if decode := decoders[r.kind]; decode != nil {
			decode(b, r, fmt.Sprintf("smbios:type%d#%d", r.kind, count[r.kind]))
			count[r.kind]++
		}
	}
	b.sumDIMMs()
	b.dropSharedSlotAddresses()
}

// addSocket counts sockets that hold no processor: status byte 0x18, bit 6 is "populated".
func addSocket(b *builder, r structure, src string) {
	if st, ok := r.byteAt(0x18); ok && st&0x40 == 0 {
		b.host.CPU.EmptyCount = Of(b.host.CPU.EmptyCount.Value+1, src)
	}
}

// addSlot reads type 9. The address names the device in the slot on most servers and the port above on others.
func addSlot(b *builder, r structure, src string) {
	lanes := map[byte]int{8: 1, 9: 2, 10: 4, 11: 8, 12: 12, 13: 16, 14: 32}
	s := Slot{Designation: r.text(4), Source: src}
	if w, ok := r.byteAt(6); ok {
		s.Width = lanes[w]
	}
	if u, ok := r.byteAt(7); ok && (u == 3 || u == 4) {
		inUse := u == 4
		s.InUse = &inUse
	}
	if id, ok := r.word(9); ok {
		s.ID = int(id)
	}
	seg, ok1 := r.word(0x0d)
	bus, ok2 := r.byteAt(0x0f)
	devfn, ok3 := r.byteAt(0x10)
	none := seg == 0xffff || bus == 0xff || (seg == 0 && bus == 0 && devfn == 0)
	if ok1 && ok2 && ok3 && !none {
		s.BDF = fmt.Sprintf("%04x:%02x:%02x.%d", seg, bus, devfn>>3, devfn&7)
	}
	if n, ok := r.byteAt(0x12); ok {
		if pitch, ok := r.word(0x15 + 5*int(n)); ok && pitch > 0 {
			s.PitchMM = float64(pitch) / 100
		}
	}
	b.host.Slots = append(b.host.Slots, s)
}

// dropSharedSlotAddresses removes addresses that several slots claim: such tables name no slot's device.
func (b *builder) dropSharedSlotAddresses() {
	seen := map[string]int{}
	for _, s := range b.host.Slots {
		seen[s.BDF]++
	}
	for i, s := range b.host.Slots {
		if seen[s.BDF] > 2 {
			b.host.Slots[i].BDF = ""
		}
	}
}

// addArray reads the error correction of type 16: 3 none, 5 single-bit, 6 multi-bit.
func addArray(b *builder, r structure, src string) {
	use, _ := r.byteAt(5)
	if ecc, ok := r.byteAt(6); ok && use == 3 && ecc >= 3 {
		b.host.Memory.ECC = Of(ecc == 5 || ecc == 6, src)
	}
}

// addDIMM reads type 17: size word at 0Ch (bit 15: KiB), 7FFFh means the dword at 1Ch in MiB. Flash and persistent
// memory are listed alike and are no RAM.
func addDIMM(b *builder, r structure, src string) {
	kinds := map[byte]string{0x18: "DDR3", 0x1a: "DDR4", 0x1e: "LPDDR4", 0x22: "DDR5", 0x23: "LPDDR5"}
	d := DIMM{Locator: r.text(0x10), Bank: r.text(0x11), Source: src}
	size, ok := r.word(0x0c)
	switch {
	case !ok || size == 0 || size == 0xffff:
	case size == 0x7fff:
		big, _ := r.dword(0x1c)
		d.SizeMiB = int64(big & 0x7fffffff)
	case size&0x8000 != 0:
		d.SizeMiB = int64(size&0x7fff) / 1024
	default:
		d.SizeMiB = int64(size)
	}
	if t, ok := r.byteAt(0x12); ok {
		d.Kind = kinds[t]
		if t == 0x08 || t == 0x09 || t == 0x1f { // ROM, flash, logical non-volatile device
			return
		}
	}
	if tech, ok := r.byteAt(0x28); ok && tech >= 4 && tech <= 7 { // NVDIMM-N, -F, -P, Optane: no RAM
		return
	}
	if mts, ok := r.word(0x20); ok && mts != 0 && mts != 0xffff {
		d.MTs = int(mts)
	} else if mts, ok := r.word(0x15); ok && mts != 0xffff {
		d.MTs = int(mts)
	}
	b.host.Memory.DIMMs = append(b.host.Memory.DIMMs, d)
}

func (b *builder) sumDIMMs() {
	var sum int64
	for _, d := range b.host.Memory.DIMMs {
		sum += d.SizeMiB
	}
	if sum > 0 {
		b.host.Memory.InstalledMiB = Of(sum, "smbios:type17")
	}
}

// addPSU reads type 39; capacity 8000h is unknown, and records without a capacity say nothing.
func addPSU(b *builder, r structure, src string) {
	w, ok := r.word(0x0c)
	if !ok || w == 0 || w == 0x8000 || w == 0xffff {
		return
	}
	ch, _ := r.word(0x0e)
	b.host.PSUs = append(b.host.PSUs, PSU{Name: firstNonEmpty(r.text(6), r.text(0x0a)), Watts: int(w), Present: ch&2 != 0, Source: src})
}
