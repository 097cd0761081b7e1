package checks

import (
	"preflight/internal/facts"
)

// hop is one PCIe link: the port above it and the function below it.
type hop struct {
	upper, lower facts.Device
	hasUpper     bool
}

// hops lists the links from the root port down to a card. Between a switch's upstream and downstream ports there is
// no link, so functions are taken in pairs from the root.
func (s Subject) hops(c facts.Card) []hop {
	n := len(c.Chain)
	if n == 0 {
		return []hop{{lower: c.Device}}
	}
	nodes := make([]facts.Device, 0, n+1)
	for _, bdf := range c.Chain {
		d, ok := s.device(bdf)
		if !ok {
			return []hop{{lower: c.Device}}
		}
		nodes = append(nodes, d)
	}
	nodes = append(nodes, c.Device)
	if len(nodes)%2 != 0 { // a bridge that is no PCIe port sits between: only the last link is certain
		return []hop{{upper: nodes[len(nodes)-2], lower: c.Device, hasUpper: true}}
	}
	var out []hop
	for i := 0; i+1 < len(nodes); i += 2 {
		out = append(out, hop{upper: nodes[i], lower: nodes[i+1], hasUpper: true})
	}
	return out
}

// width is the lanes in use: as sampled under load, else the wider of the two ends' readings.
func (h hop) width(s Subject) facts.Fact[int] {
	if l, ok := s.sample(h.lower.BDF); ok {
		return facts.Of(l.Width, l.Source)
	}
	return facts.First(h.lower.Link.Width, h.upper.Link.Width)
}

// capWidth is min(parent's maximum, child's maximum); absent when either is not known.
func (h hop) capWidth() facts.Fact[int] {
	if !h.hasUpper || !h.upper.Link.MaxWidth.Known() || !h.lower.Link.MaxWidth.Known() {
		return facts.Fact[int]{}
	}
	if h.upper.Link.MaxWidth.Value < h.lower.Link.MaxWidth.Value {
		return h.upper.Link.MaxWidth
	}
	return h.lower.Link.MaxWidth
}

// capSpeed is min(parent's maximum, child's maximum) in GT/s.
func (h hop) capSpeed() facts.Fact[float64] {
	switch up, low := h.upper.Link.MaxSpeed, h.lower.Link.MaxSpeed; {
	case !h.hasUpper || !up.Known():
		return low
	case !low.Known() || up.Value < low.Value:
		return up
	default:
		return low
	}
}

// sample is what a hop showed while a probe kept the cards busy.
func (s Subject) sample(bdf string) (facts.LinkSample, bool) {
	for _, l := range s.Host.Load {
		if l.BDF == bdf && l.Loaded && l.Width > 0 {
			return l, true
		}
	}
	return facts.LinkSample{}, false
}

// generation turns GT/s into the number that people say; 0 when unknown.
func generation(gts float64) int {
	switch {
	case gts >= 64:
		return 6
	case gts >= 32:
		return 5
	case gts >= 16:
		return 4
	case gts >= 8:
		return 3
	case gts >= 5:
		return 2
	case gts > 0:
		return 1
	}
	return 0
}

// laneGBs is the raw rate of one lane in one direction after line coding, GB/s (10^9), by generation: 8b/10b up to
// Gen2, 128b/130b up to Gen5, PAM4 FLITs in Gen6 (PCIe Base 6.0).
var laneGBs = map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.56}

// rawGBs is the raw rate of a link in one direction, GB/s.
func rawGBs(gen, lanes int) float64 { return laneGBs[gen] * float64(lanes) }

// planShare is what remains of the raw rate for data: packet headers at a payload of 256 bytes, and flow control.
// Measured 25.5–26 of 31.5 GB/s at Gen4 x16, 12–13 of 15.75 at Gen3 x16.
const planShare = 0.80

// ownGen is the highest generation of the card itself: what the driver says of the device, else the catalogue. Its
// LnkCap is not asked: a slot forced to a lower generation lowers it.
func ownGen(s Subject, c facts.Card) facts.Fact[int] {
	if c.Gen.DeviceMax.Known() {
		return c.Gen.DeviceMax
	}
	if g, ok := s.model(c); ok && g.Gen > 0 {
		return facts.Of(g.Gen, "catalogue:"+g.Slug)
	}
	return facts.Fact[int]{}
}

// ownWidth is the most lanes that the card itself has: its LnkCap (a port does not lower a card's width), else the
// driver's maximum, but no more than the catalogue says.
func ownWidth(s Subject, c facts.Card) facts.Fact[int] {
	w := facts.First(c.Link.MaxWidth, c.Gen.WidthMax)
	if g, ok := s.model(c); ok && g.Width > 0 && (!w.Known() || g.Width < w.Value) {
		return facts.Of(g.Width, "catalogue:"+g.Slug)
	}
	return w
}

// reachableGen is the generation that card, ports and slot can all do; absent when nothing above the card is known.
func reachableGen(s Subject, c facts.Card) facts.Fact[int] {
	var best facts.Fact[int]
	lower := func(gen int, src string) {
		if gen > 0 && (!best.Known() || gen < best.Value) {
			best = facts.Of(gen, src)
		}
	}
	if own := ownGen(s, c); own.Known() {
		lower(own.Value, own.Source)
	}
	for _, h := range s.hops(c) {
		if sp := h.capSpeed(); sp.Known() {
			lower(generation(sp.Value), sp.Source)
		}
	}
	// The driver's figures count only where sysfs gave none: it lowers `max` to what the host shows.
	if !c.Link.MaxSpeed.Known() {
		for _, f := range []facts.Fact[int]{c.Gen.Max, c.Gen.HostMax} {
			if f.Known() {
				lower(f.Value, f.Source)
			}
		}
	}
	return best
}
