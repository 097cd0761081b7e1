package facts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// dmiText is one record of dmidecode's text: its title and its first-level "Key: value" lines.
type dmiText struct {
	title  string
	fields map[string]string
}

// dmiReaders say what each kind of record gives, under dmidecode's titles; the numbers are SMBIOS types. Offsets and
// meanings are those of the binary reader (smbios.go).
var dmiReaders = map[string]func(*builder, dmiText, string){
	"BIOS Information":        dmiBIOS,    // 0
	"System Information":      dmiSystem,  // 1
	"Base Board Information":  dmiBoard,   // 2
	"Chassis Information":     dmiChassis, // 3
	"Processor Information":   dmiSocket,  // 4
	"System Slot Information": dmiSlot,    // 9
	"Physical Memory Array":   dmiArray,   // 16
	"Memory Device":           dmiDIMM,    // 17
	"System Power Supply":     dmiPSU,     // 39
}

// dmiDetail are the records without which slots, memory and supplies stay unknown.
var dmiDetail = map[string]bool{"Processor Information": true, "System Slot Information": true, "Physical Memory Array": true, "Memory Device": true, "System Power Supply": true}

var dmiDenied = regexp.MustCompile(`(?i)permission denied|can't read memory from /dev/mem|/dev/mem: |operation not permitted`)

// parseDMI splits dmidecode's text into records, with or without "Handle" lines (-q), indented by tabs, spaces, or, in a
// careless paste, not at all.
func parseDMI(d dumpFile) []dmiText {
	var out []dmiText
	at := -1
	for _, line := range d.lines() {
		t := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(t, "Handle 0x"):
			at = -1
			continue
		case dmiReaders[t] != nil && len(out) < smbiosLimit:
			out = append(out, dmiText{title: t, fields: map[string]string{}})
			at = len(out) - 1
			continue
		case t == "":
			at = -1
			continue
		}
		if k, v, ok := strings.Cut(t, ":"); ok && at >= 0 {
			if _, twice := out[at].fields[k]; !twice {
				out[at].fields[k] = strings.TrimSpace(v)
			}
		}
	}
	return out
}

// readDMIText adds what dmidecode's text says, where the table itself is not in the input.
func readDMIText(b *builder) {
	for _, d := range b.dumps(dumpDMI) {
		records := parseDMI(d)
		if len(records) == 0 {
			if _, missing := b.host.Gaps[KindSMBIOS]; missing && dmiDenied.MatchString(d.text) {
				b.regap(KindSMBIOS, "%s: dmidecode was run without root", d.name)
			}
			continue
		}
		s := b.side()
		detail := false
		count := map[string]int{}
		for _, r := range records {
			dmiReaders[r.title](s, r, d.src(fmt.Sprintf("%s#%d", r.title, count[r.title])))
			count[r.title]++
			detail = detail || dmiDetail[r.title]
		}
		if dmiCut(d, records) {
			s.host.Memory.DIMMs = nil
		}
		s.sumDIMMs()
		if s.host.Memory.InstalledMiB.Known() {
			s.host.Memory.InstalledMiB.Source = d.src("Memory Device")
		}
		s.dropSharedSlotAddresses()
		b.joinDMI(s.host)
		if detail {
			b.filled(KindSMBIOS)
		}
		if s.host.Board.Name.Known() || s.host.Board.Product.Known() {
			b.filled(KindDMI)
		}
		if s.host.CPU.Model.Known() {
			b.filled(KindCPU)
		}
	}
}

// dmiCut says whether the list of memory modules lacks some that the board has: fewer records than the arrays have
// places, and no end of the table. What is installed is not known then.
func dmiCut(d dumpFile, records []dmiText) bool {
	places, listed := 0, 0
	for _, r := range records {
		switch {
		case r.title == "Memory Device":
			listed++
		case r.title == "Physical Memory Array" && r.fields["Use"] == "System Memory":
			n, _ := strconv.Atoi(r.fields["Number Of Devices"])
			places += n
		}
	}
	return listed < places && !strings.Contains(d.text, "End Of Table")
}

func (b *builder) joinDMI(h *Host) {
	b.merge("bios", &b.host.BIOS, &h.BIOS)
	b.merge("board", &b.host.Board, &h.Board)
	// The kernel's own names and counts of processors are the better ones, and firmware spells them otherwise.
	if b.host.CPU.Model.Known() {
		h.CPU = CPU{EmptyCount: h.CPU.EmptyCount}
	}
	b.merge("cpu", &b.host.CPU, &h.CPU)
	b.merge("memory", &b.host.Memory, &h.Memory)
	if len(b.host.Slots) == 0 {
		b.host.Slots = h.Slots
	}
	if len(b.host.PSUs) == 0 {
		b.host.PSUs = h.PSUs
	}
}

// text is a field that somebody filled in.
func (r dmiText) text(key string) string { return realText(r.fields[key]) }

func (r dmiText) fact(key, src string) Fact[string] { return known(r.text(key), src) }

func dmiBIOS(b *builder, r dmiText, src string) {
	b.host.BIOS = BIOS{Vendor: r.fact("Vendor", src), Version: r.fact("Version", src), Date: r.fact("Release Date", src)}
}

func dmiSystem(b *builder, r dmiText, src string) {
	b.host.Board.SystemMaker, b.host.Board.Product = r.fact("Manufacturer", src), r.fact("Product Name", src)
}

// dmiBoard takes the first board; blades and risers follow it in the table.
func dmiBoard(b *builder, r dmiText, src string) {
	if bd := &b.host.Board; !bd.Name.Known() {
		bd.Vendor, bd.Name, bd.Version = r.fact("Manufacturer", src), r.fact("Product Name", src), r.fact("Version", src)
	}
}

// chassisTypes are the codes of SMBIOS type 3 by dmidecode's words (DSP0134 7.4.1).
var chassisTypes = map[string]int{
	"Other": 1, "Desktop": 3, "Low Profile Desktop": 4, "Pizza Box": 5, "Mini Tower": 6, "Tower": 7, "Portable": 8, "Laptop": 9, "Notebook": 10,
	"Hand Held": 11, "Docking Station": 12, "All In One": 13, "Sub Notebook": 14, "Space-saving": 15, "Lunch Box": 16, "Main Server Chassis": 17,
	"Expansion Chassis": 18, "RAID Chassis": 22, "Rack Mount Chassis": 23, "Sealed-case PC": 24, "Multi-system": 25, "Blade": 28, "Blade Enclosing": 29,
	"Tablet": 30, "Convertible": 31, "Detachable": 32, "Mini PC": 35, "Stick PC": 36,
}

func dmiChassis(b *builder, r dmiText, src string) {
	if !b.host.Board.ChassisType.Known() {
		b.host.Board.ChassisType = known(chassisTypes[r.fields["Type"]], src)
	}
}

// dmiSocket counts sockets, empty ones apart; cores are those of all sockets.
func dmiSocket(b *builder, r dmiText, src string) {
	c := &b.host.CPU
	switch status := r.fields["Status"]; {
	case strings.HasPrefix(status, "Unpopulated"):
		c.EmptyCount = Of(c.EmptyCount.Value+1, src)
	case strings.HasPrefix(status, "Populated") && (r.fields["Type"] == "Central Processor" || r.fields["Type"] == ""):
		c.Model = First(c.Model, known(strings.Join(strings.Fields(r.text("Version")), " "), src))
		c.Sockets = Of(c.Sockets.Value+1, src)
		if n, err := strconv.Atoi(r.fields["Core Count"]); err == nil && n > 0 && n < 1<<16 {
			c.Cores = Of(c.Cores.Value+n, src)
		}
		if n, err := strconv.Atoi(r.fields["Thread Count"]); err == nil && n > 0 && n < 1<<16 {
			c.Threads = Of(c.Threads.Value+n, src)
		}
	}
}

var (
	dmiLanes = regexp.MustCompile(`^x(\d+) `)
	dmiPitch = regexp.MustCompile(`^([0-9.]+) mm$`)
	dmiSize  = regexp.MustCompile(`^(\d+) (kB|MB|GB|TB)$`)
	dmiRate  = regexp.MustCompile(`^(\d+) (?:MT/s|MHz)$`)
	dmiWatts = regexp.MustCompile(`^(\d+) W$`)
	dmiDDR   = regexp.MustCompile(`^(?:LP)?DDR[0-9]X?$`)
)

// dmiSlot reads type 9. "x8 PCI Express 3 x16" is a long connector with eight lanes.
func dmiSlot(b *builder, r dmiText, src string) {
	s := Slot{Designation: r.text("Designation"), Source: src}
	if m := dmiLanes.FindStringSubmatch(r.fields["Type"]); m != nil {
		s.Width, _ = strconv.Atoi(m[1])
	}
	switch r.fields["Current Usage"] {
	case "In Use":
		used := true
		s.InUse = &used
	case "Available":
		used := false
		s.InUse = &used
	}
	if id, err := strconv.Atoi(r.fields["ID"]); err == nil && id >= 0 && id < 1<<16 {
		s.ID = id
	}
	if bdf := r.fields["Bus Address"]; bdfPattern.MatchString(bdf) && !strings.HasPrefix(bdf, "ffff:") && !strings.HasPrefix(bdf[5:], "ff:") && bdf != "0000:00:00.0" {
		s.BDF = bdf
	}
	for _, key := range []string{"Pitch", "Slot Pitch"} {
		if m := dmiPitch.FindStringSubmatch(r.fields[key]); m != nil {
			if f, err := strconv.ParseFloat(m[1], 64); err == nil && f > 0 && f < 1000 {
				s.PitchMM = f
			}
		}
	}
	b.host.Slots = append(b.host.Slots, s)
}

func dmiArray(b *builder, r dmiText, src string) {
	if r.fields["Use"] != "System Memory" {
		return
	}
	switch r.fields["Error Correction Type"] {
	case "Single-bit ECC", "Multi-bit ECC":
		b.host.Memory.ECC = Of(true, src)
	case "None", "Parity", "CRC":
		b.host.Memory.ECC = Of(false, src)
	}
}

// dmiDIMM reads type 17. Flash and persistent memory are listed alike and are no RAM.
func dmiDIMM(b *builder, r dmiText, src string) {
	d := DIMM{Locator: r.text("Locator"), Bank: r.text("Bank Locator"), Source: src}
	switch r.fields["Type"] {
	case "ROM", "Flash", "Logical non-volatile device":
		return
	}
	tech := r.fields["Memory Technology"]
	if strings.HasPrefix(tech, "NVDIMM") || strings.Contains(tech, "persistent memory") {
		return
	}
	if m := dmiSize.FindStringSubmatch(r.fields["Size"]); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 32)
		if err == nil {
			d.SizeMiB = n << map[string]int{"MB": 0, "GB": 10, "TB": 20}[m[2]]
		}
		if m[2] == "kB" {
			d.SizeMiB = n >> 10
		}
	}
	if kind := r.fields["Type"]; dmiDDR.MatchString(kind) {
		d.Kind = kind
	}
	for _, key := range []string{"Configured Memory Speed", "Configured Clock Speed", "Speed"} {
		if m := dmiRate.FindStringSubmatch(r.fields[key]); m != nil && d.MTs == 0 {
			d.MTs, _ = strconv.Atoi(m[1])
		}
	}
	b.host.Memory.DIMMs = append(b.host.Memory.DIMMs, d)
}

// dmiPSU reads type 39; a record without a capacity says nothing.
func dmiPSU(b *builder, r dmiText, src string) {
	m := dmiWatts.FindStringSubmatch(r.fields["Max Power Capacity"])
	if m == nil {
		return
	}
	w, err := strconv.Atoi(m[1])
	if err != nil || w == 0 || w > 1<<16 {
		return
	}
	b.host.PSUs = append(b.host.PSUs, PSU{
		Name: firstNonEmpty(r.text("Name"), r.text("Model Part Number")), Watts: w, Present: strings.HasPrefix(r.fields["Status"], "Present"), Source: src,
	})
}
