package checks

import (
	"fmt"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// firmware.resizable-bar: does BAR1 cover the card's memory? Three gates must all be open: the card's VBIOS offers
// large sizes, firmware (or the driver, when told) resized the BAR, and there was address space for it.
//
//	B BAR1, V memory, S largest size that the card offers, all MiB
//	B >= V                                      pass
//	256 < B < V, B == S                         warn: the VBIOS offers no more (memory conversions)
//	256 < B < V                                 warn: partial
//	B <= 256, S > 256                           fail: the card can, firmware did not
//	B <= 256, S <= 256                          warn: this VBIOS offers no larger size
//	B <= 256, S unknown, model known to resize  fail; early 30-series: both causes are named
//	B <= 256, S unknown, display-mode cards     warn
//	model without support, or no capability     skip
//	B or the model unknown                      unknown
//	in a guest, anything but B >= V or skip     unknown: the hypervisor chooses what it shows
//
// Trap: capability 15h exists on cards that cannot be enlarged (launch 3090: 64, 128, 256 MB), so its presence
// decides nothing. Source: sysfs `resource`, `resource1_resize`, config space 15h, nvidia-smi bar1_memory_usage.
var resizableBAR = Check{ID: "firmware.resizable-bar", Title: "Resizable BAR", Decide: decideReBAR}

// smallBAR1 is the aperture of a card that was not resized, MiB.
const smallBAR1 = 256

func decideReBAR(s Subject) []Finding {
	if len(s.Cards) == 0 {
		return []Finding{unknown(rigSubject, "no card's BAR1 is known").knownBy("give a snapshot of the host, lspci -vvv or nvidia-smi -q -x")}
	}
	var out []Finding
	passed := 0
	for _, c := range s.Cards {
		f := rebarOf(s, c)
		if guest := s.Host.Kind.Value; (guest == "vm" || guest == "wsl") && (f.Verdict == Fail || f.Verdict == Warn) {
			f = unknown(c.BDF, "%s: BAR1 is what the %s shows", c.BDF, kindWord(guest)).because(ev(c.BAR1MiB)).knownBy("run the check on the host itself")
		}
		if f.Verdict == Pass && f.Note == "" {
			passed++
		}
		out = append(out, f)
	}
	if passed == len(out) {
		c := s.Cards[0]
		return []Finding{pass(rigSubject, "BAR1 covers the memory of all %d cards", passed).saw(fmt.Sprintf("%d MiB", c.BAR1MiB.Value), fmt.Sprintf("≥ %d MiB", c.MemoryMiB.Value)).because(ev(c.BAR1MiB), ev(c.MemoryMiB))}
	}
	return out
}

func rebarOf(s Subject, c facts.Card) Finding {
	g, known := s.model(c)
	b, ok := c.BAR1MiB.Get()
	v := memoryOf(s, c)
	if !ok || b == 0 {
		if known && g.ReBAR == "no" {
			return skip(c.BDF, "%s has no Resizable BAR", modelName(c))
		}
		return unknown(c.BDF, "%s: the size of BAR1 is not known", c.BDF).knownBy("give a snapshot of the host, lspci -vvv or nvidia-smi -q -x")
	}
	seen, want := fmt.Sprintf("%d MiB", b), fmt.Sprintf("≥ %d MiB", v)
	evidence := []Evidence{ev(c.BAR1MiB), ev(c.MemoryMiB), ev(c.ReBARMiB)}
	largest, offered := maxSize(c.ReBARMiB)
	switch {
	case v == 0:
		return unknown(c.BDF, "%s: BAR1 is %d MiB, the card's memory is not known", c.BDF, b).saw(seen, "").because(evidence...).knownBy("give nvidia-smi -q -x")
	case b >= v || nearly(b, v):
		return pass(c.BDF, "%s: BAR1 covers the memory", c.BDF).saw(seen, want).because(evidence...)
	case b > smallBAR1 && offered && b >= largest:
		return warn(c.BDF, "%s: BAR1 is %d MiB of %d, all that its VBIOS offers", c.BDF, b, v).saw(seen, want).because(evidence...).fix("firmware.resizable-bar/vbios", "bdf", c.BDF)
	case b > smallBAR1:
		return warn(c.BDF, "%s: BAR1 is %d MiB of %d", c.BDF, b, v).saw(seen, want).because(evidence...).fix("firmware.resizable-bar/partial", "bdf", c.BDF)
	case offered && largest > smallBAR1:
		return notResized(s, c, b, v).saw(seen, want).because(evidence...).because(ev(s.Host.Driver.EnableReBAR)).fix("firmware.resizable-bar/enable", "bdf", c.BDF)
	case offered && largest > 0 || known && g.ReBAR == "vbios-update" && offered:
		return warn(c.BDF, "%s: this VBIOS offers no BAR1 above %d MiB", c.BDF, max(largest, smallBAR1)).saw(seen, want).because(evidence...).fix("firmware.resizable-bar/vbios", "bdf", c.BDF)
	case offered:
		return skip(c.BDF, "%s has no Resizable BAR capability", modelName(c)).because(evidence...)
	}
	return byModel(s, c, g, known, b, v).saw(seen, want).because(evidence...)
}

// byModel decides a 256 MiB BAR1 where the sizes that the card offers could not be read.
func byModel(s Subject, c facts.Card, g catalog.GPU, known bool, b, v int64) Finding {
	switch {
	case !known || g.ReBAR == "":
		if known && g.BAR1Large > smallBAR1 {
			return warn(c.BDF, "%s: BAR1 is %d MiB of %d", c.BDF, b, v).noting("cards of this line show a small BAR1 in display mode").fix("firmware.resizable-bar/display-mode", "bdf", c.BDF)
		}
		return unknown(c.BDF, "%s: whether %s can resize BAR1 is not known", c.BDF, modelName(c)).knownBy("let preflight use root, or give lspci -vvv as root")
	case g.ReBAR == "no":
		return skip(c.BDF, "%s has no Resizable BAR", modelName(c))
	case g.Confidence != "confirmed":
		return warn(c.BDF, "%s: BAR1 is %d MiB of %d", c.BDF, b, v).noting("that this model can resize it is recalled, not confirmed; root would show the card's own list").
			fix("firmware.resizable-bar/enable", "bdf", c.BDF)
	case g.ReBAR == "vbios-update":
		return notResized(s, c, b, v).noting("cards of this model sold before March 2021 need a VBIOS update first").fix("firmware.resizable-bar/enable", "bdf", c.BDF)
	}
	return notResized(s, c, b, v).because(ev(s.Host.Driver.EnableReBAR)).fix("firmware.resizable-bar/enable", "bdf", c.BDF)
}

func notResized(_ Subject, c facts.Card, b, v int64) Finding {
	return fail(c.BDF, "%s exposes %d MiB of %d MiB", c.BDF, b, v)
}

// maxSize is the largest size offered; offered is false when the list could not be read.
func maxSize(f facts.Fact[[]int64]) (largest int64, offered bool) {
	for _, v := range f.Value {
		largest = max(largest, v)
	}
	return largest, f.Known()
}

// nearly: drivers count the memory with and without reserved parts; a BAR1 within 2 % covers it.
func nearly(b, v int64) bool { return float64(b) >= 0.98*float64(v) }
