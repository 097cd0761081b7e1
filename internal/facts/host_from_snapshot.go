package facts

import (
	"fmt"
	"slices"
	"strings"

	"preflight/internal/catalog"
)

// FromSnapshot reads every source of a snapshot into one Host. It never fails: what cannot be read is absent,
// and Gaps says why. The same snapshot always gives the same Host.
func FromSnapshot(s *Snapshot) *Host {
	b := &builder{snap: s, items: map[string]Item{}, host: &Host{At: s.Manifest.At, Gaps: map[Kind]string{}}}
	defer b.dropTree()
	for _, it := range s.Manifest.Items {
		b.items[it.Name] = it
	}
	// Order matters where a source leans on another: cards need devices, matrices need card indexes.
	for _, read := range []func(*builder){
		readOS, readDMI, readCPU, readMemory, readDisks, readPCI, readConfig, readGHW, readLspci, readIOMem, readSMBIOS, readLscpu, readDMIText,
		readDriver, readSMI, readSMIText, readSMITable, readSamples, readTopo, readP2P, readCUDASamples, readCollectEnv, readProducts,
		readIOMMU, readAEROwner, readKernelLog, readLogDevices, readFabric, readLoad, readNative, readAcross, readNCCL, readBurnIn, readDDP, readVirt, readModels,
		readNUMA, readSoftware, readLimits, readTopoNodes, readShmErrors,
	} {
		read(b)
	}
	return b.host
}

// builder carries a Host while its sources are read one after another.
type builder struct {
	snap    *Snapshot
	items   map[string]Item
	host    *Host
	treeDir string // see tree

	packages map[string]int // processor number -> physical id
}

// gap records why a kind of fact is missing; the first reason stays.
func (b *builder) gap(k Kind, format string, args ...any) {
	if _, ok := b.host.Gaps[k]; !ok {
		b.host.Gaps[k] = fmt.Sprintf(format, args...)
	}
}

// read returns a file that was read whole. Padding NULs, as a naive tar of sysfs leaves them, are cut.
func (b *builder) read(path string) ([]byte, bool) {
	data, ok := b.snap.Files[path]
	if !ok {
		if target, linked := b.resolve(path); linked {
			data, ok = b.snap.Files[target]
		}
	}
	if it, seen := b.items[path]; seen && it.Status == StatusTruncated {
		return nil, false
	}
	return data, ok
}

// text is read without surrounding white space; an empty file counts as absent.
func (b *builder) text(path string) (string, bool) {
	data, ok := b.read(path)
	if !ok {
		return "", false
	}
	t := strings.TrimSpace(strings.TrimRight(string(data), "\x00"))
	return t, t != ""
}

// str is text as a fact.
func (b *builder) str(path string) Fact[string] {
	if t, ok := b.text(path); ok {
		return Of(t, source(path))
	}
	return Fact[string]{}
}

// why tells in words how reading an item ended, for gaps.
func (b *builder) why(item, otherwise string) string {
	it, ok := b.items[item]
	if !ok {
		if cut := b.snap.Manifest.Cut; cut != "" {
			return item + " was not reached: " + cut
		}
		return otherwise
	}
	switch it.Status {
	case StatusDenied:
		return item + " needs root: " + firstNonEmpty(it.Detail, "permission denied")
	case StatusTimeout:
		return item + " ran past its deadline"
	case StatusTruncated:
		return item + " was cut at its size limit"
	case StatusAbsent:
		return item + " does not exist on this host"
	case StatusError:
		return item + " failed: " + it.Detail
	}
	return otherwise
}

// resolve follows the longest symlinked prefix of a path, one step: sys/bus/pci/devices/BDF/x -> sys/devices/…/x.
func (b *builder) resolve(path string) (string, bool) {
	dir := path
	for {
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return "", false
		}
		dir = dir[:i]
		if target, ok := b.snap.Links[dir]; ok {
			return joinLink(dir, target) + path[len(dir):], true
		}
	}
}

// joinLink resolves a relative symlink target against the directory that holds the link.
func joinLink(link, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(target, "/")
	}
	parts := strings.Split(link, "/")
	parts = parts[:len(parts)-1]
	for _, p := range strings.Split(target, "/") {
		switch p {
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		case ".", "":
		default:
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

// source names a path in evidence: "sysfs:…", "proc:…", "cmd:…".
func source(path string) string {
	kind, rest, ok := strings.Cut(path, "/")
	switch {
	case ok && kind == "cmd":
		return "cmd:" + rest
	case kind == "sys":
		return "sysfs:" + path
	default:
		return "file:" + path
	}
}

func firstNonEmpty(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

// readModels names each card's model after the catalogue. Nothing else of the catalogue enters the facts.
func readModels(b *builder) {
	cat, err := catalog.Load()
	if err != nil {
		return
	}
	for i := range b.host.Cards {
		c := &b.host.Cards[i]
		if g, ok := cat.GPU(c.Product, c.MemoryMiB.Value); ok {
			c.Slug = Of(g.Slug, "catalogue:10de:"+c.Product)
			if !c.Name.Known() {
				c.Label = g.Name
			}
		} else if slug := slugByName(cat, c.Name.Value); c.Product == "" && slug != "" {
			c.Slug = Of(slug, "catalogue:"+c.Name.Value)
		}
	}
}

// slugByName finds the model of a card that is known by name alone; "" when the name fits none, or several.
func slugByName(cat *catalog.Catalog, name string) string {
	slug := ""
	for _, g := range cat.GPUs {
		if name == "" || !strings.EqualFold(strings.TrimPrefix(g.Name, "NVIDIA "), name) || g.Slug == slug {
			continue
		}
		if slug != "" {
			return ""
		}
		slug = g.Slug
	}
	return slug
}

// picked are the lines that the collector took from configuration files below some folders, without the files' names.
func (b *builder) picked(folders ...string) string {
	t, _ := b.text("cmd/picked.txt")
	var out strings.Builder
	for _, line := range strings.Split(t, "\n") {
		path, text, ok := strings.Cut(line, ":")
		if ok && slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f) }) {
			out.WriteString(text + "\n")
		}
	}
	return out.String()
}
