package checks

import (
	"fmt"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// gpu.count: are all cards there, on the bus and in the driver?
//
//	declared  on PCI   in driver   verdict
//	N         N        N           pass
//	N         fewer    any         fail: a card is not enumerated (power, riser, slot, address space)
//	N         N        fewer       fail: the bus sees it, the driver lost it
//	N         more     any         warn: the declaration is stale
//	none      n        n           unknown: the number found is printed, none is guessed from slots
//
// Trap: audio and USB functions of a card, virtual functions and a small display card are not cards that train.
var gpuCount = Check{ID: "gpu.count", Title: "number of cards", Decide: decideGPUCount}

func decideGPUCount(s Subject) []Finding {
	seen, from := countCards(s)
	if lost := lostCards(s); len(lost) > 0 {
		return lost
	}
	want := s.Rig.Cards
	switch {
	case seen < 0:
		return []Finding{noCards(s, want)}
	case seen == 0 && want == nil:
		return []Finding{noneSeen(s).because(from)}
	case want == nil:
		return []Finding{unknown(rigSubject, "%s found, none declared", plural(seen, "card")).saw(strconv.Itoa(seen), "").
			knownBy(fmt.Sprintf("declare `cards = %d` in rigs.hcl", seen)).because(from)}
	case seen < *want && partial(s):
		return []Finding{unknown(rigSubject, "%d of %d cards are in the input, which does not list the whole bus", seen, *want).saw(strconv.Itoa(seen), strconv.Itoa(*want)).
			because(from).knownBy("give lspci -nn whole, or nvidia-smi -q of all cards")}
	case seen < *want:
		f := fail(rigSubject, "%d of %d cards are on the bus", seen, *want).saw(strconv.Itoa(seen), strconv.Itoa(*want)).because(from).
			fix("gpu.count/missing-card", "expected", strconv.Itoa(*want), "seen", strconv.Itoa(seen))
		return []Finding{f.noting("seen: %s", firstOf(bdfs(s.Cards), "none")).noting("%s", emptyPorts(s))}
	case seen > *want:
		return []Finding{warn(rigSubject, "%s found, %d declared", plural(seen, "card"), *want).saw(strconv.Itoa(seen), strconv.Itoa(*want)).
			because(from).fix("gpu.count/too-many", "expected", strconv.Itoa(*want), "seen", strconv.Itoa(seen))}
	}
	f := pass(rigSubject, "%d of %d cards", seen, *want).saw(strconv.Itoa(seen), strconv.Itoa(*want)).because(from)
	if len(s.Others) > 0 {
		f = f.noting("%s not counted: %s", plural(len(s.Others), "display card"), modelName(s.Others[0]))
	}
	return []Finding{f}
}

// countCards is how many cards train, and where that is known from; -1 when no source tells.
func countCards(s Subject) (int, Evidence) {
	if n, ok := s.Host.Driver.Attached.Get(); ok && n > len(s.Host.Cards) {
		return n, ev(s.Host.Driver.Attached) // the output of one card of several
	}
	if n := len(s.Cards); n > 0 {
		return n, evs("pci:vendor 10de, class 0300 or 0302", bdfs(s.Cards))
	}
	if n, ok := s.Host.Driver.Attached.Get(); ok && n > 0 {
		return n, ev(s.Host.Driver.Attached)
	}
	if len(s.Host.PCI) > 0 && !partial(s) {
		return 0, evs("sysfs:sys/bus/pci/devices", "no NVIDIA display function among "+plural(len(s.Host.PCI), "function"))
	}
	return -1, Evidence{}
}

// partial says whether neither the bus nor the driver's count was in the input as a whole: what is seen is then the
// least that there is.
func partial(s Subject) bool {
	_, gap := s.Host.Gaps[facts.KindPCI]
	return gap && !s.Host.Driver.Attached.Known()
}

// noneSeen: the bus was read and holds no NVIDIA card. Cards of other makers are not supported, which is not the
// same as none; an integrated display of the processor is no card either.
func noneSeen(s Subject) Finding {
	makers := map[string]string{"1002": "AMD", "1022": "AMD", "8086": "Intel"}
	for _, d := range s.Host.PCI {
		accelerator := strings.HasPrefix(d.Class, "12") || strings.HasPrefix(d.Class, "03") && !strings.HasPrefix(d.BDF, "0000:00:")
		if maker := makers[d.Vendor]; maker != "" && accelerator && !d.VF {
			return unknown(rigSubject, "%s is a card of %s: not supported by this version", d.BDF, maker).knownBy("declare `cards` when NVIDIA cards should be there as well")
		}
	}
	return unknown(rigSubject, "no NVIDIA card is on the bus, and none is declared").knownBy("declare `cards` in rigs.hcl")
}

// noCards: nothing tells of a card.
func noCards(s Subject, want *int) Finding {
	f := unknown(rigSubject, "no source tells how many cards there are").knownBy("give a snapshot of the host, lspci -nn or nvidia-smi -q -x")
	if want != nil {
		f.Expected = strconv.Itoa(*want)
	}
	return f
}

// lostCards are on the bus but not in the driver, while the driver does answer for others.
func lostCards(s Subject) []Finding {
	attached, ok := s.Host.Driver.Attached.Get()
	if !ok || attached == 0 || attached >= len(s.Host.Cards) || s.Host.Driver.SMIError.Known() || len(s.Host.PCI) == 0 {
		return nil
	}
	var out []Finding
	for _, c := range s.Cards {
		if c.Index.Known() {
			continue
		}
		f := fail(c.BDF, "%s is on the bus, but not in the driver", c.BDF).saw("not in nvidia-smi", "in nvidia-smi").
			because(ev(s.Host.Driver.Attached), ev(c.Driver)).fix("gpu.count/driver-lost", "bdf", c.BDF)
		if c.Excluded.Value {
			f = f.noting("the driver was told to exclude it").because(ev(c.Excluded))
		}
		out = append(out, f)
	}
	return out
}

// emptyPorts names ports whose slot says that a card is present while no device came up below: the strongest sign
// of a card that did not train its link.
func emptyPorts(s Subject) string {
	var ports []string
	for _, d := range s.Host.PCI {
		if d.Presence.Value && !hasChild(s, d) {
			ports = append(ports, d.BDF)
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return fmt.Sprintf("the slot below %s reports a card that did not come up", strings.Join(ports, ", "))
}

func hasChild(s Subject, port facts.Device) bool {
	for _, d := range s.Host.PCI {
		if n := len(d.Chain); n > 0 && d.Chain[n-1] == port.BDF {
			return true
		}
	}
	return false
}

func firstOf(ss ...string) string {
	for _, x := range ss {
		if x != "" {
			return x
		}
	}
	return ""
}
