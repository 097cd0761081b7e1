package facts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"preflight/internal/catalog"
)

var (
	treeRoot   = regexp.MustCompile(`^\[(?:([0-9a-f]{4,8}):)?([0-9a-f]{2})\]`)
	treeBus    = regexp.MustCompile(`^-\[([0-9a-f]{2})(?:-([0-9a-f]{2}))?\]`)
	treeDevice = regexp.MustCompile(`^([0-9a-f]{2}\.[0-7])`)
)

// treeLevel is one bus of the drawing: where its bracket stands, and the bridges that lead to it.
type treeLevel struct {
	column int
	bus    string // "0000:41"
	bridge string // "" for a root bus, and where the drawing was cut above it
	chain  []string
	root   string
	known  bool // the way from the root is complete
}

// parseTree reads the drawing of `lspci -t`, -tv or -tvnn: which bridge leads to which function. Drawings that begin in
// the middle name functions only below a bus whose number is printed.
func parseTree(d dumpFile) []Device {
	t := &treeReader{file: d}
	for _, line := range d.lines() {
		if len(t.devices) >= maxFunctions {
			break
		}
		t.line(line)
	}
	return t.devices
}

type treeReader struct {
	file    dumpFile
	stack   []treeLevel
	devices []Device
}

func (t *treeReader) line(line string) {
	at := strings.IndexAny(line, `-+\`)
	if at < 0 || strings.Trim(line[:at], " |") != "" {
		return
	}
	for len(t.stack) > 0 && t.stack[len(t.stack)-1].column >= at {
		t.stack = t.stack[:len(t.stack)-1]
	}
	for at < len(line) {
		rest := line[at:]
		if m := treeBus.FindStringSubmatch(rest); m != nil && len(t.stack) == 0 && at > 1 {
			// The function in front could not be named: its bus is not in the drawing.
			t.stack = append(t.stack, treeLevel{column: at + 1, bus: "0000:" + m[1]})
			at += len(m[0])
			continue
		}
		if m := treeRoot.FindStringSubmatch(rest); m != nil && len(t.stack) == 0 {
			bus := strings.TrimSuffix(lspciBDF(m[1], m[2]), ".")
			t.stack = append(t.stack, treeLevel{column: at, bus: bus, root: bus, known: true})
			at += len(m[0])
			continue
		}
		if m := treeDevice.FindStringSubmatch(rest); m != nil {
			if len(t.stack) > 0 {
				at = t.function(line, at, m[1])
				continue
			}
			at += len(m[0])
			continue
		}
		if !strings.ContainsRune(`-+\`, rune(rest[0])) {
			return
		}
		at++
	}
}

// function notes one function; behind it stands the bus below it, or its name to the end of the line.
func (t *treeReader) function(line string, at int, name string) int {
	up := t.stack[len(t.stack)-1]
	d := Device{BDF: up.bus + ":" + name, RootBus: up.root}
	if up.known && len(up.chain) > 0 {
		d.Chain = append([]string{}, up.chain...)
	}
	at += len(name)
	m := treeBus.FindStringSubmatch(line[at:])
	if m == nil {
		text := strings.TrimSpace(line[at:])
		d.Vendor, d.Product = lspciIdentity(text)
		d.Label = strings.TrimSpace(lspciIDs.ReplaceAllString(text, ""))
		t.devices = append(t.devices, d)
		return len(line)
	}
	second, _ := strconv.ParseInt(m[1], 16, 32)
	last := second
	if m[2] != "" {
		last, _ = strconv.ParseInt(m[2], 16, 32)
	}
	src := t.file.src(fmt.Sprintf("[%s]", strings.Trim(m[0], "-[]")))
	d.Class, d.Second, d.Subord = "060400", Of(int(second), src), Of(int(last), src)
	t.devices = append(t.devices, d)
	domain, _, _ := strings.Cut(up.bus, ":")
	next := treeLevel{column: at + 1, bus: domain + ":" + m[1], bridge: d.BDF, root: up.root, known: up.known && len(up.chain) < maxBridges}
	if next.known {
		next.chain = append(append([]string{}, up.chain...), d.BDF)
	}
	t.stack = append(t.stack, next)
	return at + len(m[0])
}

// wholeTree says whether a drawing begins at a root bus.
func wholeTree(text string) bool {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	return strings.HasPrefix(line, "-[") || strings.HasPrefix(line, "-+-[")
}

// nameCards gives a class to the functions of a drawing that are cards: their names say so, classes are not drawn. named
// is false when the drawing has no names, or one of NVIDIA's that the catalogue does not know.
func nameCards(devices []Device, cat *catalog.Catalog) (out []Device, named bool) {
	if cat == nil {
		return devices, false
	}
	named = true
	for i, d := range devices {
		named = named && (d.Label != "" || d.Vendor != "" || d.Second.Known())
		if d.Vendor != "10de" || !strings.HasSuffix(d.BDF, ".0") || d.Class != "" {
			continue
		}
		if d.Product == "" {
			devices[i].Product = cardByName(cat, d.Label)
		}
		if _, ok := cat.GPU(devices[i].Product, 0); ok {
			devices[i].Class = "030000"
		} else {
			named = false
		}
	}
	return devices, named && len(devices) > 0
}
