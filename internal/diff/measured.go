package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pairs are what the driver says of two cards, and what copies between them gave.
func pairs(t tree, names namer) []value {
	var out []value
	for _, p := range t.list("topo") {
		out = append(out, value{scope: names.pair(p.text("a"), p.text("b")), shown: names.shownPair(p.text("a"), p.text("b")), label: "topology", text: p.text("level")})
	}
	for _, p := range t.list("p2p") {
		scope, shown := names.pair(p.text("a"), p.text("b")), names.shownPair(p.text("a"), p.text("b"))
		ok := 0.0
		if p.text("code") == "OK" {
			ok = 1
		}
		out = append(out, value{scope: scope, shown: shown, label: "P2P " + operation(p.text("op")), text: p.text("code"), number: ok, isNum: true, better: more, why: "P2P is lost"})
	}
	return out
}

// operation is the letter of nvidia-smi topo -p2p in words.
func operation(letter string) string {
	for _, o := range operations {
		if o.letter == letter {
			return o.word
		}
	}
	return letter
}

var operations = []struct{ letter, word string }{{"r", "read"}, {"w", "write"}, {"n", "NVLink"}, {"a", "atomics"}, {"p", "PCIe"}}

// copies are what copies between cards gave.
func copies(t tree, names namer) []value {
	var out []value
	for _, p := range t.list("peers") {
		scope, shown := names.way(p.text("from"), p.text("to")), names.shownWay(p.text("from"), p.text("to"))
		good := 0.0
		if r := p.text("result"); r == "ok" || r == "absent" && p.text("path") == "p2p" {
			good = 1
		}
		out = append(out, value{scope: scope, shown: shown, label: strings.Replace(p.text("path"), "p2p", "P2P", 1) + " copies", text: p.text("result"), number: good, isNum: true, better: more, why: "copies no longer arrive right"})
		if best, known := p.number("best"); known && p.text("path") == "p2p" && good == 1 && best > 0 { // staged copies show how busy the host's memory was
			out = append(out, rate(scope, shown, "P2P rate", best, copyNoise))
		}
	}
	return out
}

// bandwidth are the copies between host and cards, each kind at its largest size.
func bandwidth(t tree, names namer) []value {
	largest := map[string]float64{}
	kind := func(r tree) string { return r.text("bdf") + r.text("direction") + r.text("cards") }
	for _, r := range t.list("bandwidth") {
		n, _ := r.number("bytes")
		largest[kind(r)] = max(largest[kind(r)], n)
	}
	var out []value
	for _, r := range t.list("bandwidth") {
		if n, _ := r.number("bytes"); n < largest[kind(r)] {
			continue
		}
		v, _ := r.number("best")
		spread, _ := r.number("spread")
		x := rate(names.scope(r.text("bdf")), names.shown(r.text("bdf")), fmt.Sprintf("%s with %s copying, %s", courseOf(r), cardsAt(r), bytesOf(r)), v, spread)
		x.joint = r.text("cards") != "1"
		out = append(out, x)
	}
	return bestOf(out)
}

// allReduce is each kind of run at its largest size.
func allReduce(t tree) []value {
	var out []value
	for _, run := range t.list("nccl") {
		rows := run.list("rows")
		if len(rows) == 0 {
			continue
		}
		last := slices.MaxFunc(rows, func(a, b tree) int {
			x, _ := a.number("bytes")
			y, _ := b.number("bytes")
			return cmp.Compare(x, y)
		})
		v, _ := last.number("busbw")
		spread, _ := run.number("spread")
		parts := []string{"all-reduce", run.text("engine"), run.text("layout"), p2pWord(run), run.text("ranks") + " ranks", bytesOf(last)}
		x := rate("host", "", strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", "), v, spread)
		x.joint = true
		out = append(out, x)
	}
	return bestOf(out)
}

// bestOf keeps the best of several rates of one thing.
func bestOf(all []value) []value {
	var out []value
	at := map[string]int{}
	for _, v := range all {
		i, seen := at[v.key()]
		switch {
		case !seen:
			at[v.key()] = len(out)
			out = append(out, v)
		case v.number > out[i].number:
			out[i] = v
		}
	}
	return out
}

// courseOf is the direction of a copy in words.
func courseOf(r tree) string {
	switch d := r.text("direction"); d {
	case "h2d":
		return "host to card"
	case "d2h":
		return "card to host"
	case "both":
		return "both ways"
	default:
		return d
	}
}

func cardsAt(r tree) string {
	if r.text("cards") == "1" {
		return "one card"
	}
	return r.text("cards") + " cards"
}

func p2pWord(run tree) string {
	if run.text("no_p2p") == "on" {
		return "without P2P"
	}
	return "P2P allowed"
}

func bytesOf(r tree) string {
	n, _ := r.number("bytes")
	if n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", n/(1<<20))
	}
	return fmt.Sprintf("%.0f B", n)
}

func rate(scope, shown, label string, v, spread float64) value {
	return value{scope: scope, shown: shown, label: label, text: fmt.Sprintf("%.2f", v), number: v, isNum: true, unit: "GB/s", better: more, noise: max(rateFloor, spread), why: "slower than before by more than the spread"}
}
