package checks

import "fmt"

// power.mains: can the circuits carry the rig continuously?
//
//	wall draw = draw ÷ 0.92 (conversion loss of the supplies)
//	limit     = volts × amps × circuits × 0.8 (continuous share of a breaker's rating)
//	draw above the limit      fail
//	else                      pass
//	not declared              unknown
//
// The 0.8 is the rule of North American code for continuous loads and a sensible policy elsewhere; `mains_load`
// changes it.
var powerMains = Check{ID: "power.mains", Title: "mains circuits", Metal: true, Decide: decideMains}

// supplyEfficiency turns output watts into watts at the wall; 80 PLUS Gold and Platinum units at half load. Policy.
const supplyEfficiency = 0.92

func decideMains(s Subject) []Finding {
	m := s.Rig.Mains
	if m == nil {
		return []Finding{unknown(rigSubject, "no mains circuit is declared").knownBy("declare mains { volts = …, amps = …, circuits = … } in rigs.hcl")}
	}
	all, ok := wholeDraw(s)
	if !ok {
		return []Finding{unknown(rigSubject, "the draw of cards or processors is not known").knownBy("give a snapshot of the host")}
	}
	wall, limit, _ := mainsLoad(s)
	f := Finding{Subject: rigSubject, Verdict: Pass, Observed: fmt.Sprintf("%.0f W", wall), Expected: fmt.Sprintf("≤ %.0f W", limit)}.
		because(evs("rigs.hcl:mains", fmt.Sprintf("%g V × %g A × %d", m.Volts, m.Amps, max(m.Circuits, 1)))).because(all.evidence()...).
		noting("%.0f W ÷ %.2f at the wall; limit %g V × %g A × %d × %g", all.total(), supplyEfficiency, m.Volts, m.Amps, max(m.Circuits, 1), s.Policy.MainsLoad)
	f.Summary = fmt.Sprintf("%.0f W at the wall, %.0f W allowed", wall, limit)
	if wall <= limit {
		return []Finding{f}
	}
	f.Verdict = Fail
	if all.recalled() {
		f.Verdict = Warn
		f = f.noting("the draw rests on recalled figures")
	}
	return []Finding{f.fix("power.mains/short", "draw", fmt.Sprintf("%.0f W", wall), "limit", fmt.Sprintf("%.0f W", limit))}
}

// wholeDraw is everything that the rig draws.
func wholeDraw(s Subject) (draw, bool) {
	cards, ok := cardDraw(s, s.Cards, false)
	cpu, okCPU := cpuDraw(s)
	if !ok || !okCPU {
		return nil, false
	}
	all := append(append(draw{}, cards...), cpu, platformDraw(s))
	return append(all, missingDraw(s, cards)...), true
}

// mainsLoad is the draw at the wall, and what the declared circuits carry continuously, watts.
func mainsLoad(s Subject) (wall, limit float64, ok bool) {
	all, ok := wholeDraw(s)
	m := s.Rig.Mains
	if !ok || m == nil {
		return 0, 0, false
	}
	return all.total() / supplyEfficiency, m.Volts * m.Amps * float64(max(m.Circuits, 1)) * s.Policy.MainsLoad, true
}
