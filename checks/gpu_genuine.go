package checks

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// gpu.genuine: is each card what it says it is, and as its factory made it?
//
//	name is that of another model than the device id             fail: the VBIOS was flashed
//	part number of the die is another known model's              fail
//	driver and bus give different device ids                     fail
//	part number of a die that is not in the catalogue            warn
//	memory of another size than the factory's                    warn: modded (4090 with 48 GB, 3080 with 20 GB)
//	VBIOS of another generation than the device id               warn
//	a laptop's GPU in a desktop or server                        warn
//	no board maker (subsystem vendor 0000 or ffff)               warn
//	id and memory agree with the catalogue, nothing of this      pass
//	id not in the catalogue, or memory not read                  unknown
//
// Traps: ECC takes a sixteenth of the memory; drivers differ by a few hundred MiB; a part number that begins with 900- or
// 692- is the board's and names no die; one model has several device ids, and one id several memory sizes.
var gpuGenuine = Check{ID: "gpu.genuine", Title: "genuineness of the cards", Decide: decideGenuine}

// memorySlack is how far a size may be from the factory's, as a share of it: ECC takes 6.25 %, drivers differ by up to 2 %.
// Mods differ by a quarter and more.
const memorySlack = 0.15

// diePart is the part number of a die: device id, variant, stepping.
var diePart = regexp.MustCompile(`^([0-9A-Fa-f]{4})-\d{3}-[A-Z]\d$`)

// portable are the chassis types (SMBIOS 3.7, table 17) in which a laptop's GPU belongs: laptops, all-in-ones, embedded
// and mini PCs.
var portable = []int{8, 9, 10, 11, 13, 14, 30, 31, 32, 34, 35}

// severalSizes is how the catalogue's name tells that one id is sold with two sizes: "(8 or 16 GB)", "(6/12 GB)".
var severalSizes = regexp.MustCompile(`\((\d+)(?:/| or )(\d+) GB\)`)

func decideGenuine(s Subject) []Finding {
	var out []Finding
	var unread, strange []string
	sound := 0
	for _, c := range s.Cards {
		rows := rowsOf(s.Cat, c.Product)
		if problems := forged(s, c, rows); len(problems) > 0 {
			out = append(out, worstOf(problems))
			continue
		}
		switch {
		case c.Product != "" && len(rows) == 0:
			strange = append(strange, "10de:"+c.Product)
		case c.Product == "" || !c.MemoryMiB.Known():
			unread = append(unread, c.BDF)
		default:
			sound++
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(s.Cards) == 0:
		return []Finding{unknown(rigSubject, "no card's device id is known").knownBy("give a snapshot of the host, lspci -nn or nvidia-smi -q -x")}
	case len(strange) > 0:
		return []Finding{unknown(rigSubject, "the catalogue does not know %s", strings.Join(slices.Compact(strange), ", ")).knownBy("add the model in a catalog block of the inventory")}
	case len(unread) > 0:
		return []Finding{unknown(rigSubject, "device id and memory were not both read for %s", strings.Join(unread, ", ")).knownBy("give nvidia-smi -q, or a snapshot of the host")}
	}
	c := s.Cards[0]
	return []Finding{pass(rigSubject, "%s as the factory made it", plural(sound, "card")).
		because(evs("pci:"+c.BDF+"/device", c.Product), ev(c.MemoryMiB), ev(c.Part), ev(c.VBIOS)).noting("%s", mixedVBIOS(s.Cards))}
}

func rowsOf(cat *catalog.Catalog, id string) []catalog.GPU {
	var out []catalog.GPU
	for _, g := range cat.GPUs {
		if id != "" && g.ID == id {
			out = append(out, g)
		}
	}
	return out
}

// forged lists what does not fit together in one card.
func forged(s Subject, c facts.Card, rows []catalog.GPU) []Finding {
	if c.VirtMode.Value == "VGPU" {
		return nil // a slice of a card has the memory and the name of the slice
	}
	var out []Finding
	for _, look := range []func(Subject, facts.Card, []catalog.GPU) (Finding, bool){otherID, otherName, otherDie, otherMemory, otherVBIOS, laptopDie, noMaker} {
		if f, bad := look(s, c, rows); bad {
			out = append(out, f)
		}
	}
	return out
}

func otherID(_ Subject, c facts.Card, _ []catalog.GPU) (Finding, bool) {
	id := c.SMIDevice
	return fail(c.BDF, "%s is %s on the bus and %s to the driver", c.BDF, c.Product, id.Value).saw(id.Value, c.Product).
		because(ev(id), evs("pci:"+c.BDF+"/device", c.Product)).fix("gpu.genuine/flashed", "bdf", c.BDF), id.Known() && c.Product != "" && id.Value != c.Product
}

// otherName: the name is exactly that of another model. A name that no model has proves nothing.
func otherName(s Subject, c facts.Card, rows []catalog.GPU) (Finding, bool) {
	if !strings.HasPrefix(c.Name.Source, "nvidia-smi:") || len(rows) == 0 {
		return Finding{}, false
	}
	name, found := plainName(c.Name.Value), false
	if slices.ContainsFunc(rows, func(g catalog.GPU) bool { return plainName(g.Name) == name }) {
		return Finding{}, false
	}
	for _, g := range s.Cat.GPUs {
		if plainName(g.Name) != name {
			continue
		}
		if g.ID == c.Product {
			return Finding{}, false
		}
		found = found || g.Confirmed["id"]
	}
	return fail(c.BDF, "%s calls itself %s, its device id is that of %s", c.BDF, c.Name.Value, rows[0].Name).saw(c.Name.Value, rows[0].Name).
		because(ev(c.Name), evs("pci:"+c.BDF+"/device", c.Product)).fix("gpu.genuine/flashed", "bdf", c.BDF), found && rows[0].Confirmed["id"]
}

// plainName leaves of a model's name what all spellings share.
func plainName(name string) string {
	name = strings.ToLower(name)
	for _, word := range []string{"nvidia", "geforce", "quadro", "tesla", "generation", " ", "-"} {
		name = strings.ReplaceAll(name, word, "")
	}
	return name
}

func otherDie(s Subject, c facts.Card, _ []catalog.GPU) (Finding, bool) {
	m := diePart.FindStringSubmatch(c.Part.Value)
	if m == nil || c.Product == "" || strings.EqualFold(m[1], c.Product) {
		return Finding{}, false
	}
	f := warn(c.BDF, "%s has a die of part %s, its device id is %s", c.BDF, c.Part.Value, c.Product)
	if others := rowsOf(s.Cat, strings.ToLower(m[1])); len(others) > 0 && others[0].Confirmed["id"] {
		f = fail(c.BDF, "%s has the die of a %s (%s), its device id is %s", c.BDF, others[0].Name, c.Part.Value, c.Product)
	}
	return f.saw(m[1], c.Product).because(ev(c.Part), evs("pci:"+c.BDF+"/device", c.Product)).fix("gpu.genuine/flashed", "bdf", c.BDF), true
}

// otherMemory: no factory row of the id has about this much.
func otherMemory(_ Subject, c facts.Card, rows []catalog.GPU) (Finding, bool) {
	have, known := c.MemoryMiB.Get()
	var factory []string
	for _, g := range rows {
		if strings.HasSuffix(g.Slug, "-mod") || g.MemoryMiB == 0 {
			continue
		}
		for _, size := range factorySizes(g) {
			if math.Abs(float64(have-size)) <= memorySlack*float64(size) {
				return Finding{}, false
			}
			factory = append(factory, fmt.Sprintf("%d MiB", size))
		}
	}
	if !known || len(factory) == 0 {
		return Finding{}, false
	}
	want := strings.Join(factory, ", ")
	return warn(c.BDF, "%s (%s) has %d MiB; the factory fits %s", c.BDF, modelName(c), have, want).saw(fmt.Sprintf("%d MiB", have), want).
		because(ev(c.MemoryMiB), evs("catalogue:"+rows[0].Slug, want)).fix("gpu.genuine/modded", "bdf", c.BDF), true
}

// factorySizes are the sizes with which a model leaves the factory, MiB.
func factorySizes(g catalog.GPU) []int64 {
	out := []int64{g.MemoryMiB}
	m := severalSizes.FindStringSubmatch(g.Name)
	for _, text := range m[min(1, len(m)):] {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && math.Abs(float64(n<<10-g.MemoryMiB)) > memorySlack*float64(g.MemoryMiB) {
			out = append(out, n<<10)
		}
	}
	return out
}

func otherVBIOS(s Subject, c facts.Card, rows []catalog.GPU) (Finding, bool) {
	family, _, cut := strings.Cut(c.VBIOS.Value, ".")
	if !cut || len(rows) == 0 {
		return Finding{}, false
	}
	families := s.Cat.VBIOSFamilies(rows[0].Arch)
	want := strings.Join(families, ", ")
	return warn(c.BDF, "%s has a VBIOS of family %s; %s has %s", c.BDF, family, rows[0].Name, want).saw(c.VBIOS.Value, want).
		because(ev(c.VBIOS)).fix("gpu.genuine/flashed", "bdf", c.BDF), len(families) > 0 && !slices.Contains(families, family)
}

func laptopDie(s Subject, c facts.Card, _ []catalog.GPU) (Finding, bool) {
	name, laptop := s.Cat.LaptopGPU(c.Product)
	if strings.Contains(c.Name.Value, "Laptop GPU") {
		name, laptop = c.Name.Value, true
	}
	chassis, known := s.Host.Board.ChassisType.Get()
	return warn(c.BDF, "%s is a laptop's GPU (%s) in a desktop or server", c.BDF, name).saw(name, "a desktop card").
			because(ev(c.Name), evs("pci:"+c.BDF+"/device", c.Product), ev(s.Host.Board.ChassisType)).fix("gpu.genuine/laptop", "bdf", c.BDF),
		laptop && known && !slices.Contains(portable, chassis)
}

func noMaker(_ Subject, c facts.Card, _ []catalog.GPU) (Finding, bool) {
	return warn(c.BDF, "%s names no board maker", c.BDF).saw(c.SubVend, "a maker's id").
		because(evs("pci:"+c.BDF+"/subsystem_vendor", c.SubVend)).fix("gpu.genuine/flashed", "bdf", c.BDF), c.SubVend == "0000" || c.SubVend == "ffff"
}

// mixedVBIOS names the versions where cards of one id have several.
func mixedVBIOS(cards []facts.Card) string {
	versions := map[string]bool{}
	for _, c := range cards {
		if c.VBIOS.Known() && c.Product == cards[0].Product {
			versions[c.VBIOS.Value] = true
		}
	}
	if len(versions) < 2 {
		return ""
	}
	var names []string
	for v := range versions {
		names = append(names, v)
	}
	sort.Strings(names)
	return fmt.Sprintf("the cards have different VBIOS versions: %s", strings.Join(names, ", "))
}
