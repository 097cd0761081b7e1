package checks

import (
	"strings"
	"testing"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// What a measured run says beats what the links should give; a run that does not work gives no figure.
func TestJoinedOf(t *testing.T) {
	cat := catalog.MustLoad()
	for _, row := range []struct {
		name     string
		cards    int
		change   func(*facts.Host)
		gbs      []float64
		measured bool
		why      string
	}{
		{"measured", 4, func(h *facts.Host) { h.NCCL[0] = goodRun(4, 12.5) }, []float64{12.5}, true, "measured on this rig"},
		{"the better of two", 4, func(h *facts.Host) { h.NCCL = []facts.NCCLRun{goodRun(4, 9), goodRun(4, 12.5)} }, []float64{12.5}, true, "measured"},
		{"of fewer cards than there are", 4, func(h *facts.Host) { h.NCCL[0].Ranks = 2 }, []float64{13.5}, false, "0.55 × 24.6 GB/s"},
		{"never run: expected of the links as they were measured", 8, func(h *facts.Host) { h.NCCL = nil }, []float64{13.5, 13.5}, false, "SHM"},
		{"a hang", 4, func(h *facts.Host) { h.NCCL[0].Rows, h.NCCL[0].Hung = nil, true }, []float64{0}, false, "does not work"},
		{"wrong values", 4, func(h *facts.Host) { h.NCCL[0].Wrong = 50 }, []float64{0}, false, "does not work"},
		{"one card", 1, func(h *facts.Host) { h.NCCL = nil }, nil, false, ""},
		{"a hang that goes without P2P", 4, func(h *facts.Host) {
			bad, good := goodRun(4, 0), goodRun(4, 11)
			bad.Rows, bad.Hung, good.NoP2P = nil, true, true
			h.NCCL = []facts.NCCLRun{bad, good}
		}, []float64{11}, true, "without P2P"},
	} {
		rig, h := goodRig(row.cards), goodHost(row.cards)
		row.change(h)
		j := JoinedOf(rig, h, PolicyFor(nil, row.cards), cat)
		if len(j.Cards) != row.cards || len(j.Bus) != len(row.gbs) {
			t.Errorf("%s: %d cards, %+v", row.name, len(j.Cards), j.Bus)
			continue
		}
		for i, b := range j.Bus {
			if d := b.GBs - row.gbs[i]; d > 0.1 || d < -0.1 || b.Measured != row.measured || !strings.Contains(b.Why, row.why) {
				t.Errorf("%s: %+v, want %.1f GB/s, measured %v, %q", row.name, b, row.gbs[i], row.measured, row.why)
			}
		}
	}
}

func TestCatalogueBus(t *testing.T) {
	cat := catalog.MustLoad()
	for _, row := range []struct {
		slug  string
		cards int
		gbs   float64
	}{{"rtx-4090", 4, 15.1}, {"rtx-4090", 8, 13.9}, {"a100-40gb-sxm", 8, 230}} {
		b, ok := CatalogueBus(cat.BySlug(row.slug)[0], row.cards)
		if d := b.GBs - row.gbs; !ok || d > 0.05*row.gbs || d < -0.05*row.gbs || b.Measured {
			t.Errorf("%s × %d: %+v", row.slug, row.cards, b)
		}
	}
	if b, ok := CatalogueBus(catalog.GPU{Slug: "unheard-of", Form: "sxm"}, 8); ok {
		t.Errorf("a machine nobody measured: %+v", b)
	}
}

// Variables are named only where the rig's own findings call for them.
func TestNCCLNeeds(t *testing.T) {
	cat := catalog.MustLoad()
	for _, row := range []struct {
		name     string
		findings []Finding
		change   func(*facts.Host)
		want     string
	}{
		{"sound", nil, func(*facts.Host) {}, ""},
		{"P2P that gives wrong data", []Finding{{Check: "topology.p2p", Verdict: Fail, Remedy: "topology.p2p/corrupt"}}, func(*facts.Host) {}, "NCCL_P2P_DISABLE"},
		{"a hang that goes without P2P", nil, func(h *facts.Host) {
			bad, good := goodRun(4, 0), goodRun(4, 11)
			bad.Rows, bad.Hung, good.NoP2P = nil, true, true
			h.NCCL = []facts.NCCLRun{bad, good}
		}, "NCCL_P2P_DISABLE"},
		{"a hang with and without", nil, func(h *facts.Host) {
			bad, worse := goodRun(4, 0), goodRun(4, 0)
			bad.Rows, bad.Hung, worse.Rows, worse.Hung, worse.NoP2P = nil, true, nil, true, true
			h.NCCL = []facts.NCCLRun{bad, worse}
		}, ""},
	} {
		rig, h := goodRig(4), goodHost(4)
		row.change(h)
		got := ""
		for _, n := range NCCLNeeds(rig, h, row.findings, PolicyFor(nil, 4), cat) {
			got += n[0]
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
