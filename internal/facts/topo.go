package facts

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	ansi      = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)
	topoLevel = regexp.MustCompile(`^(X|SYS|NODE|PHB|PXB|PIX|SOC|NV\d+)$`)
	p2pCode   = regexp.MustCompile(`^(X|OK|CNS|GNS|TNS|NS|DR|U)$`)
	gpuLabel  = regexp.MustCompile(`^GPU(\d+)$`)
)

// cell is one value of a matrix between two cards, by their index in NVML order (PCI bus order).
type cell struct {
	a, b  int
	value string
}

// parseMatrix reads a GPU×GPU matrix of nvidia-smi topo. The header names the columns; only cells under a GPU
// column of a GPU row count, and only when they match. Columns after the cards may be empty, so cells are taken by
// position only as far as the cards go. ANSI codes appear even in piped output.
func parseMatrix(text string, valid *regexp.Regexp) []cell {
	var cells []cell
	columns := 0
	for _, line := range strings.Split(ansi.ReplaceAllString(text, ""), "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if gpuLabel.MatchString(f[0]) && gpuLabel.MatchString(f[1]) {
			columns = 0
			for columns < len(f) && gpuLabel.MatchString(f[columns]) {
				columns++
			}
			continue
		}
		m := gpuLabel.FindStringSubmatch(f[0])
		if m == nil || columns == 0 {
			continue
		}
		row, err := strconv.Atoi(m[1])
		if err != nil || row >= maxCards || len(cells) > maxCards*maxCards {
			continue
		}
		for col := 0; col < min(columns, maxCards) && col+1 < len(f); col++ {
			if v := f[col+1]; valid.MatchString(v) && v != "X" {
				cells = append(cells, cell{row, col, v})
			}
		}
	}
	return cells
}

// cardName maps an NVML index to a BDF where the cards are known, else keeps "GPU3".
func (b *builder) cardName(index int) string {
	for _, c := range b.host.Cards {
		if i, ok := c.Index.Get(); ok && i == index {
			return c.BDF
		}
	}
	return "GPU" + strconv.Itoa(index)
}

func readTopo(b *builder) {
	const path = "cmd/topo-m.txt"
	raw, ok := b.read(path)
	if !ok {
		b.gap(KindTopo, "%s", b.why(path, "no nvidia-smi topo -m in the input"))
		return
	}
	most := -1
	for _, c := range parseMatrix(string(raw), topoLevel) {
		most = max(most, c.a, c.b)
		if c.a < c.b {
			level := strings.Replace(c.value, "SOC", "SYS", 1) // old drivers' word
			b.host.Topo = append(b.host.Topo, TopoPair{A: b.cardName(c.a), B: b.cardName(c.b), Level: level, Source: "cmd:nvidia-smi topo -m"})
		}
	}
	if d := &b.host.Driver; most >= 0 && !d.Attached.Known() {
		d.Attached = Of(most+1, "cmd:nvidia-smi topo -m")
	}
	if len(b.host.Topo) == 0 {
		b.gap(KindTopo, "nvidia-smi topo -m shows no pair of cards")
	}
}

func readP2P(b *builder) {
	for _, op := range []string{"r", "w", "n", "a", "p"} {
		raw, ok := b.read("cmd/p2p-" + op + ".txt")
		if !ok {
			continue
		}
		for _, c := range parseMatrix(string(raw), p2pCode) {
			b.host.P2P = append(b.host.P2P, P2PPair{A: b.cardName(c.a), B: b.cardName(c.b), Op: op, Code: c.value, Source: "cmd:nvidia-smi topo -p2p " + op})
		}
	}
	if len(b.host.P2P) == 0 {
		b.gap(KindP2P, "%s", b.why("cmd/p2p-r.txt", "no nvidia-smi topo -p2p in the input"))
	}
}
