package html

import (
	"fmt"
	"slices"
	"strings"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
)

// Sizes of the tree, in units of the picture.
const (
	treeHead   = 96.0 // sockets
	treeCol    = 216.0
	treeBox    = 128.0
	treeCard   = 190.0
	treeRow    = 46.0
	treeHeight = 34.0
	chipWidth  = 190.0
	chipHeight = 24.0
)

// tree is the PCIe tree: bridges that lead to cards are drawn with their links, all other bridges as chips below.
type tree struct {
	picture
	Boxes []box
	Lines []line
	Marks []mark
	Chips []box
	ChipY float64
}

// node is a function of the tree.
type node struct {
	dev      facts.Device
	card     *facts.Card
	children []*node
	depth    int
	y        float64
}

func drawTree(g report.Rig, l lang.Language) tree {
	if g.Host == nil || g.Figures == nil || len(g.Host.PCI) == 0 || len(g.Host.Cards) == 0 {
		return tree{picture: none(l, "The bridges above the cards are not in the input.")}
	}
	roots, others := grow(g.Host)
	t := tree{picture: picture{Title: l.Say("PCIe tree")}}
	links := map[string]checks.LinkFigure{}
	for _, f := range g.Figures.Links {
		links[f.Lower] = f
	}
	row := 0
	deepest := 0
	for _, r := range roots {
		place(r, &row, &deepest)
	}
	x := func(depth int) float64 { return treeHead + float64(depth)*treeCol }
	t.W = x(deepest) + treeCard + 4
	t.sockets(roots, l)
	for _, r := range roots {
		t.draw(r, nil, links, x, g, l)
	}
	t.chips(others, float64(row)*treeRow, l)
	t.Desc = l.Sayf("%d cards below %d bridges; the table has every link.", len(g.Host.Cards), len(bridges(g.Host)))
	t.Cols = []string{l.Say("above"), l.Say("below"), l.Say("now"), l.Say("possible"), l.Say("cards"), l.Say("seen")}
	for _, f := range g.Figures.Links {
		seen := l.Say("idle")
		if f.Loaded {
			seen = l.Say("under load")
		}
		if f.Bottleneck {
			seen += l.Say(", bottleneck")
		}
		t.Table = append(t.Table, []string{f.Upper, f.Lower, lanes(f.Lanes) + " " + gen(f.Gen), lanes(f.Can) + " " + gen(f.GenCan), fmt.Sprint(f.Cards), seen})
	}
	return t
}

func isBridge(d facts.Device) bool { return strings.HasPrefix(d.Class, "0604") }

func bridges(h *facts.Host) []facts.Device {
	var out []facts.Device
	for _, d := range h.PCI {
		if isBridge(d) {
			out = append(out, d)
		}
	}
	return out
}

// grow builds the tree of cards and the bridges above them, and lists the bridges that lead to none.
func grow(h *facts.Host) (roots []*node, others []facts.Device) {
	device := map[string]facts.Device{}
	for _, d := range h.PCI {
		device[d.BDF] = d
	}
	nodes := map[string]*node{}
	var at func(bdf string) *node
	at = func(bdf string) *node {
		if n := nodes[bdf]; n != nil {
			return n
		}
		d, known := device[bdf]
		if !known {
			d = facts.Device{BDF: bdf}
		}
		n := &node{dev: d}
		nodes[bdf] = n
		if len(d.Chain) == 0 {
			roots = append(roots, n)
			return n
		}
		up := at(d.Chain[len(d.Chain)-1])
		up.children, n.depth = append(up.children, n), up.depth+1
		return n
	}
	for i := range h.Cards {
		at(h.Cards[i].BDF).card = &h.Cards[i]
	}
	for _, d := range bridges(h) {
		if nodes[d.BDF] == nil {
			others = append(others, d)
		}
	}
	slices.SortStableFunc(roots, func(a, b *node) int {
		if c := a.dev.Socket.Value - b.dev.Socket.Value; c != 0 {
			return c
		}
		return strings.Compare(a.dev.BDF, b.dev.BDF)
	})
	return roots, others
}

// place gives each card a row, and each bridge the middle of what hangs below it.
func place(n *node, row, deepest *int) {
	*deepest = max(*deepest, n.depth)
	if len(n.children) == 0 {
		n.y = float64(*row)*treeRow + 8
		*row++
		return
	}
	for _, c := range n.children {
		place(c, row, deepest)
	}
	n.y = (n.children[0].y + n.children[len(n.children)-1].y) / 2
}

// sockets draws the processors that the root ports belong to.
func (t *tree) sockets(roots []*node, l lang.Language) {
	for i := 0; i < len(roots); {
		j := i
		for j < len(roots) && roots[j].dev.Socket == roots[i].dev.Socket || j < len(roots) && roots[j].dev.Socket.Known() && roots[j].dev.Socket.Value == roots[i].dev.Socket.Value {
			j++
		}
		name := l.Say("host")
		if s, ok := roots[i].dev.Socket.Get(); ok {
			name = fmt.Sprintf("CPU %d", s)
		}
		top, bottom := roots[i].y, roots[j-1].y+treeHeight
		t.Boxes = append(t.Boxes, box{X: 2, Y: top, W: 64, H: bottom - top, Class: "socket", Text: name})
		for _, r := range roots[i:j] {
			y := r.y + treeHeight/2
			t.Lines = append(t.Lines, line{Path: "M66 " + num(y) + "H" + num(treeHead), Class: "bus"})
		}
		i = j
	}
}

func (t *tree) draw(n, up *node, links map[string]checks.LinkFigure, x func(int) float64, g report.Rig, l lang.Language) {
	b := box{X: x(n.depth), Y: n.y, W: treeBox, H: treeHeight, ID: n.dev.BDF, Class: "bridge", Text: portName(n.dev, l), Sub: n.dev.BDF, Tip: n.dev.Label}
	if n.card != nil {
		b.W, b.Class = treeCard, "card "+string(worstAbout(g, n.dev.BDF))
		b.Text, b.Sub = cardName(*n.card), n.dev.BDF
		if slot := slotOf(g, n.dev.BDF); slot != "" {
			b.Sub += " · " + slot
		}
	}
	t.Boxes = append(t.Boxes, b)
	if up != nil {
		t.link(n, up, links, x, l)
	}
	for _, c := range n.children {
		t.draw(c, n, links, x, g, l)
	}
}

// link draws the way from a port to what is below it. Within a switch there is no link, and so no label.
func (t *tree) link(n, up *node, links map[string]checks.LinkFigure, x func(int) float64, l lang.Language) {
	x1, y1 := x(up.depth)+treeBox, up.y+treeHeight/2
	x2, y2 := x(n.depth), n.y+treeHeight/2
	mid := x1 + 12
	e := line{Path: fmt.Sprintf("M%s %sH%sV%sH%s", num(x1), num(y1), num(mid), num(y2), num(x2)), Class: "inside", X: mid + 4, Y: y2 - 5}
	if f, ok := links[n.dev.BDF]; ok {
		e.ID, e.Class, e.Label = n.dev.BDF, "link", lanes(f.Lanes)+" "+gen(f.Gen)
		e.Tip = l.Sayf("%s to %s: now %s, possible %s", f.Upper, f.Lower, e.Label, lanes(f.Can)+" "+gen(f.GenCan))
		if f.Cards > 1 {
			e.Class += " shared"
			e.Tip += l.Sayf(", shared by %d cards", f.Cards)
		}
		if f.Bottleneck {
			e.Class += " bottleneck"
			e.Tip += l.Say(", bottleneck")
		}
	}
	t.Lines = append(t.Lines, e)
}

// chips lists the bridges that lead to no card: each is there once, without taking the eye.
func (t *tree) chips(others []facts.Device, y float64, l lang.Language) {
	t.H = y + 8
	if len(others) == 0 {
		return
	}
	t.Marks = append(t.Marks, mark{X: 2, Y: y + 20, Text: l.Say("bridges without cards"), Class: "faint"})
	per := max(int((t.W-4)/(chipWidth+6)), 1)
	for i, d := range others {
		t.Chips = append(t.Chips, box{
			X: 2 + float64(i%per)*(chipWidth+6), Y: y + 30 + float64(i/per)*(chipHeight+4), W: chipWidth, H: chipHeight,
			ID: d.BDF, Class: "chip", Text: d.BDF + " " + portName(d, l), Tip: d.Label,
		})
	}
	t.H = y + 34 + float64((len(others)+per-1)/per)*(chipHeight+4)
}

// portName is what a bridge is, in a word or two.
func portName(d facts.Device, l lang.Language) string {
	words := map[string]string{"root": "root port", "upstream": "switch, up", "downstream": "switch, down", "pcie-to-pci": "PCI bridge"}
	if w, ok := words[d.PortType.Value]; ok {
		return l.Say(w)
	}
	return l.Say("bridge")
}

func cardName(c facts.Card) string {
	name := strings.TrimPrefix(c.Name.Value, "GeForce ")
	if name == "" {
		name = c.Label
	}
	if name == "" {
		name = c.Vendor + ":" + c.Product
	}
	return report.Safe(clip(name, 26))
}

// slotOf is the name of the place that a card sits in.
func slotOf(g report.Rig, bdf string) string {
	for _, p := range g.Figures.Places {
		if p.Card == bdf {
			return report.Safe(clip(p.Name, 14))
		}
	}
	return ""
}

// worstAbout is the worst verdict of the findings about one function.
func worstAbout(g report.Rig, bdf string) checks.Verdict {
	worst := checks.Skip
	for _, f := range g.Findings {
		if f.Subject == bdf && f.Verdict != checks.Unknown {
			worst = checks.Worst(worst, f.Verdict)
		}
	}
	return worst
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
