package checks

import (
	"fmt"
	"strconv"

	"preflight/internal/facts"
)

// pcie.speed: can every card's link run at the card's own generation, and does it under load?
//
//	own: the card's generation (driver, else catalogue); reach: what card, ports and slot can all do
//	seen under load below reach        fail
//	a generation lost while the card computed (burn-in)   fail
//	reach below own                    warn: an older slot, CPU or riser, or a slot forced down in the BIOS
//	seen under load at reach           pass
//	not seen under load                pass: "capable of Gen N, not yet seen under load"
//	nothing above the card known       pass only if the card was busy at its own generation, else unknown
//
// Traps: an idle card at 2.5 GT/s is normal; a card's LnkCap is lowered by a forced slot, so it alone never is the
// card's own maximum. Source: sysfs link attributes, nvidia-smi pcie_gen, samples taken while a probe ran.
var pcieSpeed = Check{ID: "pcie.speed", Title: "PCIe link speed", Metal: true, Decide: decideSpeed}

func decideSpeed(s Subject) []Finding {
	if len(s.Cards) == 0 {
		return []Finding{unknown(rigSubject, "no card's link is known").knownBy("give a snapshot of the host, lspci -vvv as root or nvidia-smi -q -x")}
	}
	var out []Finding
	same := true
	for i, c := range s.Cards {
		f := speedOf(s, c)
		same = same && f.Verdict == Pass && f.Note == "" && (i == 0 || f.Observed == out[0].Observed)
		out = append(out, f)
	}
	if same {
		f := out[0]
		f.Subject, f.Summary = rigSubject, fmt.Sprintf("all %d cards: %s", len(out), f.Observed)
		return []Finding{f}
	}
	return out
}

func gen(n int) string { return "Gen" + strconv.Itoa(n) }

func speedOf(s Subject, c facts.Card) Finding {
	own, reach := ownGen(s, c), reachableGen(s, c)
	if c.Link.Broken.Value {
		return unknown(c.BDF, "%s left the bus", c.BDF).because(ev(c.Link.Broken)).knownBy("mend pcie.width first")
	}
	if !own.Known() || !reach.Known() {
		return unknown(c.BDF, "%s: what card or slot can do is not known", c.BDF).knownBy("give a snapshot of the host, or nvidia-smi -q -x of driver 525 or later")
	}
	if f, bad := slowed(s, c); bad {
		return f
	}
	evidence := []Evidence{ev(own), ev(reach), ev(c.Link.Speed), ev(c.Gen.Current)}
	loaded, at := loadedGen(s, c)
	switch {
	case loaded && at.Value < reach.Value:
		return fail(c.BDF, "%s runs Gen%d under load, Gen%d is possible", c.BDF, at.Value, reach.Value).saw(gen(at.Value), gen(reach.Value)).because(ev(at)).because(evidence...).
			fix("pcie.speed/under-load", "bdf", c.BDF, "gen", gen(at.Value), "expected", gen(reach.Value))
	case reach.Value < own.Value:
		return warn(c.BDF, "%s can do Gen%d, its slot allows Gen%d", c.BDF, own.Value, reach.Value).saw(gen(reach.Value), gen(own.Value)).because(evidence...).
			fix("pcie.speed/slot-gen", "bdf", c.BDF, "gen", gen(reach.Value), "expected", gen(own.Value))
	case loaded:
		return pass(c.BDF, "%s runs Gen%d under load", c.BDF, at.Value).saw(fmt.Sprintf("Gen%d, seen under load", at.Value), gen(own.Value)).because(ev(at)).because(evidence...)
	case !aboveKnown(s, c):
		return unknown(c.BDF, "%s can do Gen%d; what the slot can do is not known", c.BDF, own.Value).saw("", gen(own.Value)).because(evidence...).
			knownBy("give a snapshot of the host, or look while the card is busy")
	}
	return pass(c.BDF, "%s is capable of Gen%d, not yet seen under load", c.BDF, reach.Value).
		saw(fmt.Sprintf("capable of Gen%d, not yet seen under load", reach.Value), gen(own.Value)).because(evidence...)
}

// aboveKnown says whether anything above the card is known: a port, or the host's maximum from the driver.
func aboveKnown(s Subject, c facts.Card) bool {
	hs := s.hops(c)
	h := hs[len(hs)-1]
	return h.hasUpper && h.upper.Link.MaxSpeed.Known() || c.Gen.HostMax.Known() || (c.Gen.Max.Known() && !c.Gen.DeviceMax.Known())
}

// loadedGen is the generation at a moment when the card was certainly not idle: a probe's sample, or nvidia-smi's
// snapshot of a card in P0 to P2 with work.
func loadedGen(s Subject, c facts.Card) (bool, facts.Fact[int]) {
	if l, ok := s.sample(c.BDF); ok && l.Speed > 0 {
		return true, facts.Of(generation(l.Speed), l.Source)
	}
	busy := c.PState.Value == "P0" || c.PState.Value == "P1" || c.PState.Value == "P2"
	if busy && c.Utilization.Value > 0 && c.Gen.Current.Known() {
		return true, c.Gen.Current
	}
	return false, facts.Fact[int]{}
}
