package checks

import (
	"testing"

	"preflight/internal/facts"
)

func run(change func(*facts.NCCLRun)) func(*rg, *ho) {
	return func(_ *rg, h *ho) { change(&h.NCCL[0]) }
}

func busbw(v float64) func(*rg, *ho) {
	return run(func(r *facts.NCCLRun) { *r = goodRun(r.Ranks, v) })
}

func TestNCCL(t *testing.T) {
	runRows(t, "nccl.all-reduce", []row{
		{"8 × 4090 over SHM at 14.5", 8, busbw(14.5), Pass, ""},
		{"two 4090 at 0.9: a sick host", 2, busbw(0.9), Fail, "nccl.all-reduce/slow"},
		{"two 4090 at 6: under 0.70 of what links allow", 2, busbw(6), Warn, "nccl.all-reduce/slow"},
		{"wrong values", 4, run(func(r *facts.NCCLRun) { r.Wrong = 50 }), Fail, "nccl.all-reduce/wrong-data"},
		{"hang", 4, run(func(r *facts.NCCLRun) { r.Rows, r.Hung = nil, true }), Fail, "nccl.all-reduce/hang"},
		{"an error", 4, run(func(r *facts.NCCLRun) { r.Rows, r.Error = nil, "unhandled cuda error" }), Fail, "nccl.all-reduce/error"},
		{"libraries of two versions", 4, run(func(r *facts.NCCLRun) {
			r.Rows, r.Error = nil, "Incompatible NCCL versions. nccl-tests was compiled with NCCL 2.28"
		}), Fail, "nccl.all-reduce/library"},
		{"the tool cannot start", 4, run(func(r *facts.NCCLRun) { r.Rows, r.Missing, r.Exit = nil, "libnccl.so.2: cannot open", 127 }), Unknown, ""},
		{"three of four took part", 4, run(func(r *facts.NCCLRun) { r.Ranks = 3 }), Fail, "nccl.all-reduce/ranks"},
		{"network inside one host", 4, run(func(r *facts.NCCLRun) { r.Transport = "NET" }), Fail, "nccl.all-reduce/transport"},
		{"one rank each", 4, run(func(r *facts.NCCLRun) { r.SingleRanks = true }), Unknown, ""},
		{"no engine", 4, run(func(r *facts.NCCLRun) { *r = facts.NCCLRun{Missing: "no nccl-tests on this host", Source: src} }), Unknown, ""},
		{"busy", 4, run(func(r *facts.NCCLRun) { *r = facts.NCCLRun{Busy: "0000:01:00.0: 3 compute processes", Source: src} }), Unknown, ""},
		{"never run", 4, func(_ *rg, h *ho) { h.NCCL = nil }, Unknown, ""},
		{"one card", 1, func(_ *rg, h *ho) { h.NCCL = nil }, Skip, ""},
		{"8 × A100 SXM at 235", 8, func(r *rg, h *ho) {
			r.GPU = "a100-40gb-sxm"
			for i := range h.Cards {
				h.Cards[i].Product, h.Cards[i].Slug, h.Cards[i].MemoryMiB = "20b0", of("a100-40gb-sxm"), of(int64(40960))
			}
			h.NCCL[0] = goodRun(8, 235)
			h.NCCL[0].Transport = "P2P"
		}, Pass, ""},
	})
}

// A narrow link makes the all-reduce slow; the report must lead with the link.
func TestSlowAllReduceIsExplainedByTheLink(t *testing.T) {
	rig, h := goodRig(4), goodHost(4)
	width("0000:21:00.0", 8)(rig, h)
	h.NCCL[0] = goodRun(4, 7.1)
	fs := judge(rig, h)
	v, f := verdictOf(fs, "nccl.all-reduce")
	if v != Warn || f.Cause == nil || *f.Cause != "pcie.width@0000:21:00.0" {
		t.Errorf("got %s, cause %v: %s", v, f.Cause, f.Summary)
	}
}

func TestMissingCardIsExplainedByAddressSpace(t *testing.T) {
	rig, h := goodRig(8), goodHost(8)
	lowBARs(h)
	h.Windows = []facts.Window{{Bus: "0000:00", Start: 0xc0000000, End: 0xfebfffff, Source: src}}
	drop(h)
	_, f := verdictOf(judge(rig, h), "gpu.count")
	if f.Cause == nil || *f.Cause != "firmware.above-4g@rig" {
		t.Errorf("cause %v", f.Cause)
	}
}

func TestFindingsAreStable(t *testing.T) {
	a, b := judge(goodRig(8), goodHost(8)), judge(goodRig(8), goodHost(8))
	for i := range a {
		if a[i].ID != b[i].ID || a[i].Summary != b[i].Summary || a[i].Fingerprint != b[i].Fingerprint {
			t.Errorf("finding %d differs between two runs: %s / %s", i, a[i].ID, b[i].ID)
		}
	}
}
