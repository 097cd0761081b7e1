package checks

import (
	"strconv"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// Figures are the numbers behind the verdicts that a picture is drawn of. They come from the same functions as the
// findings, so that a picture can never tell something else than the text. What was not read is absent, never 0.
type Figures struct {
	Links     []LinkFigure   `json:"links"`
	Power     []PowerFigure  `json:"power"`
	Mains     *MainsFigure   `json:"mains,omitempty"`
	AllReduce []ReduceFigure `json:"all_reduce"`
	Places    []PlaceFigure  `json:"places"`
	BurnIn    *BurnFigure    `json:"burn_in,omitempty"`
	DDP       *DDPFigure     `json:"ddp,omitempty"`
}

// LinkFigure is one PCIe link on the way from the processor to a card that trains.
type LinkFigure struct {
	Upper  string `json:"upper,omitempty"` // BDF of the port above; absent when it was not seen
	Lower  string `json:"lower"`
	Lanes  int    `json:"lanes,omitempty"`          // in use
	Can    int    `json:"lanes_possible,omitempty"` // both ends
	Gen    int    `json:"generation,omitempty"`     // under load, else now
	GenCan int    `json:"generation_possible,omitempty"`
	Loaded bool   `json:"loaded"` // lanes and generation were seen while the card copied
	Cards  int    `json:"cards"`  // that share it
	// Bottleneck: this link is the slowest on the way to a card, and slower than the card itself could be.
	Bottleneck bool `json:"bottleneck"`
}

// PowerFigure is the arithmetic of one pool of supplies, watts at their output.
type PowerFigure struct {
	Name   string      `json:"name"`             // "rig", or "psu-2"
	Usable float64     `json:"usable,omitempty"` // absent when no supply is declared
	Rating string      `json:"rating,omitempty"` // "2000 W × 2"
	Margin float64     `json:"margin"`           // usable ÷ draw that policy asks for
	Lines  []PowerLine `json:"lines"`
}

// PowerLine is one part of the draw.
type PowerLine struct {
	What   string  `json:"what"`
	Watts  float64 `json:"watts"`
	Kind   string  `json:"kind"` // card, missing, cpu, platform
	Source string  `json:"source"`
}

// Total is the draw, watts.
func (p PowerFigure) Total() float64 {
	var sum float64
	for _, l := range p.Lines {
		sum += l.Watts
	}
	return sum
}

// MainsFigure is the draw at the wall against what the circuits carry all day, watts.
type MainsFigure struct {
	Wall  float64 `json:"wall"`
	Limit float64 `json:"limit"`
}

// ReduceFigure is what one all-reduce was expected to reach, bus bandwidth in GB/s (10^9).
type ReduceFigure struct {
	Run   int     `json:"run"`             // index in facts.nccl
	Links float64 `json:"links"`           // what the links as they are allow (E_link)
	Ideal float64 `json:"ideal,omitempty"` // what cards and slots could at their best (E_ideal)
	Pass  float64 `json:"pass"`            // from here it passes
	Fail  float64 `json:"fail"`            // below it fails
	Why   string  `json:"why"`
}

// PlaceFigure is one slot of the chassis. Position is in slot pitches from the declaration; the board's own list (SMBIOS 9)
// has no order, and then Ordered is false.
type PlaceFigure struct {
	Name      string  `json:"name"`
	Position  int     `json:"position,omitempty"`
	Card      string  `json:"card,omitempty"` // BDF; absent when the slot is empty
	Declared  string  `json:"declared,omitempty"`
	Thickness float64 `json:"thickness,omitempty"` // slot pitches
	Lanes     int     `json:"lanes,omitempty"`     // of the connector
	Ordered   bool    `json:"ordered"`
}

// FiguresOf gives the numbers of one rig.
func FiguresOf(rig *inventory.Rig, host *facts.Host, policy Policy, cat *catalog.Catalog) Figures {
	s := newSubject(rig, host, policy, cat)
	return Figures{Links: linkFigures(s), Power: powerFigures(s), Mains: mainsFigure(s), AllReduce: reduceFigures(s), Places: placeFigures(s), BurnIn: burnFigure(s), DDP: ddpFigure(s)}
}

// linkFigures lists every link between root port and card once, and marks the slowest of each way.
func linkFigures(s Subject) []LinkFigure {
	out := []LinkFigure{}
	at := map[string]int{}
	for _, c := range s.Cards {
		slowest, rate := -1, 0.0
		for _, h := range s.hops(c) {
			i, seen := at[h.lower.BDF]
			if !seen {
				i = len(out)
				at[h.lower.BDF] = i
				out = append(out, linkFigure(s, h))
			}
			out[i].Cards++
			if r := linkGBs(s, h); r > 0 && (slowest < 0 || r < rate) {
				slowest, rate = i, r
			}
		}
		if g, w := linkBest(s, c); slowest >= 0 && rate < 0.99*rawGBs(g, w) {
			out[slowest].Bottleneck = true
		}
	}
	return out
}

func linkFigure(s Subject, h hop) LinkFigure {
	f := LinkFigure{Lower: h.lower.BDF, Lanes: h.width(s).Value, Can: h.capWidth().Value, GenCan: generation(h.capSpeed().Value)}
	if h.hasUpper {
		f.Upper = h.upper.BDF
	}
	f.Gen = generation(facts.First(h.lower.Link.Speed, h.upper.Link.Speed).Value)
	if l, ok := s.sample(h.lower.BDF); ok {
		f.Loaded, f.Gen = true, generation(l.Speed)
	}
	return f
}

func powerFigures(s Subject) []PowerFigure {
	out := []PowerFigure{}
	cpu, ok := cpuDraw(s)
	base := draw{}
	if ok {
		base = draw{cpu, platformDraw(s)}
	}
	lines := func(d draw, kind string) []PowerLine {
		var ls []PowerLine
		for i, l := range d {
			k := kind
			if kind == "base" {
				k = []string{"cpu", "platform"}[i]
			}
			ls = append(ls, PowerLine{What: l.what, Watts: l.watts, Kind: k, Source: l.source})
		}
		return ls
	}
	if len(s.Rig.PSUs) == 0 {
		cards, known := cardDraw(s, s.Cards, false)
		if !known {
			return out
		}
		return append(out, PowerFigure{Name: rigSubject, Margin: s.Policy.PSUMargin, Lines: append(lines(cards, "card"), lines(base, "base")...)})
	}
	for i, r := range rails(s) {
		cards, known := cardDraw(s, r.cards, false)
		if !known && len(r.cards) > 0 {
			return []PowerFigure{}
		}
		f := PowerFigure{Name: r.name, Usable: r.usable, Rating: r.rating, Margin: s.Policy.PSUMargin, Lines: lines(cards, "card")}
		if i == 0 {
			f.Lines = append(f.Lines, lines(missingDraw(s, cards), "missing")...)
		}
		if r.base {
			f.Lines = append(f.Lines, lines(base, "base")...)
		}
		out = append(out, f)
	}
	return out
}

func mainsFigure(s Subject) *MainsFigure {
	wall, limit, ok := mainsLoad(s)
	if !ok {
		return nil
	}
	return &MainsFigure{Wall: wall, Limit: limit}
}

func reduceFigures(s Subject) []ReduceFigure {
	out := []ReduceFigure{}
	for i, run := range s.Host.NCCL {
		e, ok := expect(s, run, false)
		if !ok || len(run.Rows) == 0 {
			continue
		}
		f := ReduceFigure{Run: i, Links: e.busbw, Pass: s.Policy.NCCLPass * e.busbw, Fail: s.Policy.NCCLWarn * e.busbw, Why: e.why}
		if best, ok := expect(s, run, true); ok {
			f.Ideal = best.busbw
		}
		out = append(out, f)
	}
	return out
}

func placeFigures(s Subject) []PlaceFigure {
	out := []PlaceFigure{}
	if s.Rig.Chassis != nil && len(s.Rig.Chassis.Slots) > 0 {
		thick := map[string]float64{}
		cards, _ := declaredPlaces(s)
		for _, p := range cards {
			thick[p.card.BDF] = p.thickness
		}
		for _, slot := range s.Rig.Chassis.Slots {
			p := PlaceFigure{Name: strconv.Itoa(slot.Position), Position: slot.Position, Declared: slot.Card, Lanes: slot.Width, Thickness: slot.Thickness, Ordered: true}
			if c, ok := cardOf(s, slot.Card); ok && slot.Card != "" {
				p.Card, p.Thickness = c.BDF, thick[c.BDF]
			}
			out = append(out, p)
		}
		return out
	}
	for _, slot := range s.Host.Slots {
		p := PlaceFigure{Name: slot.Designation, Lanes: slot.Width}
		for _, c := range s.Host.Cards {
			if slot.BDF != "" && sameSlot(slot.BDF, c) {
				p.Card = c.BDF
			}
		}
		out = append(out, p)
	}
	return out
}

// sameSlot: SMBIOS names the card, another of its functions, or the port above it.
func sameSlot(bdf string, c facts.Card) bool {
	return bdf == c.BDF || len(bdf) > 2 && len(c.BDF) > 2 && bdf[:len(bdf)-2] == c.BDF[:len(c.BDF)-2] || len(c.Chain) > 0 && bdf == c.Chain[len(c.Chain)-1]
}
