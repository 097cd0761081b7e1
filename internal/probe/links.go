package probe

import (
	"regexp"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

var linkLine = regexp.MustCompile(`/sys/bus/pci/devices/([0-9a-f:.]+)/current_link_(speed|width):(\S+)`)

// busyShare is the utilisation from which a sampled card counts as loaded, percent.
const busyShare = 20

// samples reduces the sampled links to one row a hop: the best speed and width that it showed, and whether the cards
// below it were proved to be at work meanwhile. A hop sampled on idle cards proves nothing and is marked so.
func samples(links string, loaded map[string]bool, h *facts.Host) []facts.LinkSample {
	rows := map[string]*facts.LinkSample{}
	for _, line := range strings.Split(links, "\n") {
		m := linkLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := rows[m[1]]
		if r == nil {
			r = &facts.LinkSample{BDF: m[1], Source: "probe:links under load"}
			rows[m[1]] = r
		}
		v, err := strconv.ParseFloat(m[3], 64)
		switch {
		case err != nil:
		case m[2] == "speed":
			r.Speed = max(r.Speed, v)
			r.Count++
		case v > 0 && v < 63:
			r.Width = max(r.Width, int(v))
			if r.Worst == 0 || int(v) < r.Worst {
				r.Worst = int(v)
			}
		}
	}
	for _, c := range h.Cards {
		if !loaded[c.BDF] {
			continue
		}
		for _, bdf := range append(append([]string{}, c.Chain...), c.BDF) {
			if r := rows[bdf]; r != nil {
				r.Loaded = true
			}
		}
	}
	out := make([]facts.LinkSample, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	facts.SortSamples(out)
	return out
}

// loadedCards are the cards that nvidia-smi saw in P0 to P2 at work during the run.
func loadedCards(csv string) map[string]bool {
	out := map[string]bool{}
	for _, line := range strings.Split(csv, "\n") {
		f := strings.Split(line, ",")
		if len(f) != 3 {
			continue
		}
		bdf := strings.ToLower(strings.TrimSpace(f[0]))
		if len(bdf) > 12 {
			bdf = bdf[len(bdf)-12:]
		}
		state := strings.TrimSpace(f[1])
		util, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(f[2]), "%")))
		if err == nil && util >= busyShare && (state == "P0" || state == "P1" || state == "P2") {
			out[bdf] = true
		}
	}
	return out
}
