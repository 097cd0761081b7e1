package facts

import (
	"fmt"
	"sort"
	"strings"

	"preflight/internal/catalog"
)

// readLspci joins every lspci text of the input with what sysfs said: functions, then the bridges above them, then cards.
func readLspci(b *builder) {
	texts, trees := b.dumps(dumpLspci), b.dumps(dumpLspciTree)
	if len(texts)+len(trees) == 0 {
		return
	}
	cat, err := catalog.Load()
	if err != nil {
		cat = nil
	}
	j := &pciJoin{b: b, at: map[string]int{}, rebar: map[string][]Fact[[]int64]{}, bar1: map[string][]Fact[int64]{}}
	for i, d := range b.host.PCI {
		j.at[d.BDF] = i
	}
	for _, d := range texts {
		l := parseLspci(d, cat)
		j.whole, j.denied, j.opened = j.whole || l.whole, j.denied || l.denied, j.opened || l.opened
		for _, dev := range l.devices {
			j.add(dev)
		}
		for bdf, sizes := range l.rebar {
			j.rebar[bdf] = append(j.rebar[bdf], sizes)
		}
		for bdf, now := range l.bar1 {
			j.bar1[bdf] = append(j.bar1[bdf], now)
		}
		j.from = firstNonEmpty(j.from, d.name)
	}
	for _, d := range trees {
		devices, named := nameCards(parseTree(d), cat)
		j.whole = j.whole || named && wholeTree(d.text)
		for _, dev := range devices {
			j.add(dev)
		}
		j.from = firstNonEmpty(j.from, d.name)
	}
	sort.SliceStable(b.host.PCI, func(i, k int) bool { return b.host.PCI[i].BDF < b.host.PCI[k].BDF })
	b.chains()
	j.cards()
	j.gaps()
}

type pciJoin struct {
	b      *builder
	at     map[string]int
	rebar  map[string][]Fact[[]int64]
	bar1   map[string][]Fact[int64]
	narrow map[string]string // by BDF: the port that the kernel's log names as the limit above it
	from   string            // the first text
	whole  bool              // some text lists the bus from its beginning
	denied bool
	opened bool
}

func (j *pciJoin) add(d Device) {
	if !bdfPattern.MatchString(d.BDF) {
		return
	}
	if i, ok := j.at[d.BDF]; ok {
		j.b.merge("pci["+d.BDF+"]", &j.b.host.PCI[i], &d)
		return
	}
	if len(j.b.host.PCI) < maxFunctions {
		j.at[d.BDF] = len(j.b.host.PCI)
		j.b.host.PCI = append(j.b.host.PCI, d)
	}
}

// cards makes cards of the functions that are cards, with what only cards have.
func (j *pciJoin) cards() {
	for _, d := range j.b.host.PCI {
		if !isCard(d) {
			continue
		}
		next := Card{Device: d}
		for _, bar := range d.BARs {
			if (bar.Index == 1 || bar.Index == 2) && bar.Mem && bar.Size > 0 {
				next.BAR1MiB = Of(int64(bar.Size>>20), bar.Source)
				break
			}
		}
		next.BAR1MiB = First(next.BAR1MiB, First(j.bar1[d.BDF]...))
		next.ReBARMiB = First(j.rebar[d.BDF]...)
		if drv := &j.b.host.Driver; d.Driver.Value == "nvidia" && !drv.Loaded.Known() {
			drv.Loaded = Of(true, d.Driver.Source)
		}
		if c := j.b.card(d.BDF); c != nil {
			c.Device = d
		}
		j.b.mergeCard(next)
	}
	j.b.sortCards()
}

func (j *pciJoin) gaps() {
	g := j.b.host.Gaps
	if len(j.b.host.PCI) > 0 {
		if j.whole {
			j.b.filled(KindPCI)
		} else if _, missing := g[KindPCI]; missing {
			j.b.regap(KindPCI, "%s lists only part of the bus", j.from)
		}
	}
	switch _, missing := g[KindConfig]; {
	case j.opened:
		j.b.filled(KindConfig)
	case j.denied && missing:
		j.b.regap(KindConfig, "%s was taken without root: lspci says <access denied> for capabilities", j.from)
	}
}

// chains finds the bridges above each function by bus numbers, where nothing else told them.
func (b *builder) chains() {
	behind := map[string]string{} // "0000:41" -> bridge that leads there
	chainOf := map[string]Device{}
	for _, d := range b.host.PCI {
		domain, _, _ := strings.Cut(d.BDF, ":")
		if n, ok := d.Second.Get(); ok && n > 0 {
			behind[fmt.Sprintf("%s:%02x", domain, n)] = d.BDF
		}
		chainOf[d.BDF] = d
	}
	for i := range b.host.PCI {
		d := &b.host.PCI[i]
		if len(d.Chain) > 0 {
			continue
		}
		var up []string
		bus := busOf(d.BDF)
		for range maxBridges {
			bridge, ok := behind[bus]
			if !ok || bridge == d.BDF {
				break
			}
			up = append([]string{bridge}, up...)
			if above := chainOf[bridge]; len(above.Chain) > 0 {
				up = append(append([]string{}, above.Chain...), up...)
				bus = busOf(up[0])
				break
			}
			bus = busOf(bridge)
		}
		if len(up) > 0 && len(up) < maxBridges {
			d.Chain = up
			d.RootBus = firstNonEmpty(d.RootBus, bus)
		}
	}
}

func busOf(bdf string) string { return bdf[:strings.LastIndexByte(bdf, ':')] }

func (b *builder) sortCards() {
	sort.SliceStable(b.host.Cards, func(i, k int) bool { return b.host.Cards[i].BDF < b.host.Cards[k].BDF })
}

// readProducts settles what only all sources together tell: the device id that lspci printed by name, and a maximum of
// the host's that the link already exceeds, which drivers print for some boards.
func readProducts(b *builder) {
	for i := range b.host.Cards {
		c := &b.host.Cards[i]
		if c.Gen.Current.Known() && c.Gen.HostMax.Known() && c.Gen.Current.Value > c.Gen.HostMax.Value {
			c.Gen.HostMax = Fact[int]{}
		}
		if c.Product == "" && c.SMIDevice.Known() {
			c.Product = strings.ToLower(c.SMIDevice.Value)
		}
	}
}
