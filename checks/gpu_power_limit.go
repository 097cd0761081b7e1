package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// gpu.power-limit: may each card draw what it was made for?
//
//	limit in force is the default, or above it                     pass
//	below the default, and a unit sets it at boot                  pass with a note: someone meant it
//	below the default otherwise                                    warn: slower now, and back to full draw after a reboot
//	the driver reports no limit for the card                       skip
//	limit or default not read                                      unknown
//
// A card that may draw no more than 150 or 300 W by its plug's sense pins shows that as its maximum: a note.
var gpuPowerLimit = Check{ID: "gpu.power-limit", Title: "power limits of the cards", Decide: decidePowerLimit}

// limitSlack is how far below its default a limit may be and still be the default, W: drivers round.
const limitSlack = 1

// senseCaps are the limits that the sense pins of a 16-pin plug impose below its full 600 W (450 W is a default of
// many cards, and says nothing), W. Source: PCIe CEM 5.1.
var senseCaps = map[float64]bool{150: true, 300: true}

func decidePowerLimit(s Subject) []Finding {
	var out []Finding
	var asDefault, silent, unread int
	var notes []string
	for _, c := range s.Cards {
		limit, def := c.PowerLimit, c.PowerDefault
		switch {
		case !limit.Known() && !def.Known() && c.Persistence.Known():
			silent++ // nvidia-smi -q was read, and prints N/A
		case !limit.Known() || !def.Known():
			unread++
		case limit.Value < def.Value-limitSlack && len(s.Host.CapUnits.Value) > 0:
			notes = append(notes, fmt.Sprintf("%s is set to %.0f of %.0f W at boot", c.BDF, limit.Value, def.Value))
			asDefault++
		case limit.Value < def.Value-limitSlack:
			out = append(out, loweredLimit(s, c))
		default:
			asDefault++
		}
		if g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value); ok && senseCaps[c.PowerMax.Value] && g.Confirmed["tdp"] && g.TDPWatts > c.PowerMax.Value {
			notes = append(notes, fmt.Sprintf("%s may draw no more than %.0f W: look at the sense pins of its plug", c.BDF, c.PowerMax.Value))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case asDefault > 0 && unread == 0:
		f := pass(rigSubject, "%s at the default limit", plural(asDefault, "card"))
		if len(notes) > 0 {
			f = pass(rigSubject, "%s at an intended limit", plural(asDefault, "card"))
		}
		return []Finding{f.because(ev(s.Cards[0].PowerLimit), ev(s.Cards[0].PowerDefault)).noting("%s", strings.Join(notes, "; "))}
	case silent > 0 && unread == 0:
		return []Finding{skip(rigSubject, "the driver reports no power limit for these cards")}
	}
	return []Finding{unknown(rigSubject, "the limits in force and their defaults were not read").knownBy("give nvidia-smi -q, or a snapshot of the host")}
}

func loweredLimit(s Subject, c facts.Card) Finding {
	limit, def := c.PowerLimit.Value, c.PowerDefault.Value
	f := warn(c.BDF, "%s may draw %.0f W, its default is %.0f W", c.BDF, limit, def).saw(fmt.Sprintf("%.0f W", limit), fmt.Sprintf("%.0f W", def)).
		because(ev(c.PowerLimit), ev(c.PowerDefault)).
		fix("gpu.power-limit/lowered", "bdf", c.BDF, "limit", fmt.Sprintf("%.0f", limit), "default", fmt.Sprintf("%.0f", def))
	if s.Host.CapUnits.Known() {
		f = f.noting("nothing sets it at boot: a reboot brings the default back")
	}
	return f
}
