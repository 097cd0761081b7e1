package checks

import (
	"fmt"
	"math/bits"
	"strings"

	"preflight/internal/facts"
)

// pcie.errors: do the links of the cards lose packets?
//
// Of each card and each bridge above it, since boot:
//
//	fatal or non-fatal errors, counted or logged                         fail
//	link errors (RxErr, BadTLP, BadDLLP, Rollover, Timeout)
//	    more than 100 a day                                              fail
//	    counted, logged, or left in the status register                  warn
//	replays counted by the card itself                                   warn
//	the OS owns AER, counters of every card's link read, none of these   pass
//	the firmware kept AER: counters stay 0 whatever happens              unknown
//	owner of AER not known, or a link without counters                   unknown
//
// A status register is believed only where the kernel does not clear it, and RxErr alone not even there: training leaves
// it. Errors of functions that lead to no card are none of this. Sources: sysfs aer_dev_*, the kernel's log, capability
// 0001h, nvidia-smi.
var pcieErrors = Check{ID: "pcie.errors", Title: "PCIe errors", Metal: true, Decide: decidePCIeErrors}

// errorsPerDay is the rate of corrected link errors from which a link is not fit. Policy.
const errorsPerDay = 100

// corrBits are link errors of the correctable status word: BadTLP, BadDLLP, Rollover, Timeout. uncorrBits are those of
// the uncorrectable one that no healthy machine leaves: DLP, SDES, poisoned, FCP, CmpltTO, RxOF, MalfTLP, ECRC.
var (
	corrBits   = map[int]string{6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout"}
	uncorrBits = map[int]string{4: "DLP", 5: "SDES", 12: "PoisonedTLP", 13: "FCP", 14: "CmpltTO", 17: "RxOF", 18: "MalfTLP", 19: "ECRC"}
)

func decidePCIeErrors(s Subject) []Finding {
	var bySubject []string
	problems := map[string][]Finding{}
	add := func(f Finding) {
		if problems[f.Subject] == nil {
			bySubject = append(bySubject, f.Subject)
		}
		problems[f.Subject] = append(problems[f.Subject], f)
	}
	for _, fn := range errorFunctions(s) {
		for _, f := range functionErrors(s, fn) {
			add(f)
		}
	}
	for _, f := range loggedErrors(s) {
		add(f)
	}
	for _, c := range s.Cards {
		if n := c.Replays.Value; n > 0 {
			add(warn(c.BDF, "%s sent %d packets again", c.BDF, n).saw(fmt.Sprint(n), "0").because(ev(c.Replays)).fix("pcie.errors/link", "bdf", c.BDF))
		}
	}
	if len(bySubject) == 0 {
		return []Finding{errorState(s)}
	}
	out := make([]Finding, 0, len(bySubject))
	for _, subject := range bySubject {
		out = append(out, worstOf(problems[subject]))
	}
	return out
}

// errorFunction is a card or a bridge above one. Subject is the card where it leads to just one, so that causes meet.
type errorFunction struct {
	dev     facts.Device
	subject string
}

func errorFunctions(s Subject) []errorFunction {
	below := map[string][]string{}
	var bdfs []string
	put := func(bdf, card string) {
		if below[bdf] == nil {
			bdfs = append(bdfs, bdf)
		}
		below[bdf] = append(below[bdf], card)
	}
	cards := map[string]facts.Device{}
	for _, c := range s.Cards {
		cards[c.BDF] = c.Device
		put(c.BDF, c.BDF)
		for _, b := range c.Chain {
			put(b, c.BDF)
		}
	}
	var out []errorFunction
	for _, bdf := range bdfs {
		d, ok := cards[bdf]
		if !ok {
			d, ok = s.device(bdf)
		}
		subject := bdf
		if len(below[bdf]) == 1 {
			subject = below[bdf][0]
		}
		if ok {
			out = append(out, errorFunction{d, subject})
		}
	}
	return out
}

// functionErrors judges the counters of one function, and its status registers where nobody clears them.
func functionErrors(s Subject, fn errorFunction) []Finding {
	var out []Finding
	a, bdf := fn.dev.AER, fn.dev.BDF
	where := "pcie.errors/link"
	for _, c := range []struct {
		word  string
		count facts.Fact[int64]
	}{{"fatal", a.CountFatal}, {"non-fatal", a.CountNonFatal}} {
		if n := c.count.Value; n > 0 {
			out = append(out, fail(fn.subject, "%s: %d %s errors since boot", bdf, n, c.word).saw(fmt.Sprint(n), "0").because(ev(c.count)).fix("pcie.errors/uncorrected", "bdf", bdf))
		}
	}
	if n := a.CountCorr.Value; n > 0 {
		days := max(1, float64(s.Host.OS.UptimeS.Value)/86400)
		f := warn(fn.subject, "%s: %d corrected link errors since boot", bdf, n)
		if rate := float64(n) / days; rate > errorsPerDay && s.Host.OS.UptimeS.Known() {
			f = fail(fn.subject, "%s: %d corrected link errors since boot, %.0f a day", bdf, n, rate)
		}
		out = append(out, f.saw(fmt.Sprint(n), "0").because(ev(a.CountCorr), ev(s.Host.OS.UptimeS)).fix(where, "bdf", bdf))
	}
	if s.Host.AEROwned.Value {
		return out
	}
	if names := bitNames(a.Uncorrectable.Value, uncorrBits); names != "" {
		out = append(out, warn(fn.subject, "%s remembers errors: %s", bdf, names).saw(names, "none").because(ev(a.Uncorrectable)).
			noting("the register keeps them until it is cleared: the time is not known").fix("pcie.errors/uncorrected", "bdf", bdf))
	}
	if names := bitNames(a.Correctable.Value, corrBits); names != "" {
		out = append(out, warn(fn.subject, "%s remembers corrected link errors: %s", bdf, names).saw(names, "none").because(ev(a.Correctable)).
			noting("the register keeps them until it is cleared: the time is not known").fix(where, "bdf", bdf))
	}
	return out
}

// bitNames names the bits of a word that have a name, lowest first.
func bitNames(word int, names map[int]string) string {
	var out []string
	for w := uint(word); w != 0; w &= w - 1 {
		if n := names[bits.TrailingZeros(w)]; n != "" {
			out = append(out, n)
		}
	}
	return strings.Join(out, " ")
}

// loggedErrors are the kernel's lines about cards and the bridges above them. Where bridges are not known, those of any
// port and of the driver's devices count.
func loggedErrors(s Subject) []Finding {
	subject := map[string]string{}
	whole := len(s.Cards) > 0
	for _, fn := range errorFunctions(s) {
		subject[fn.dev.BDF] = fn.subject
	}
	for _, c := range s.Cards {
		whole = whole && len(c.Chain) > 0
	}
	var out []Finding
	said := map[string]bool{}
	for _, e := range s.Host.Log.Events {
		if !strings.HasPrefix(e.Kind, "aer") || said[e.Kind+e.BDF] {
			continue
		}
		said[e.Kind+e.BDF] = true
		about := subject[e.BDF]
		if about == "" && !whole && (saidBy(e, "pcieport") || saidBy(e, "nvidia")) {
			about = e.BDF
		}
		if about == "" {
			continue
		}
		switch e.Kind {
		case "aer":
			out = append(out, warn(about, "the kernel logged corrected errors of %s", e.BDF).saw("corrected errors", "none").because(evs(e.Source, e.Text)).fix("pcie.errors/link", "bdf", e.BDF))
		default:
			out = append(out, fail(about, "the kernel logged errors of %s that were not corrected", e.BDF).saw("uncorrected errors", "none").because(evs(e.Source, e.Text)).
				fix("pcie.errors/uncorrected", "bdf", e.BDF))
		}
	}
	return out
}

// uncounted are the cards neither of whose link's ends has a counter: the card itself, and the port above it.
func uncounted(s Subject) []facts.Card {
	var out []facts.Card
	for _, c := range s.Cards {
		counts := c.AER.CountCorr.Known()
		if n := len(c.Chain); n > 0 {
			port, _ := s.device(c.Chain[n-1])
			counts = counts || port.AER.CountCorr.Known()
		}
		if !counts {
			out = append(out, c)
		}
	}
	return out
}

// errorState is what remains when no error was seen.
func errorState(s Subject) Finding {
	owned, known := s.Host.AEROwned.Get()
	without := uncounted(s)
	switch {
	case strings.Contains(s.Host.OS.Cmdline.Value, "noaer"):
		return unknown(rigSubject, "pci=noaer hides PCIe errors").because(ev(s.Host.OS.Cmdline)).knownBy("take pci=noaer off the kernel's command line, and reboot")
	case known && !owned:
		return unknown(rigSubject, "the firmware keeps PCIe errors to itself: the kernel's counters stay 0").because(ev(s.Host.AEROwned)).
			knownBy("read the BMC's event log (ipmitool sel list), or let the OS handle AER: BIOS, or pcie_ports=native on the kernel's command line")
	case len(without) == len(s.Cards):
		return unknown(rigSubject, "no error counters of the cards' links in the input").knownBy("give a snapshot of the host (preflight collect)")
	case len(without) > 0:
		return unknown(rigSubject, "no error counters of the links of %s", bdfs(without)).knownBy("give a snapshot of the host (preflight collect)")
	case !known:
		return unknown(rigSubject, "the counters are 0, but who handles PCIe errors is not known").knownBy(readTheLog)
	}
	return pass(rigSubject, "no PCIe error since boot on the way to %s", plural(len(s.Cards), "card")).because(ev(s.Host.AEROwned), ev(s.Cards[0].AER.CountCorr))
}
