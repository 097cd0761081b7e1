//go:build linux

package main

import (
	"strings"
	"testing"

	"preflight/internal/probe/wire"
)

// small keeps the fakes quick: they sum on the processor.
func small(layout string) *wire.AllReduceRequest {
	return &wire.AllReduceRequest{Layout: layout, Sizes: []int64{4096, 1 << 20}, WarmUp: 1, Iterations: 3, Batches: 3}
}

func TestFaults(t *testing.T) {
	reduce := wire.Request{Command: wire.CommandAllReduce, AllReduce: small("")}
	ranks := wire.Request{Command: wire.CommandAllReduce, Cards: []int{0, 1}, AllReduce: small(wire.LayoutRanks)}
	links := wire.Request{Command: wire.CommandLinks, Links: &wire.LinksRequest{Sizes: []int64{1 << 20}, Repeats: 2}}
	hello := wire.Request{Command: wire.CommandHello}
	soon := func(r wire.Request, phase string) wire.Request {
		r.Deadlines = map[string]float64{phase: 1.5}
		return r
	}
	at := func(r wire.Request, cuda, nccl string) wire.Request {
		r.LibCUDA, r.LibNCCL = cuda, nccl
		return r
	}
	cases := map[string]struct {
		r                       wire.Request
		env                     string // further variables, separated by blanks
		phase, state, key, text string
		exit                    int
	}{
		"no libcuda":              {at(hello, "/nowhere/libcuda.so.1", ""), "", wire.PhaseLoadCUDA, "error", wire.KeyNoLibCUDA, "no such file", 3},
		"libcuda is no library":   {at(hello, "/etc/passwd", ""), "", wire.PhaseLoadCUDA, "error", wire.KeyCannotLoad, "/etc/passwd", 3},
		"missing symbol":          {at(hello, "@/libcuda-old.so", ""), "", wire.PhaseLoadCUDA, "error", wire.KeyMissingSymbol, "cuMemHostAlloc", 3},
		"hang in cuInit":          {soon(hello, wire.PhaseCUDAInit), "FAKE_GPU_FAULT=cuinit-hang", wire.PhaseCUDAInit, "timeout", wire.KeyHang, "within 1.5 s", 4},
		"no device":               {hello, "FAKE_GPU_FAULT=no-device", wire.PhaseCUDAInit, "error", wire.KeyNoDevice, "no CUDA-capable device is detected", 3},
		"system not ready":        {hello, "FAKE_GPU_FAULT=not-ready", wire.PhaseCUDAInit, "error", wire.KeyNotReady, "system not yet initialized", 3},
		"driver and library":      {hello, "FAKE_GPU_FAULT=mismatch", wire.PhaseCUDAInit, "error", wire.KeyDriverMismatch, "unsupported display driver", 3},
		"busy":                    {links, "FAKE_GPU_FAULT=busy", wire.PhaseContext, "error", wire.KeyBusy, "busy or unavailable", 3},
		"exclusive mode":          {links, "FAKE_GPU_FAULT=exclusive", wire.PhaseContext, "error", wire.KeyExclusive, "busy or unavailable", 3},
		"prohibited mode":         {links, "FAKE_GPU_FAULT=prohibited", wire.PhaseContext, "error", wire.KeyProhibited, "busy or unavailable", 3},
		"out of memory":           {links, "FAKE_GPU_FAULT=out-of-memory", wire.PhaseMemory, "error", wire.KeyOutOfMemory, "out of memory", 3},
		"one card":                {reduce, "FAKE_GPU_COUNT=1", wire.PhaseDevices, "error", wire.KeyOneCard, "1 card", 3},
		"MIG":                     {reduce, "FAKE_GPU_COUNT=1 FAKE_GPU_FAULT=mig", wire.PhaseDevices, "error", wire.KeyMIG, "split by MIG", 3},
		"a card that is not":      {wire.Request{Command: wire.CommandLinks, Cards: []int{0, 7}}, "", wire.PhaseContext, "error", wire.KeyInvalidDevice, "there is no card 7", 3},
		"no libnccl":              {at(reduce, "", "/nowhere/libnccl.so.2"), "", wire.PhaseLoadNCCL, "error", wire.KeyNoLibNCCL, "no such file", 3},
		"old NCCL":                {reduce, "FAKE_NCCL_VERSION=2408", wire.PhaseLoadNCCL, "error", wire.KeyOldNCCL, "libnccl 2.4.8", 3},
		"memory inside NCCL":      {reduce, "FAKE_GPU_FAULT=nccl-oom", wire.PhaseNCCLInit, "error", wire.KeyOutOfMemory, "unhandled cuda error", 3},
		"hang in init":            {soon(reduce, wire.PhaseNCCLInit), "FAKE_GPU_FAULT=init-hang", wire.PhaseNCCLInit, "timeout", wire.KeyHang, "nccl-init did not end", 4},
		"hang in init, ranks":     {soon(ranks, wire.PhaseNCCLInit), "FAKE_GPU_FAULT=init-hang", wire.PhaseNCCLInit, "timeout", wire.KeyHang, "nccl-init did not end", 4},
		"hang in the first":       {soon(reduce, wire.PhaseNCCLFirst), "FAKE_GPU_FAULT=first-hang", wire.PhaseNCCLFirst, "timeout", wire.KeyHang, "nccl-first did not end", 4},
		"hang with P2P, ranks":    {soon(ranks, wire.PhaseNCCLFirst), "FAKE_GPU_P2P=1 FAKE_GPU_FAULT=nccl-p2p-hang", wire.PhaseNCCLFirst, "timeout", wire.KeyHang, "nccl-first did not end", 4},
		"wrong sums":              {reduce, "FAKE_GPU_FAULT=wrong-sums", wire.PhaseNCCLMeasure, "result", wire.KeyWrongSums, "1 elements", 3},
		"wrong sums, ranks":       {ranks, "FAKE_GPU_FAULT=wrong-sums", wire.PhaseNCCLMeasure, "result", wire.KeyWrongSums, "1 elements", 3},
		"P2P that corrupts":       {reduce, "FAKE_GPU_P2P=1 FAKE_GPU_FAULT=p2p-corrupt", wire.PhaseNCCLMeasure, "result", wire.KeyWrongSums, "1 elements", 3},
		"crash":                   {reduce, "FAKE_GPU_FAULT=crash", wire.PhaseNCCLFirst, "error", wire.KeyCrash, "segmentation fault", 5},
		"crash, ranks":            {ranks, "FAKE_GPU_FAULT=crash", wire.PhaseNCCLFirst, "error", wire.KeyCrash, "segmentation fault", 5},
		"the request's own limit": {wire.Request{Command: wire.CommandHello, Limit: 1}, "FAKE_GPU_FAULT=cuinit-hang", wire.PhaseCUDAInit, "timeout", wire.KeyHang, "limit of the request", 4},
		"no such command":         {wire.Request{Command: "mine"}, "", wire.PhaseRequest, "error", wire.KeyBadRequest, "unknown command", 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.r.LibCUDA = strings.ReplaceAll(c.r.LibCUDA, "@", built.dir)
			lines, exit := ask(t, c.r, strings.Fields(c.env)...)
			if exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			bad := pick(lines, func(l wire.Line) bool { return l.Error != nil && l.State != wire.StateCut })
			if len(bad) == 0 {
				t.Fatalf("nothing is wrong: %+v", lines)
			}
			for _, l := range bad {
				if l.Phase != c.phase || l.State != c.state || l.Error.Key != c.key || !strings.Contains(l.Error.Text, c.text) {
					t.Errorf("%s %s %+v, want %s %s %s %q", l.Phase, l.State, *l.Error, c.phase, c.state, c.key, c.text)
				}
			}
			if w := wrongOutcome(lines, c.exit); w != "" {
				t.Error(w)
			}
		})
	}
}

// wrongOutcome compares the last line with the exit code.
func wrongOutcome(lines []wire.Line, exit int) string {
	last := lines[len(lines)-1]
	if exits[last.Outcome] != exit {
		return "the last line says " + last.Outcome
	}
	return ""
}
