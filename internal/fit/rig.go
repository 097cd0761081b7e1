package fit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/internal/workload"
	"preflight/inventory"
)

// mostCards is the largest machine that is taken: beyond it one host is not meant.
const mostCards = 16

var described = regexp.MustCompile(`^(-?\d+)\s*[x×*]\s*(\S.*)$`)

// Described says whether a text describes a machine ("4x4090") rather than naming a rig.
func Described(text string) bool { return described.MatchString(text) }

// Describe is the machine that a text describes: a number of cards and a model of the catalogue, "4x4090".
func Describe(text string, cat *catalog.Catalog) (workload.Rig, error) {
	m := described.FindStringSubmatch(text)
	if m == nil {
		return workload.Rig{}, fmt.Errorf("%q describes no machine: write 4x4090, or the name of a rig with -i", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n < 1 || n > mostCards {
		return workload.Rig{}, fmt.Errorf("%q: %s cards are out of range; it must be 1 to %d", text, m[1], mostCards)
	}
	slug, err := slugOf(m[2], cat)
	if err != nil {
		return workload.Rig{}, fmt.Errorf("%q: %w", text, err)
	}
	r, err := ofModel(cat.BySlug(slug)[0], n, checks.PolicyFor(nil, n))
	if err != nil {
		return r, fmt.Errorf("%q: %w", text, err)
	}
	r.Names, r.Described = []string{text}, true
	return r, nil
}

// slugOf finds the model that somebody means: a slug, or the end of one ("4090"), or its beginning where that is no choice.
func slugOf(text string, cat *catalog.Catalog) (string, error) {
	want := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(text), " ", "-"))
	slugs := cat.Slugs()
	for _, prefix := range []string{"", "rtx-", "gtx-", "geforce-rtx-"} {
		if slices.Contains(slugs, prefix+want) {
			return prefix + want, nil
		}
	}
	if short, ok := strings.CutPrefix(want, "geforce-"); ok && slices.Contains(slugs, short) {
		return short, nil
	}
	var begin []string
	for _, s := range slugs {
		if strings.HasPrefix(s, want+"-") || strings.HasPrefix(s, "rtx-"+want+"-") {
			begin = append(begin, s)
		}
	}
	switch {
	case len(begin) == 1:
		return begin[0], nil
	case len(begin) > 1:
		return "", fmt.Errorf("%s is several cards: %s", text, strings.Join(begin, ", "))
	}
	hint := ""
	if near := inventory.Nearest(want, slugs); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	} else if near := inventory.Nearest("rtx-"+want, slugs); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return "", fmt.Errorf("no card of the catalogue is called %s%s; `preflight catalog gpu` lists them", text, hint)
}

// ofModel is a machine of n cards as the catalogue knows the model.
func ofModel(g catalog.GPU, n int, p checks.Policy) (workload.Rig, error) {
	r := workload.Rig{Cards: n, Card: cardOf(g), P2P: g.P2P == "yes", NVLink: g.Form == "sxm", Policy: policyOf(p), Bandwidth: []workload.Bandwidth{}}
	if r.Card.Memory <= 0 {
		return r, fmt.Errorf("the catalogue does not know how much memory a %s has", g.Name)
	}
	for _, k := range []int{4, mostCards} {
		if b, ok := checks.CatalogueBus(g, k); ok {
			r.Bandwidth = append(r.Bandwidth, workload.Bandwidth{Cards: k, GBs: b.GBs, Why: b.Why})
		}
	}
	return r, nil
}

func cardOf(g catalog.GPU) workload.Card {
	return workload.Card{
		Name: g.Name, Slug: g.Slug, Memory: float64(g.MemoryMiB) * (1 << 20), TFLOPS: g.FP16TFLOPS, MemoryGBs: g.MemoryGBs, Watts: g.TDPWatts, Source: g.Source,
	}
}

func policyOf(p checks.Policy) workload.Policy {
	out := workload.DefaultPolicy()
	out.Margin, out.Busy, out.Overlap, out.Efficiency = p.FitMargin, p.FitBusy, p.FitOverlap, p.FitSuited
	return out
}

// Declared is a rig as its owner declares it: cards and model, nothing measured.
func Declared(rig *inventory.Rig, cat *catalog.Catalog) (workload.Rig, error) {
	rows := cat.BySlug(rig.GPU)
	if rig.Cards == nil || len(rows) == 0 {
		return workload.Rig{}, fmt.Errorf("%s declares no cards and gpu: declare both, or give a snapshot of it (--from)", rig.Name)
	}
	r, err := ofModel(rows[0], *rig.Cards, checks.PolicyFor(rig.Profile, *rig.Cards))
	if err != nil {
		return r, err
	}
	r.Names = []string{rig.Name}
	r.Price = priceOf(rig, *rig.Cards)
	return r, nil
}

// priceOf shares the rig's price of an hour among its cards.
func priceOf(rig *inventory.Rig, cards int) *workload.Price {
	if rig.PricePerHour == nil || cards < 1 {
		return nil
	}
	return &workload.Price{PerCard: *rig.PricePerHour / float64(cards), Origin: "price_per_hour"}
}

// Judged is a rig as its host showed it. The error says why nothing can be said.
func Judged(rig *inventory.Rig, host *facts.Host, findings []checks.Finding, p checks.Policy, cat *catalog.Catalog) (workload.Rig, error) {
	if host == nil {
		return workload.Rig{}, fmt.Errorf("it was not reached")
	}
	j := checks.JoinedOf(rig, host, p, cat)
	if len(j.Cards) == 0 {
		return workload.Rig{}, fmt.Errorf("no NVIDIA card was seen on it")
	}
	r := workload.Rig{Names: []string{rig.Name}, Cards: len(j.Cards), P2P: j.P2P, NVLink: j.NVLink, Policy: policyOf(p), Bandwidth: []workload.Bandwidth{}, Price: priceOf(rig, len(j.Cards))}
	for i, c := range j.Cards {
		one := seen(c, cat)
		if one.Memory <= 0 {
			return r, fmt.Errorf("the memory of %s is not known: nvidia-smi would tell", c.BDF)
		}
		if i == 0 {
			r.Card = one
			continue
		}
		r.Card.Memory = min(r.Card.Memory, one.Memory) // the smallest and the slowest card decide
		r.Card.TFLOPS, r.Card.MemoryGBs = min(r.Card.TFLOPS, one.TFLOPS), min(r.Card.MemoryGBs, one.MemoryGBs)
	}
	for _, b := range j.Bus {
		r.Bandwidth = append(r.Bandwidth, workload.Bandwidth{Cards: b.Cards, GBs: b.GBs, Measured: b.Measured, Why: b.Why})
	}
	for _, s := range checks.NCCLNeeds(rig, host, findings, p, cat) {
		r.Launch.Env = append(r.Launch.Env, workload.Setting{Name: s[0], Value: s[1], Why: s[2]})
	}
	r.Launch.Busy, r.Launch.PortsSeen = host.Limits.Listening.Value, host.Limits.Listening.Known()
	r.Launch.Container = host.Kind.Value == "container"
	return r, nil
}

// seen is a card as the driver shows it, with what the catalogue knows of the model.
func seen(c facts.Card, cat *catalog.Catalog) workload.Card {
	out := workload.Card{Name: c.Name.Value}
	if g, ok := cat.GPU(c.Product, c.MemoryMiB.Value); ok && c.Product != "" {
		out = cardOf(g)
	} else if rows := cat.BySlug(c.Slug.Value); c.Slug.Known() && len(rows) > 0 {
		out = cardOf(rows[0])
	}
	if m, ok := c.MemoryMiB.Get(); ok && m > 0 {
		out.Memory = float64(m) * (1 << 20)
	}
	return out
}

// References are the machines that jobs are compared with unless others are asked for.
func References() []string {
	return []string{"1xa100-80gb-sxm", "8xa100-80gb-sxm", "1xh100-80gb-sxm", "8xh100-80gb-sxm"}
}
