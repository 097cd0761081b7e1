package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// firmware.above-4g: does the firmware give PCI devices address space above 4 GiB? No file shows the BIOS switch;
// where the cards' 64-bit BARs lie shows what it did.
//
//	a card's memory BAR is unassigned, or the driver found BAR1 of 0 M        fail (that card)
//	a 64-bit BAR of a card lies above 4 GiB, or BAR1 is larger than 4 GiB     pass
//	a root bus has a window above 4 GiB, every card's BARs lie below          pass with a note
//	windows known, none above 4 GiB: cards missing                            fail
//	windows known, none above 4 GiB: all cards there                          warn: off, or not needed yet
//	small BARs below 4 GiB and windows unknown                                unknown
//
// Traps: BAR0 is 32-bit on most cards and always lies below; RAM and ECAM above 4 GiB are no windows; "no space" for
// I/O windows, ROMs and SR-IOV BARs is noise. Source: sysfs `resource`, /proc/iomem, boot messages.
var above4G = Check{ID: "firmware.above-4g", Title: "Above 4G Decoding", Metal: true, Decide: decideAbove4G}

const fourGiB = 1 << 32

func decideAbove4G(s Subject) []Finding {
	if broken := unassigned(s); len(broken) > 0 {
		return broken
	}
	high, low, seen := cardsAbove(s)
	if len(high) > 0 {
		return []Finding{pass(rigSubject, "%d of %d cards have memory above 4 GiB", len(high), len(s.Cards)).saw("on", "on").because(barEvidence(s, high[0])...)}
	}
	windows, tell := rootWindows(s)
	for _, w := range windows {
		if w.End >= fourGiB {
			return []Finding{pass(rigSubject, "root bus %s has a window above 4 GiB", w.Bus).saw("on", "on").
				because(evs(w.Source, fmt.Sprintf("%#x-%#x", w.Start, w.End))).noting("firmware placed the cards' small BARs below")}
		}
	}
	looked := len(s.Host.PCI) > 0 || s.Host.Driver.Attached.Known() // a card that nobody looked for is not missing
	missing := looked && s.Rig.Cards != nil && len(s.Cards) < *s.Rig.Cards
	switch {
	case tell && missing:
		return []Finding{fail(rigSubject, "no root bus has address space above 4 GiB, and cards are missing").saw("off", "on").
			because(evs(windows[0].Source, describeWindows(windows))).fix("firmware.above-4g/off")}
	case tell && len(low) > 0:
		return []Finding{warn(rigSubject, "no root bus has address space above 4 GiB").saw("off, or not needed so far", "on").
			because(evs(windows[0].Source, describeWindows(windows))).fix("firmware.above-4g/off")}
	case seen:
		return []Finding{unknown(rigSubject, "the cards' small BARs lie below 4 GiB; that happens with the switch on and off").saw("BARs below 4 GiB", "on").
			because(barEvidence(s, low[0])...).knownBy(howToKnow[facts.KindIOMem])}
	}
	return []Finding{unknown(rigSubject, "no address of a card's memory is known").knownBy("give a snapshot of the host, or lspci -vvv")}
}

// unassigned finds cards whose registers or aperture got no address.
func unassigned(s Subject) []Finding {
	var out []Finding
	for _, c := range s.Cards {
		if b, bad := unassignedBAR(c); bad {
			out = append(out, fail(c.BDF, "%s: BAR%d has no address", c.BDF, b.Index).saw("unassigned", "an address").
				because(evs(b.Source, fmt.Sprintf("start %#x size %#x", b.Start, b.Size))).because(logLines(s, c)...).fix("firmware.above-4g/unassigned", "bdf", c.BDF))
			continue
		}
		for _, e := range s.Host.Log.Events {
			if e.Kind == "bar-invalid" && e.BDF == c.BDF && len(c.BARs) == 0 {
				out = append(out, fail(c.BDF, "%s: the driver found BAR%d without an address", c.BDF, e.Code).saw("unassigned", "an address").
					because(evs(e.Source, e.Text)).fix("firmware.above-4g/unassigned", "bdf", c.BDF))
				break
			}
		}
	}
	if len(s.Cards) == 0 {
		out = append(out, unassignedInLog(s)...)
	}
	return out
}

// unassignedInLog: with nothing but a kernel log, the driver's own words still name the card.
func unassignedInLog(s Subject) []Finding {
	var out []Finding
	for _, e := range s.Host.Log.Events {
		if e.Kind == "bar-invalid" {
			out = append(out, fail(e.BDF, "%s: the driver found BAR%d without an address", e.BDF, e.Code).saw("unassigned", "an address").
				because(evs(e.Source, e.Text)).fix("firmware.above-4g/unassigned", "bdf", e.BDF))
		}
	}
	return out
}

// unassignedBAR looks at BAR0 and at the aperture: BAR1, or BAR2 where BAR0 takes two registers. A card that left
// the bus keeps its BARs, so it is not mistaken for one.
func unassignedBAR(c facts.Card) (facts.BAR, bool) {
	var bar0, aperture facts.BAR
	for _, b := range c.BARs {
		switch {
		case b.Index == 0:
			bar0 = b
		case b.Index == 1 && !bar0.Mem64, b.Index == 2 && bar0.Mem64:
			aperture = b
		}
	}
	if len(c.BARs) == 0 {
		return facts.BAR{}, false
	}
	for _, b := range []facts.BAR{bar0, aperture} {
		if b.Unassigned || (b.Size == 0 && b.Source != "") {
			return b, true
		}
	}
	return facts.BAR{}, false
}

func logLines(s Subject, c facts.Card) []Evidence {
	var out []Evidence
	for _, e := range s.Host.Log.Events {
		related := e.BDF == c.BDF
		for _, up := range c.Chain {
			related = related || e.BDF == up
		}
		if related && (e.Kind == "bar" || e.Kind == "bar-invalid") && len(out) < 3 {
			out = append(out, evs(e.Source, e.Text))
		}
	}
	return out
}

// cardsAbove parts the cards by where their 64-bit memory BARs lie; seen is false when no address is known.
func cardsAbove(s Subject) (high, low []facts.Card, seen bool) {
	for _, c := range s.Cards {
		above, any := c.BAR1MiB.Value > 4096, false
		for _, b := range c.BARs {
			if b.Mem && b.Mem64 {
				any = true
				above = above || b.Start >= fourGiB
			}
		}
		switch {
		case above:
			high = append(high, c)
		case any:
			low = append(low, c)
		}
		seen = seen || any
	}
	return high, low, seen
}

func barEvidence(s Subject, c facts.Card) []Evidence {
	for _, b := range c.BARs {
		if b.Mem && b.Mem64 {
			return []Evidence{evs(b.Source, fmt.Sprintf("%#x, %d MiB", b.Start, b.Size>>20))}
		}
	}
	return []Evidence{ev(c.BAR1MiB)}
}

// rootWindows are the root buses' memory windows; tell is true when they are known well enough that the absence of
// one above 4 GiB means something. /proc/iomem is whole; a kernel log may have lost its beginning, so it must name a
// window of every card's root bus.
func rootWindows(s Subject) (windows []facts.Window, tell bool) {
	named := map[string]bool{}
	tell = true
	for _, w := range s.Host.Windows {
		if w.End > 0xfffff { // the legacy VGA range below 1 MiB is a window too
			windows = append(windows, w)
			named[w.Bus] = true
		}
	}
	if len(windows) > 0 && strings.HasPrefix(windows[0].Source, "cmd:") { // iomem is read before the log
		tell = len(s.Cards) > 0
		for _, c := range s.Cards {
			tell = tell && named[c.RootBus]
		}
	}
	return windows, tell && len(windows) > 0
}

func describeWindows(ws []facts.Window) string {
	var out []string
	for _, w := range ws {
		out = append(out, fmt.Sprintf("%s %#x-%#x", w.Bus, w.Start, w.End))
		if len(out) == 4 {
			break
		}
	}
	return strings.Join(out, "; ")
}
