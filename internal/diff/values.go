package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// direction in which a value is better.
type direction int

const (
	neither direction = iota
	more              // more is better, less a regression
	on                // on is better, off a regression
)

// row is one fact that matters: where it is, what it is called, and when less of it is a regression even though no
// threshold of a check is passed.
type row struct {
	path   string
	label  string
	unit   string
	better direction
	noise  float64 // share of the value below which a change is noise
	why    string  // why less of it is a regression
	kind   kind    // how it is read and shown
}

// kind is how a fact is read and shown, where it is not as it stands.
type kind int

const (
	asIs  kind = iota
	limit      // -1 is no limit, which is more than any
	word       // a register, in hexadecimal digits
)

// hostRows are the facts of a machine as a whole.
var hostRows = []row{
	{path: "board.vendor", label: "board vendor"},
	{path: "board.name", label: "board"},
	{path: "bios.version", label: "BIOS version"},
	{path: "bios.date", label: "BIOS date"},
	{path: "boot.uefi", label: "UEFI boot"},
	{path: "boot.secure_boot", label: "Secure Boot"},
	{path: "kind", label: "kind of machine"},
	{path: "os.distro", label: "system"},
	{path: "os.kernel", label: "kernel"},
	{path: "iommu.on", label: "IOMMU"},
	{path: "iommu.default_domain_type", label: "IOMMU domains by default"},
	{path: "cpu.model", label: "processor"},
	{path: "cpu.sockets", label: "processor sockets", better: more, why: "a processor is gone"},
	{path: "cpu.cores", label: "cores", better: more, why: "cores are gone"},
	{path: "cpu.threads", label: "threads"},
	{path: "cpu.numa_nodes", label: "NUMA nodes"},
	{path: "cpu.package_limit", label: "processor power limit", unit: "W"},
	{path: "memory.installed", label: "memory installed", unit: "MiB", better: more, why: "memory is gone"},
	{path: "memory.total", label: "memory usable", unit: "MiB", better: more, noise: 0.02, why: "memory is gone"}, // the kernel's own share moves
	{path: "memory.ecc", label: "ECC of memory", better: on, why: "errors of memory are no longer corrected"},
	{path: "driver.version", label: "driver"},
	{path: "driver.open_module", label: "open kernel module"},
	{path: "driver.loaded", label: "driver loaded", better: on, why: "the driver is not loaded"},
	{path: "driver.nvreg_enable_resizable_bar", label: "NVreg_EnableResizableBar"},
	{path: "driver.persistenced", label: "nvidia-persistenced"},
	{path: "limits.memlock", label: "locked memory limit", unit: "KiB", better: more, why: "less memory can be locked", kind: limit},
	{path: "limits.memlock_hard", label: "locked memory hard limit", unit: "KiB", kind: limit},
	{path: "limits.memlock_services", label: "locked memory limit of services", unit: "KiB", better: more, why: "less memory can be locked", kind: limit},
	{path: "limits.reserved_ports", label: "reserved ports"},
	{path: "os.shm_total", label: "/dev/shm", unit: "MiB", better: more, noise: 0.02, why: "NCCL has less shared memory"},
	{path: "software.no_cgroups", label: "no-cgroups"},
	{path: "power_cap_units", label: "units that set a power limit"},
}

// cardRows are the facts of one card, wherever it sits.
var cardRows = []row{
	{path: "name", label: "model"},
	{path: "vbios", label: "VBIOS"},
	{path: "memory", label: "memory", unit: "MiB", better: more, why: "the card shows less memory"},
	{path: "bar1", label: "BAR1", unit: "MiB", better: more, why: "BAR1 shrank: Resizable BAR or Above 4G was lost"},
	{path: "power_limit", label: "power limit", unit: "W", better: more, why: "the card may draw less"},
	{path: "power_default", label: "default power limit", unit: "W"},
	{path: "power_max", label: "highest power limit", unit: "W"},
	{path: "ecc", label: "ECC"},
	{path: "mig", label: "MIG"},
	{path: "compute_mode", label: "compute mode"},
	{path: "persistence", label: "persistence mode"},
	{path: "display_active", label: "display"},
	{path: "driver", label: "bound driver"},
	{path: "numa_node", label: "NUMA node"},
	{path: "socket", label: "socket"},
	{path: "smi_link.gen_max", label: "generation possible", better: more, why: "the link can do a lower generation only"},
	{path: "smi_link.width_max", label: "lanes possible", better: more, why: "the link can do fewer lanes only"},
}

// linkRows are the facts of one PCIe function's link. The speed now is noise unless it was seen under load.
var linkRows = []row{
	{path: "link.width", label: "lanes", better: more, why: "the link runs fewer lanes"},
	{path: "link.max_width", label: "lanes possible", better: more, why: "the slot offers fewer lanes"},
	{path: "link.max_speed", label: "speed possible", unit: "GT/s", better: more, why: "the slot offers a lower generation"},
	{path: "acs_control", label: "ACS control word", kind: word},
}

// rateFloor is the share by which a measured rate must fall to be a regression where no spread was measured. Policy.
const rateFloor = 0.05

// copyNoise is the share by which copies between cards differ from run to run. Policy.
const copyNoise = 0.10

// value is one thing that is compared.
type value struct {
	group  string // what is read together: when a side has none of it, it was not read there
	scope  string // "host", "card a0c38d0f1370", "link …": what it is about, the same on both sides
	shown  string // the scope as this side names it
	label  string
	text   string
	number float64
	isNum  bool
	unit   string
	better direction
	noise  float64 // share
	why    string
	joint  bool // measured with all cards at once: nothing to compare with where their number is another
}

// key joins the two sides.
func (v value) key() string { return v.scope + "\x00" + v.label }

func (r row) of(scope, shown string, t tree) (value, bool) {
	text := t.text(r.path)
	if t.leaf(r.path) == nil {
		return value{}, false
	}
	v := value{scope: scope, shown: shown, label: r.label, text: text, unit: r.unit, better: r.better, noise: r.noise, why: r.why}
	v.number, v.isNum = t.number(r.path)
	switch {
	case r.kind == limit && v.isNum && v.number < 0:
		v.number, v.text, v.unit = math.Inf(1), "unlimited", ""
	case r.kind == word && v.isNum:
		v.text = fmt.Sprintf("0x%04x", int64(v.number))
	}
	return v, true
}

// groups are the parts of a state, each with what it is called when a whole side lacks it, and with the check that has it
// measured: a check that was left out by choice measures nothing.
var groups = []struct {
	name, words, check string
	of                 func(tree, namer) []value
}{
	{"host", "the machine", "", func(t tree, _ namer) []value { return rowsOf(hostRows, "host", "", t) }},
	{"cmdline", "kernel command line", "", func(t tree, _ namer) []value { return cmdline(t) }},
	{"cards", "cards", "", func(t tree, n namer) []value { return append(each(t.list("cards"), cardRows, n), domains(t, n)...) }},
	{"links", "PCIe links", "", func(t tree, n namer) []value { return each(ports(t, n), linkRows, n) }},
	{"modules", "memory modules", "", func(t tree, _ namer) []value { return modules(t) }},
	{"disks", "disks", "", func(t tree, _ namer) []value { return disks(t) }},
	{"supplies", "power supplies", "", func(t tree, _ namer) []value { return supplies(t) }},
	{"pairs", "what the driver says of pairs of cards", "", pairs},
	{"load", "links under load", "link.bandwidth", loaded},
	{"copies", "measured copies between cards", "topology.p2p", copies},
	{"rates", "measured copies between host and cards", "link.bandwidth", bandwidth},
	{"all-reduce", "measured all-reduce", "nccl.all-reduce", func(t tree, _ namer) []value { return allReduce(t) }},
	{"software", "PyTorch and containers", "", func(t tree, _ namer) []value { return software(t) }},
}

// values are everything of a state that is compared.
func values(t tree, names namer) []value {
	var out []value
	for _, g := range groups {
		for _, v := range g.of(t, names) {
			v.group = g.name
			out = append(out, v)
		}
	}
	return out
}

func rowsOf(rows []row, scope, shown string, t tree) []value {
	var out []value
	for _, r := range rows {
		if v, ok := r.of(scope, shown, t); ok {
			out = append(out, v)
		}
	}
	return out
}

// each takes the rows of every function in a list.
func each(list []tree, rows []row, names namer) []value {
	var out []value
	for _, x := range list {
		out = append(out, rowsOf(rows, names.scope(x.text("bdf")), names.shown(x.text("bdf")), x)...)
	}
	return out
}

// ports are the functions whose links matter: cards and bridges.
func ports(t tree, names namer) []tree {
	var out []tree
	for _, d := range t.list("pci") {
		if names.isCard(d.text("bdf")) || strings.HasPrefix(d.text("class"), "0604") {
			out = append(out, d)
		}
	}
	return out
}

// cmdline takes the kernel's command line apart, so that one parameter is one change. Paths of images and disks say nothing.
func cmdline(t tree) []value {
	line := t.text("os.cmdline")
	if line == "" {
		return nil
	}
	at := map[string][]string{}
	var order []string
	for _, word := range strings.Fields(line) {
		name, val, has := strings.Cut(word, "=")
		if slices.Contains([]string{"BOOT_IMAGE", "root", "initrd", "resume"}, name) {
			continue
		}
		if _, seen := at[name]; !seen {
			order = append(order, name)
		}
		if !has {
			val = "set"
		}
		at[name] = append(at[name], val)
	}
	var out []value
	for _, name := range order {
		out = append(out, value{scope: "cmdline", shown: "kernel command line", label: name, text: strings.Join(at[name], ",")})
	}
	return out
}

// loaded are the links as they were seen while cards copied.
func loaded(t tree, names namer) []value {
	var out []value
	for _, l := range t.list("load") {
		bdf := l.text("bdf")
		if l.text("loaded") != "on" {
			continue
		}
		for _, r := range []row{
			{path: "speed_gts", label: "speed under load", unit: "GT/s", better: more, why: "the link runs slower under load"},
			{path: "width", label: "lanes under load", better: more, why: "the link runs fewer lanes under load"},
		} {
			if v, ok := r.of(names.scope(bdf), names.shown(bdf), l); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// domains are how the IOMMU translates for each card: DMA, DMA-FQ, identity.
func domains(t tree, names namer) []value {
	var out []value
	for _, c := range t.list("cards") {
		bdf := c.text("bdf")
		kinds, _ := t.at("iommu.card_types").(map[string]any)
		if kind := words(kinds[bdf]); kind != "" {
			out = append(out, value{scope: names.scope(bdf), shown: names.shown(bdf), label: "IOMMU domain", text: kind})
		}
	}
	return out
}

// modules are the memory modules by their place; an empty socket holds none.
func modules(t tree) []value {
	var out []value
	for _, d := range t.list("memory.dimms") {
		if size, ok := d.number("size_mib"); ok && size == 0 {
			continue
		}
		scope := "module " + d.text("locator")
		if b := d.text("bank"); b != "" {
			scope += " (" + b + ")"
		}
		for _, r := range []row{
			{path: "size_mib", label: "size", unit: "MiB", better: more, why: "a memory module is gone or smaller"},
			{path: "mt_s", label: "speed", unit: "MT/s", better: more, why: "memory runs slower"},
		} {
			if v, ok := r.of(scope, scope, d); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// disks by model, since the kernel's names move.
func disks(t tree) []value {
	var out []value
	n := map[string]int{}
	for _, d := range t.list("disks") {
		bytes, ok := d.number("bytes")
		if !ok || d.text("removable") == "on" {
			continue
		}
		model := d.text("model")
		if model == "" {
			model = d.text("name")
		}
		n[model]++
		scope := "disk " + model
		if n[model] > 1 {
			scope = fmt.Sprintf("%s #%d", scope, n[model])
		}
		out = append(out, value{scope: scope, shown: scope, label: "size", text: fmt.Sprintf("%.0f", bytes/1e9), number: bytes / 1e9, isNum: true, unit: "GB", better: more, why: "a disk is gone or smaller"})
	}
	return out
}

// supplies as the board lists them.
func supplies(t tree) []value {
	var out []value
	for _, p := range t.list("psus") {
		scope := "supply " + p.text("name")
		out = append(out, rowsOf([]row{{path: "watts", label: "rating", unit: "W", better: more, why: "a supply is gone"}}, scope, scope, p)...)
	}
	return out
}

// software are the programs that training uses, by where they are.
func software(t tree) []value {
	var out []value
	for _, p := range t.list("software.torch") {
		scope := "torch of " + p.text("python")
		for _, r := range []row{{path: "version", label: "version"}, {path: "cuda", label: "CUDA"}, {path: "nccl", label: "NCCL"}, {path: "works", label: "works", better: on, why: "torch no longer works"}} {
			if v, ok := r.of(scope, scope, p); ok {
				out = append(out, v)
			}
		}
	}
	for _, e := range t.list("software.container_engines") {
		scope := "engine " + e.text("name")
		for _, r := range []row{{path: "version", label: "version"}, {path: "nvidia", label: "gives cards to containers by"}} {
			if v, ok := r.of(scope, e.text("name"), e); ok {
				out = append(out, v)
			}
		}
	}
	for _, list := range []string{"software.toolkit", "software.nccl"} { // name and version of each
		for _, n := range t.list(list) {
			if v, ok := (row{path: "value", label: "version"}).of("library "+n.text("name"), n.text("name"), n); ok {
				out = append(out, v)
			}
		}
	}
	return out
}
