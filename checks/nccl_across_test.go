package checks

import (
	"strings"
	"testing"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

func TestAcrossHosts(t *testing.T) {
	host := func(rig string, mbit int) facts.AcrossHost {
		return facts.AcrossHost{Rig: rig, Cards: 8, NCCL: "2.26.2", Interface: "eth2", Address: "10.0.0." + rig[len(rig)-1:], Mbit: mbit, LowPort: 32768, HighPort: 60999}
	}
	good := facts.AcrossRun{
		Name: "group:lab", Hosts: []facts.AcrossHost{host("node-1", 100_000), host("node-2", 100_000)}, Ranks: 16, Library: "2.26.2", Transport: "IB",
		Rows: []facts.NCCLRow{{Bytes: 1 << 20, BusBW: 2}, {Bytes: 256 << 20, BusBW: 10.4}},
	}
	with := func(change func(*facts.AcrossRun)) facts.AcrossRun {
		r := good
		r.Hosts = append([]facts.AcrossHost{}, good.Hosts...)
		r.Rows = append([]facts.NCCLRow{}, good.Rows...)
		change(&r)
		return r
	}
	busbw := func(v float64) facts.AcrossRun {
		return with(func(r *facts.AcrossRun) { r.Rows[1].BusBW = v })
	}
	problem := func(key, text string, where ...string) facts.AcrossRun {
		return with(func(r *facts.AcrossRun) { r.Problem, r.Text, r.Where, r.Rows = key, text, where, nil })
	}
	for name, tc := range map[string]struct {
		run     facts.AcrossRun
		verdict Verdict
		summary string
		remedy  string
	}{
		"100 Gbit/s InfiniBand at 92 %": {good, Pass, "10.40 GB/s across hosts, 92 % of the 11.25 that the network allows", ""},
		"half of it":                    {busbw(5.7), Warn, "51 %", "nccl.all-reduce/slow-network"},
		"a tenth of it":                 {busbw(1.1), Fail, "10 %", "nccl.all-reduce/slow-network"},
		"the same over TCP":             {with(func(r *facts.AcrossRun) { r.Transport = "Socket"; r.Rows[1].BusBW = 7.5 }), Pass, "of the 10.62 that the network allows", ""},
		"the slowest interface counts":  {with(func(r *facts.AcrossRun) { r.Hosts[1].Mbit = 10_000; r.Transport = "Socket"; r.Rows[1].BusBW = 1 }), Pass, "of the 1.06", ""},
		"a line rate that nobody tells": {with(func(r *facts.AcrossRun) { r.Hosts[1].Mbit, r.Hosts[1].Virtual = 0, true }), Unknown, "the line rate of eth2 on node-2 is not known, which has no device behind it", ""},
		"too small":                     {with(func(r *facts.AcrossRun) { r.Rows = r.Rows[:1] }), Unknown, "too small", ""},
		"no figure":                     {with(func(r *facts.AcrossRun) { r.Rows = nil }), Unknown, "gave no figure", ""},
		"wrong sums":                    {with(func(r *facts.AcrossRun) { r.Wrong = 7 }), Fail, "7 values came out wrong", "nccl.all-reduce/wrong-data"},
		"cards at work":                 {problem(facts.AcrossBusy, "0000:41:00.0 runs 1 compute processes", "node-2"), Unknown, "cards of node-2 are at work", ""},
		"no driver":                     {problem(facts.AcrossMissing, "no libcuda.so.1", "node-2"), Unknown, "node-2 cannot take part", ""},
		"no libnccl":                    {problem(facts.AcrossNoNCCL, "", "node-2"), Unknown, "node-2 has no libnccl", ""},
		"versions differ":               {problem(facts.AcrossVersions, "node-1 2.26.2, node-2 2.22.3"), Fail, "node-1 2.26.2, node-2 2.22.3", "nccl.all-reduce/nccl-versions"},
		"no interface":                  {problem(facts.AcrossInterface, "there is no interface eth9 here", "node-2"), Unknown, "finds no way to the others", ""},
		"the connection broke off":      {problem(facts.AcrossLost, "the connection was cut", "node-2"), Unknown, "broke off: node-2", ""},
		"one host hangs before the rest": {with(func(r *facts.AcrossRun) {
			r.Problem, r.Where, r.Phase = facts.AcrossHang, []string{"node-2"}, "context"
		}), Fail, "hangs in opening a card: node-2 is there first", "nccl.all-reduce/across-hang"},
		"all hang alike": {with(func(r *facts.AcrossRun) {
			r.Problem, r.Where, r.Phase = facts.AcrossHang, []string{"node-1", "node-2"}, "nccl-init"
		}), Fail, "hangs in NCCL's initialisation, on all rigs alike", "nccl.all-reduce/across-hang"},
		"one host fails": {problem(facts.AcrossError, "ncclCommInitRank: unhandled system error (2)", "node-2"), Fail, "fails on node-2: ncclCommInitRank", "nccl.all-reduce/across-hang"},
		"a firewall": {with(func(r *facts.AcrossRun) {
			r.Problem = facts.AcrossUnreachable
			r.Blocked = []facts.AcrossWay{{From: "node-1", To: "node-2", FromAddress: "10.0.0.1", ToAddress: "10.0.0.2", Result: "timeout"}, {From: "node-2", To: "node-1", Result: "timeout"}}
		}), Fail, "node-1 (10.0.0.1) does not reach node-2 (10.0.0.2): no answer; 1 more ways are blocked", "nccl.all-reduce/unreachable"},
	} {
		h := &facts.Host{Across: &tc.run}
		var got []Finding
		for _, f := range Run(nil, h, PolicyFor(nil, 8), catalog.MustLoad()) {
			if f.Check == "nccl.all-reduce" {
				got = append(got, f)
			}
		}
		if len(got) != 1 {
			t.Fatalf("%s: %d findings", name, len(got))
		}
		f := got[0]
		if f.Verdict != tc.verdict || !strings.Contains(f.Summary, tc.summary) || f.Remedy != tc.remedy || f.Subject != "group:lab" || f.Verdict == Unknown && f.Known == "" {
			t.Errorf("%s: %s %q %s %q", name, f.Verdict, f.Summary, f.Remedy, f.Known)
		}
	}
}
