//go:build linux

package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"preflight/internal/probe/wire"
)

func TestHello(t *testing.T) {
	lines, exit := ask(t, wire.Request{Command: wire.CommandHello}, "FAKE_GPU_COUNT=3", "FAKE_GPU_P2P=1", "NCCL_P2P_LEVEL=SYS")
	if exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	told := pick(lines, func(l wire.Line) bool { return l.Hello != nil })
	if len(told) != 1 {
		t.Fatalf("%d lines say hello", len(told))
	}
	h := told[0].Hello
	if len(h.Devices) != 3 || h.Devices[1].BDF != "0000:61:00.0" || h.Devices[1].Capability != "8.9" || !slices.Equal(h.Devices[1].Peers, []int{0, 2}) {
		t.Errorf("cards %+v", h.Devices)
	}
	if h.Env["NCCL_P2P_LEVEL"] != "SYS" || h.Protocol != wire.Protocol {
		t.Errorf("%+v", h)
	}
	if allocated := pick(lines, func(l wire.Line) bool { return l.Phase == wire.PhaseContext || l.Phase == wire.PhaseMemory }); len(allocated) > 0 {
		t.Errorf("hello took a card into use: %+v", allocated)
	}
	libs := pick(lines, func(l wire.Line) bool { return l.Library != nil })
	if len(libs) != 2 || libs[0].Library.Version != "12.4" || libs[1].Library.Version != "2.22.3" {
		t.Errorf("libraries %+v", libs)
	}
}

// NVML adds what CUDA cannot tell of a card that is not in use.
func TestHelloWithNVML(t *testing.T) {
	lines, exit := ask(t, wire.Request{Command: wire.CommandHello}, "LD_LIBRARY_PATH="+built.dir, "FAKE_GPU_FAULT=mig-mode")
	told := pick(lines, func(l wire.Line) bool { return l.Hello != nil })
	if exit != 0 || len(told) != 1 || len(told[0].Hello.Devices) != 2 {
		t.Fatalf("exit %d, %+v", exit, told)
	}
	d := told[0].Hello.Devices
	if d[0].Free != 0x41<<20 || d[1].Free != 0x61<<20 || d[0].MIG || !d[1].MIG {
		t.Errorf("%+v", d)
	}
}

func TestHelloWithoutNCCL(t *testing.T) {
	lines, exit := ask(t, wire.Request{Command: wire.CommandHello, LibNCCL: "/nowhere/libnccl.so.2"})
	missing := pick(lines, func(l wire.Line) bool { return l.Error != nil })
	if exit != 0 || len(missing) != 1 || missing[0].Error.Key != wire.KeyNoLibNCCL {
		t.Errorf("exit %d, %+v", exit, missing)
	}
}

// about says whether a rate is what the fake's link gives: its clock stands still while the test's machine works.
func about(got, want float64) bool { return math.Abs(got-want) <= want/20 }

func TestLinksFindTheSlowOne(t *testing.T) {
	r := wire.Request{Command: wire.CommandLinks, Links: &wire.LinksRequest{Sizes: []int64{4 << 20}, Repeats: 6, Busy: 0.3}}
	lines, exit := ask(t, r, "FAKE_GPU_FAULT=slow-link")
	if exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	want := []float64{20, 1.5} // GB/s of the fake's cards
	seen := map[string]int{}
	for _, l := range pick(lines, func(l wire.Line) bool { return l.Bandwidth != nil }) {
		b, rate := l.Bandwidth, want[*l.Card]
		if b.Direction == wire.BothWays {
			rate *= 2
		}
		if !about(b.Best, rate) || b.Best < b.Median || b.Median < b.Worst || b.Spread < 0 || b.Spread > 1 {
			t.Errorf("%s card %d: %+v, want %g", l.Phase, *l.Card, *b, rate)
		}
		seen[l.Phase]++
		if cards := map[string]int{wire.PhaseLinkAlone: 1}[l.Phase]; cards == 1 && b.Cards != 1 || cards == 0 && b.Cards != 2 {
			t.Errorf("%s: %d cards at once", l.Phase, b.Cards)
		}
	}
	if seen[wire.PhaseLinkAlone] != 6 || seen[wire.PhaseLinkAll] != 6 || seen[wire.PhaseLinkBusy] != 2 {
		t.Errorf("figures by phase: %v", seen)
	}
	busy := pick(lines, func(l wire.Line) bool { return l.Phase == wire.PhaseLinkBusy && l.Bandwidth == nil })
	if len(busy) != 2 || busy[1].T-busy[0].T < 0.3 {
		t.Errorf("the cards were busy for less than asked: %+v", busy)
	}
}

func TestPeers(t *testing.T) {
	sizes := []int64{64 << 10, 36 << 20}
	cases := map[string]struct {
		env      string
		r        wire.PeersRequest
		p2p      []string // results of 0→1, 1→0
		wrong    int64    // words
		exit     int
		staged   int
		deadline float64
	}{
		"no P2P":                  {"", wire.PeersRequest{}, []string{wire.PairAbsent, wire.PairAbsent}, 0, 0, 2, 20},
		"P2P":                     {"FAKE_GPU_P2P=1", wire.PeersRequest{}, []string{wire.PairOK, wire.PairOK}, 0, 0, 2, 20},
		"one direction":           {"FAKE_GPU_P2P=1", wire.PeersRequest{Pairs: [][2]int{{1, 0}}, NoStage: true}, []string{wire.PairOK}, 0, 0, 0, 20},
		"slower than asked":       {"FAKE_GPU_P2P=1", wire.PeersRequest{SlowBelow: 40, NoStage: true}, []string{wire.PairSlow, wire.PairSlow}, 0, 0, 0, 20},
		"corrupt":                 {"FAKE_GPU_P2P=1 FAKE_GPU_FAULT=p2p-corrupt", wire.PeersRequest{NoStage: true}, []string{wire.PairCorrupt, wire.PairCorrupt}, 16 << 10, 3, 0, 20},
		"corrupt beyond 32 MiB":   {"FAKE_GPU_P2P=1 FAKE_GPU_FAULT=p2p-corrupt-big", wire.PeersRequest{NoStage: true}, []string{wire.PairCorrupt, wire.PairCorrupt}, 1 << 20, 3, 0, 20},
		"hang":                    {"FAKE_GPU_P2P=1 FAKE_GPU_FAULT=p2p-hang", wire.PeersRequest{}, []string{wire.PairHang, wire.PairHang}, 0, 4, 2, 1.5},
		"hang, staged only asked": {"FAKE_GPU_P2P=1 FAKE_GPU_FAULT=p2p-hang", wire.PeersRequest{NoP2P: true}, nil, 0, 0, 2, 20},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.r.Sizes, c.r.Repeats = sizes, 2
			r := wire.Request{Command: wire.CommandPeers, Peers: &c.r, Deadlines: map[string]float64{wire.PhasePeerP2P: c.deadline}}
			lines, exit := ask(t, r, strings.Fields(c.env)...)
			var p2p []string
			staged := 0
			for _, l := range pick(lines, func(l wire.Line) bool { return l.Pair != nil }) {
				p := l.Pair
				switch {
				case p.Path == wire.PathStaged && p.Result == wire.PairOK && p.Best > 0:
					staged++
				case p.Path == wire.PathP2P:
					p2p = append(p2p, p.Result)
					if p.Wrong != c.wrong || p.Result == wire.PairOK && !about(p.Best, 25) {
						t.Errorf("%+v", *p)
					}
				default:
					t.Errorf("%+v", *p)
				}
			}
			if exit != c.exit || !slices.Equal(p2p, c.p2p) || staged != c.staged {
				t.Errorf("exit %d, P2P %v, %d staged; want %d, %v, %d", exit, p2p, staged, c.exit, c.p2p, c.staged)
			}
		})
	}
}

// Behind two hung pairs the rest of that path is left alone, and said so.
func TestHungPairsAreNotRepeated(t *testing.T) {
	r := wire.Request{Command: wire.CommandPeers, Peers: &wire.PeersRequest{Sizes: []int64{4096}, NoStage: true}, Deadlines: map[string]float64{wire.PhasePeerP2P: 1}}
	lines, exit := ask(t, r, "FAKE_GPU_P2P=1", "FAKE_GPU_FAULT=p2p-hang", "FAKE_GPU_COUNT=3")
	count := map[string]int{}
	for _, l := range pick(lines, func(l wire.Line) bool { return l.Pair != nil }) {
		count[l.Pair.Result]++
	}
	if exit != 4 || count[wire.PairHang] != 2 || count[wire.PairNotTried] != 4 {
		t.Errorf("exit %d, %v", exit, count)
	}
}

func TestAllReduce(t *testing.T) {
	cases := map[string]struct {
		layout    string
		cards     []int
		env       string
		vars      map[string]string
		ranks     int
		bus       float64 // GB/s of the fake
		transport string
		via       string
	}{
		"single, shared memory": {"", nil, "", nil, 2, 12, "SHM", "SHM/direct/direct"},
		"single, P2P":           {"", nil, "FAKE_GPU_P2P=1 FAKE_GPU_COUNT=4", nil, 4, 20, "P2P", "P2P/direct pointer"},
		"single, P2P off":       {"", nil, "FAKE_GPU_P2P=1", map[string]string{"NCCL_P2P_DISABLE": "1"}, 2, 12, "SHM", "SHM/direct/direct"},
		"hang with P2P, off":    {"", nil, "FAKE_GPU_P2P=1 FAKE_GPU_FAULT=nccl-p2p-hang", map[string]string{"NCCL_P2P_DISABLE": "1"}, 2, 12, "SHM", "SHM/direct/direct"},
		"login's variables":     {"", nil, "FAKE_GPU_P2P=1 NCCL_P2P_DISABLE=1", nil, 2, 20, "P2P", "P2P/direct pointer"},
		"ranks":                 {wire.LayoutRanks, []int{0, 2, 3}, "FAKE_GPU_COUNT=4 FAKE_GPU_P2P=1", nil, 3, 20, "P2P", "P2P/IPC"},
		"NCCL 2.18":             {"", nil, "FAKE_NCCL_VERSION=21803", nil, 2, 12, "SHM", "SHM/direct/direct"},
		"NCCL 2.28":             {wire.LayoutRanks, []int{0, 1}, "FAKE_NCCL_VERSION=22807", nil, 2, 12, "SHM", "SHM/direct/direct"},
		"NCCL 2.30":             {"", nil, "FAKE_NCCL_VERSION=23001", nil, 2, 12, "SHM", "SHM/direct"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := wire.Request{Command: wire.CommandAllReduce, Cards: c.cards, Env: c.vars, AllReduce: small(c.layout)}
			lines, exit := ask(t, r, strings.Fields(c.env)...)
			rows := pick(lines, func(l wire.Line) bool { return l.AllReduce != nil })
			if exit != 0 || len(rows) != 2 {
				t.Fatalf("exit %d, %d rows", exit, len(rows))
			}
			a := rows[1].AllReduce
			if a.Bytes != 1<<20 || a.Ranks != c.ranks || a.Wrong != 0 || !about(a.BusBW, c.bus) {
				t.Errorf("%+v, want %g GB/s", *a, c.bus)
			}
			logs := pick(lines, func(l wire.Line) bool { return l.Log != nil })
			if len(logs) != 1 {
				t.Fatalf("%d logs", len(logs))
			}
			log := logs[0].Log
			if log.Transport != c.transport || log.Complete != c.ranks || len(log.Edges) == 0 || log.Edges[0].Via != c.via || log.Interface != "eth0:10.0.0.1<0>" {
				t.Errorf("%+v", *log)
			}
		})
	}
}

// A ring so slow that the asked rounds would pass the phase's limit is measured with fewer, and is not called hung.
func TestSlowIsNotHung(t *testing.T) {
	r := wire.Request{
		Command: wire.CommandAllReduce, Deadlines: map[string]float64{wire.PhaseNCCLMeasure: 3},
		AllReduce: &wire.AllReduceRequest{Sizes: []int64{1 << 20}, WarmUp: 50, Iterations: 200, Batches: 5},
	}
	lines, exit := ask(t, r, "FAKE_GPU_FAULT=slow-ring")
	rows := pick(lines, func(l wire.Line) bool { return l.AllReduce != nil })
	if exit != 0 || len(rows) != 1 || !about(rows[0].AllReduce.BusBW, 0.05) {
		t.Errorf("exit %d, %+v", exit, rows)
	}
}

// Two helpers, as on two hosts, form one job by the id that the controller carries over.
func TestAcross(t *testing.T) {
	first, second := start(t), start(t)
	ask := func(from int, id string) wire.Request {
		return wire.Request{Command: wire.CommandAcross, Cards: []int{0, 1}, AllReduce: small(""), Across: &wire.AcrossRequest{FirstRank: from, Ranks: 4, ID: id, Interface: "eth9"}}
	}
	first.send(ask(0, ""))
	said := first.until(func(l wire.Line) bool { return l.ID != "" })
	second.send(ask(2, said[len(said)-1].ID))
	for _, h := range []*helper{first, second} {
		rows := pick(h.until(done), func(l wire.Line) bool { return l.AllReduce != nil })
		if len(rows) != 2 || rows[1].AllReduce.Ranks != 4 || rows[1].AllReduce.Wrong != 0 {
			t.Errorf("%+v", rows)
		}
	}
	if a, b := first.end(), second.end(); a != 0 || b != 0 {
		t.Errorf("exit %d and %d", a, b)
	}
}
