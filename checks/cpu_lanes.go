package checks

import (
	"fmt"

	"preflight/internal/facts"
)

// cpu.lanes: has the processor enough PCIe lanes for x16 to every card?
//
//	every card already runs its own width from CPU root ports    pass, whatever the table says: measured beats table
//	cards behind switches                                        pass here; pcie.uplink judges the sharing
//	usable lanes × sockets ≥ cards × 16                          pass
//	fewer, x8 fits and policy allows it (1–2 cards, allow_x8)    warn
//	fewer                                                        fail; warn when the figure is only recalled
//	processor unknown, nothing measured                          unknown
//
// Linux has no lane counter: usable lanes come from the catalogue by model name, the chipset's link left out.
var cpuLanes = Check{ID: "cpu.lanes", Title: "CPU lanes", Metal: true, Decide: decideLanes}

func decideLanes(s Subject) []Finding {
	n := cardCount(s)
	if n == 0 {
		return []Finding{unknown(rigSubject, "the number of cards is not known").knownBy("declare `cards` in rigs.hcl")}
	}
	if measured, how := lanesMeasured(s, n); measured {
		return []Finding{pass(rigSubject, "%s", how).saw(how, "x16 for each card")}
	}
	model := s.Host.CPU.Model
	cpu, ok := s.Cat.CPU(model.Value)
	if !model.Known() || !ok || cpu.Usable == 0 {
		if !model.Known() {
			return []Finding{unknown(rigSubject, "the processor is not known").knownBy("give /proc/cpuinfo, or a snapshot of the host")}
		}
		return []Finding{unknown(rigSubject, "the lanes of %q are not known", model.Value).because(ev(model)).knownBy("add the processor to the catalogue, or give a snapshot of the host")}
	}
	sockets := s.Host.CPU.Sockets.Or(1)
	have, need := cpu.Usable*sockets, 16*n
	f := Finding{Subject: rigSubject, Observed: fmt.Sprintf("%d", have), Expected: fmt.Sprintf("%d", need)}.
		because(ev(model), ev(s.Host.CPU.Sockets), evs("catalogue:"+cpu.Family, fmt.Sprintf("%d usable lanes a socket", cpu.Usable)))
	f.Summary = fmt.Sprintf("%s: %d lanes for %s", cpu.Family, have, plural(n, "card"))
	f = f.fix("cpu.lanes/short", "lanes", fmt.Sprint(have), "needed", fmt.Sprint(need))
	switch {
	case have >= need:
		f.Verdict, f.Remedy, f.Args = Pass, "", nil
	case have >= 8*n && (n <= 2 || s.Policy.AllowX8):
		f.Verdict = Warn
		f = f.noting("x8 for each card is all that is possible")
	case !cpu.Confirmed["lanes"]:
		f.Verdict = Warn
		f = f.noting("the lane count is recalled, not confirmed")
	default:
		f.Verdict = Fail
		f = f.noting("x16 for every card is impossible without a PCIe switch")
	}
	return []Finding{f}
}

// lanesMeasured: every expected card is there, runs all its own lanes and hangs on CPU ports or on a switch.
func lanesMeasured(s Subject, n int) (bool, string) {
	if len(s.Cards) < n {
		return false, ""
	}
	switched := false
	for _, c := range s.Cards {
		if len(c.Chain) == 0 || chipsetPort(s, c) != "" {
			return false, ""
		}
		switched = switched || len(c.Chain) >= 3
		hs := s.hops(c)
		w, own := cardWidth(s, c, hs[len(hs)-1]), ownWidth(s, c)
		if !w.Known() || !own.Known() || w.Value < own.Value {
			return false, ""
		}
	}
	if switched {
		return true, "all cards run their full width, behind a switch"
	}
	return true, fmt.Sprintf("all %d cards run their full width from CPU root ports", len(s.Cards))
}

// cpu.cores: are there enough physical cores to feed the cards?
//
//	cores ≥ wanted            pass
//	half of it or more        warn
//	less                      fail
//
// Wanted by policy: 8 for 1–2 cards, 16 for 3–4, 32 from 5 on. Physical cores, not threads.
var cpuCores = Check{ID: "cpu.cores", Title: "CPU cores", Needs: []facts.Kind{facts.KindCPU}, Decide: decideCores}

func decideCores(s Subject) []Finding {
	if cardCount(s) == 0 {
		return []Finding{unknown(rigSubject, "how much is wanted depends on the number of cards, which is not known").knownBy("declare `cards` in rigs.hcl")}
	}
	c := s.Host.CPU
	cores := c.Cores
	if !cores.Known() {
		if !c.Threads.Known() {
			return []Finding{unknown(rigSubject, "/proc/cpuinfo names no cores").knownBy("give a snapshot of the host")}
		}
		return []Finding{unknown(rigSubject, "%d threads; how many physical cores is not in /proc/cpuinfo", c.Threads.Value).because(ev(c.Threads)).knownBy("give lscpu")}
	}
	want := s.Policy.Cores
	f := Finding{Subject: rigSubject, Verdict: Pass, Observed: fmt.Sprint(cores.Value), Expected: fmt.Sprintf("≥ %d", want)}.because(ev(cores), ev(c.Model))
	f.Summary = fmt.Sprintf("%d physical cores, %d wanted", cores.Value, want)
	if cores.Value >= want {
		return []Finding{f}
	}
	f.Verdict = Warn
	if cores.Value*2 < want {
		f.Verdict = Fail
	}
	return []Finding{f.fix("cpu.cores/short", "cores", fmt.Sprint(cores.Value), "needed", fmt.Sprint(want))}
}
