package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// drawLine is one row of the power arithmetic: watts at the supplies' output.
type drawLine struct {
	what     string
	watts    float64
	source   string
	recalled bool // a figure nobody confirmed: it cannot decide a fail alone
}

type draw []drawLine

func (d draw) total() float64 {
	var sum float64
	for _, l := range d {
		sum += l.watts
	}
	return sum
}

// recalled says whether a big part (cards or processors) rests on an unconfirmed figure.
func (d draw) recalled() bool {
	for _, l := range d {
		if l.recalled {
			return true
		}
	}
	return false
}

func (d draw) evidence() []Evidence {
	var out []Evidence
	for _, l := range d {
		out = append(out, evs(l.source, fmt.Sprintf("%s: %.0f W", l.what, l.watts)))
	}
	return out
}

func (d draw) words() string {
	var out []string
	for _, l := range d {
		out = append(out, fmt.Sprintf("%s %.0f", l.what, l.watts))
	}
	return strings.Join(out, " + ") + fmt.Sprintf(" = %.0f W", d.total())
}

// limitOf is the power limit that a card is reckoned with: the one in force, or the default it falls back to at a
// reboot, else the catalogue's board power.
func limitOf(s Subject, c facts.Card, atBoot bool) (drawLine, bool) {
	f := c.PowerLimit
	if atBoot {
		f = facts.First(c.PowerDefault, c.PowerLimit)
	}
	f = facts.First(f, c.PowerMax)
	if f.Known() {
		return drawLine{what: c.BDF, watts: f.Value, source: f.Source}, true
	}
	g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value)
	if !ok || g.TDPWatts == 0 {
		return drawLine{}, false
	}
	return drawLine{what: c.BDF, watts: g.TDPWatts, source: "catalogue:" + g.Slug, recalled: !g.Confirmed["tdp"]}, true
}

// cardDraw lists the cards; cards that are declared but not seen count like the first one seen, since a power budget
// must hold for the whole rig.
func cardDraw(s Subject, cards []facts.Card, atBoot bool) (draw, bool) {
	var out draw
	for _, c := range cards {
		l, ok := limitOf(s, c, atBoot)
		if !ok {
			return nil, false
		}
		out = append(out, l)
	}
	return out, len(out) > 0
}

// missingDraw stands for declared cards that are not seen.
func missingDraw(s Subject, seen draw) draw {
	n := cardCount(s) - len(s.Cards)
	if n <= 0 || len(seen) == 0 {
		return nil
	}
	return draw{{what: plural(n, "card") + " not seen", watts: seen[0].watts * float64(n), source: seen[0].source, recalled: seen[0].recalled}}
}

// cpuDraw is the processors at their package limit (PL2 or PPT), else at the catalogue's watts.
func cpuDraw(s Subject) (drawLine, bool) {
	c := s.Host.CPU
	n := c.Sockets.Or(1)
	what := plural(n, "CPU")
	if w, ok := c.LimitWatts.Get(); ok && w < 1000 {
		return drawLine{what: what, watts: w * float64(n), source: c.LimitWatts.Source}, true
	}
	if m, ok := s.Cat.CPUModel(c.Model.Value); ok && max(m.TDPWatts, m.PeakWatts) > 0 {
		return drawLine{what: what, watts: max(m.TDPWatts, m.PeakWatts) * float64(n), source: "catalogue:" + m.Name}, true
	}
	if f, ok := s.Cat.CPU(c.Model.Value); ok && max(f.TDPWatts, f.PeakWatts) > 0 {
		return drawLine{what: what, watts: max(f.TDPWatts, f.PeakWatts) * float64(n), source: "catalogue:" + f.Family, recalled: !f.Confirmed["tdp"]}, true
	}
	return drawLine{}, false
}

// platformDraw estimates board, memory, drives, network and fans from what is fitted.
func platformDraw(s Subject) drawLine {
	typical := func(key string) float64 { return s.Cat.Watts[key].Typical }
	server := s.Host.CPU.Sockets.Or(1) > 1 || len(s.Host.PSUs) > 1 || s.Host.Board.ChassisType.Value == 17 || s.Host.Board.ChassisType.Value == 23
	w := typical("desktop_board") + 4*typical("fan_120_140mm")
	dimm, count := typical("dimm_ddr4_udimm"), 0
	if server {
		w, dimm = typical("server_board_with_bmc")+4*typical("fan_server_60_80mm"), typical("dimm_ddr4_rdimm")
	}
	for _, d := range s.Host.Memory.DIMMs {
		if d.SizeMiB > 0 {
			count++
		}
	}
	if count == 0 {
		count = 4
	}
	w += dimm * float64(count)
	for _, d := range s.Host.Disks {
		if d.NVMe {
			w += typical("nvme_m2")
		} else {
			w += typical("sata_ssd")
		}
	}
	for _, d := range s.Host.PCI {
		if strings.HasPrefix(d.Class, "02") && strings.HasSuffix(d.BDF, ".0") {
			w += typical("nic_1g")
		}
	}
	return drawLine{what: "board, memory, drives, fans", watts: w, source: "catalogue:power (estimate)"}
}
