package checks

import (
	"fmt"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// burn-in.power: do supplies, cables and slots bear all cards at full load at once?
//
//	the host went silent under load and was started anew, or does not answer    fail: with the supplies' arithmetic
//	the host went silent and had never stopped                                  unknown: the network did
//	a card was lost (Xid 79, nvidia-smi), or stopped computing                  fail
//	samples stayed away, somebody stopped it                                    unknown
//	a card reached less than 0.75 (burn_load) of its power limit, and was
//	not held at it by the software power cap                                    warn: the load proves little
//	no power was told                                                           unknown
//	none of these                                                               pass
//
// All cards begin at the same moment, so that the step is the largest that the supplies will see. Kernels of PTX reach about
// 60 % of a Hopper's speed (its own tensor instructions are not portable), so that 0.6 suffices there.
var burnPower = Check{ID: "burn-in.power", Title: "power under load", Metal: true, Decide: decideBurnPower}

// hopperLoad is the share of the limit that proves load on Hopper and later.
const hopperLoad = 0.6

func decideBurnPower(s Subject) []Finding {
	if f, none := unburnt(s); none {
		return []Finding{f}
	}
	b := s.Host.BurnIn
	if b.Ended == facts.BurnLostHost {
		return []Finding{lostHost(s, b)}
	}
	if lost := cardsLost(b); len(lost) > 0 {
		return lost
	}
	if f, cut := cutShort(b); cut && b.Ended != facts.BurnHot {
		return []Finding{f}
	}
	var out []Finding
	told, total := 0, 0.0
	tracks := burnTracks(s, b)
	for _, t := range tracks {
		drawn, ok := t.steady().peak(sample.Power)
		limit, limited := t.steady().peak(sample.PowerLimit)
		if !ok || !limited || limit == 0 {
			continue
		}
		told++
		total += drawn
		if f, low := lowLoad(s, b, t, drawn, limit); low {
			out = append(out, f)
		}
	}
	if told < len(tracks) || told == 0 {
		return orWhole(out, unknown(rigSubject, "%d of %d cards told their power under load", told, max(len(tracks), len(s.Cards))).knownBy("measure at the socket: the driver does not tell"))
	}
	return orWhole(out, pass(rigSubject, "all %s bear full load at once, %.0f W together", plural(told, "card"), total).
		saw(fmt.Sprintf("%.0f W", total), fmt.Sprintf("each ≥ %g of its limit", s.Policy.BurnLoad)).because(evs(b.Source, fmt.Sprintf("%s of load", loadTime(b)))))
}

// lostHost judges a host that went silent under load.
func lostHost(s Subject, b *facts.BurnIn) Finding {
	evidence := []Evidence{evs(b.Source, b.Text)}
	switch b.After {
	case facts.AfterSameBoot:
		return unknown(rigSubject, "the connection broke after %s of load; the host had not stopped", loadTime(b)).because(evidence...).knownBy("mend the network to it, and run it again")
	case "":
		return unknown(rigSubject, "the host went silent after %s of load; whether it was started anew is not known", loadTime(b)).because(evidence...).knownBy("compare the uptime of the host with the time of the run")
	}
	f := fail(rigSubject, "the host switched itself off after %s of load: it was started anew", loadTime(b))
	if b.After == facts.AfterSilent {
		f = fail(rigSubject, "the host vanished after %s of load, and does not answer", loadTime(b))
	}
	f = f.because(evidence...).fix("burn-in.power/host-lost")
	if all, ok := wholeDraw(s); ok {
		f = f.because(all.evidence()...).noting("%s", all.words())
		if usable := declaredWatts(s); usable > 0 {
			f = f.saw(fmt.Sprintf("%.0f W needed", all.total()), fmt.Sprintf("%.0f W usable", usable))
		}
	}
	return f
}

// declaredWatts are what the declared supplies give without the spare ones.
func declaredWatts(s Subject) float64 {
	var sum float64
	for _, p := range s.Rig.PSUs {
		sum += usable(p)
	}
	return sum
}

// cardsLost are the cards that fell off or stopped computing.
func cardsLost(b *facts.BurnIn) []Finding {
	var out []Finding
	said := map[string]bool{}
	put := func(bdf, summary, observed string) {
		if !said[bdf] {
			said[bdf] = true
			out = append(out, fail(bdf, "%s", summary).saw(observed, "computes on").because(evs(b.Source, firstOf(b.Text, observed))).fix("burn-in.power/card-lost", "bdf", bdf))
		}
	}
	if b.Series != nil {
		for _, e := range b.Series.Events {
			switch {
			case e.BDF == "":
			case e.Kind == "xid" && e.Xid == 79:
				put(e.BDF, e.BDF+" fell off the bus under load (Xid 79)", "Xid 79")
			case e.Kind == "lost":
				put(e.BDF, e.BDF+" was lost under load", "lost")
			}
		}
	}
	for _, c := range b.Cards {
		if c.Error != "" && c.Key != "ecc" {
			put(c.BDF, fmt.Sprintf("%s stopped computing under load: %s", c.BDF, c.Error), c.Error)
		}
	}
	switch b.Ended {
	case facts.BurnXid, facts.BurnLostCard, facts.BurnHang:
		if len(out) == 0 {
			out = append(out, fail(rigSubject, "a card was lost under load: %s", b.Text).because(evs(b.Source, b.Text)).fix("burn-in.power/card-lost", "bdf", firstAddress(b.Text)))
		}
	case facts.BurnError:
		if len(out) == 0 {
			out = append(out, unknown(rigSubject, "the load ended after %s: %s", loadTime(b), b.Text).because(evs(b.Source, b.Text)).knownBy("run it again; if it stays, look at the kernel's log"))
		}
	}
	return out
}

// lowLoad says whether a card drew too little for the load to prove anything.
func lowLoad(s Subject, b *facts.BurnIn, t burnTrack, drawn, limit float64) (Finding, bool) {
	want := s.Policy.BurnLoad
	if c, ok := cardOf(s, t.bdf); ok && want > hopperLoad && laterThanAda(s, c) {
		want = hopperLoad
	}
	if drawn >= want*limit || t.samplesWith(sample.ReasonPowerCap) > 0 {
		return Finding{}, false
	}
	return warn(t.bdf, "%s draws %.0f of %.0f W under load", t.bdf, drawn, limit).saw(fmt.Sprintf("%.0f W", drawn), fmt.Sprintf("≥ %.0f W", want*limit)).
		because(evs(b.Source, fmt.Sprintf("at most %.0f W, limit %.0f W", drawn, limit))).fix("burn-in.power/low-load", "bdf", t.bdf), true
}

// laterThanAda says whether a card's tensor cores want instructions that the kernels do not have.
func laterThanAda(s Subject, c facts.Card) bool {
	g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value)
	return ok && (g.Arch == "hopper" || g.Arch == "blackwell")
}
