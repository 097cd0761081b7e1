package checks

import (
	"strings"
	"testing"

	"preflight/internal/facts"
)

// rates sets what one card copies at, alone and while all copy.
func rates(card int, alone, together float64) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		for i := range h.Rates {
			if r := &h.Rates[i]; r.BDF == h.Cards[card].BDF {
				if r.Best = alone; r.Cards > 1 {
					r.Best = together
				}
			}
		}
	}
}

func both(fs ...func(*rg, *ho)) func(*rg, *ho) {
	return func(r *rg, h *ho) {
		for _, f := range fs {
			f(r, h)
		}
	}
}

func TestLinkBandwidth(t *testing.T) {
	runRows(t, "link.bandwidth", []row{
		{"every card at its link's rate", 4, func(*rg, *ho) {}, Pass, ""},
		{"one at 0.7 of the plan", 4, rates(1, 17.6, 17.6), Warn, "link.bandwidth/slow"},
		{"one at 0.3 of the plan", 4, rates(1, 7.5, 7.5), Fail, "link.bandwidth/slow"},
		{"one a fifth below its equals", 4, both(rates(0, 26, 26), rates(1, 19.5, 19.5)), Warn, "link.bandwidth/slow"},
		{"an x8 link at the rate of x8", 2, both(width("0000:01:00.0", 8), rates(0, 12.4, 12.4)), Pass, ""},
		{"all at once at half", 4, rates(2, 24.6, 12), Warn, "link.bandwidth/crowded"},
		{"slow, measured by force beside a job", 4, both(rates(1, 7.5, 7.5), func(_ *rg, h *ho) { h.Cards[1].Processes = of(1) }), Unknown, ""},
		{"right although a job runs", 4, func(_ *rg, h *ho) { h.Cards[1].Processes = of(1) }, Pass, ""},
		{"not measured", 4, func(_ *rg, h *ho) { h.Rates = nil }, Unknown, ""},
		{"one card not measured", 4, func(_ *rg, h *ho) { h.Rates = h.Rates[4:] }, Unknown, ""},
		{"the helper could not run", 4, func(_ *rg, h *ho) {
			h.Rates, h.Helper = nil, facts.Helper{Ended: of("never"), Reason: of("every directory is mounted noexec")}
		}, Unknown, ""},
		{"in a guest", 4, func(_ *rg, h *ho) { h.Kind = of("vm") }, Unknown, ""},
	})
}

// loadedAt makes every card's own link seen at Gen4 x16 under load, and copies run at a rate.
func loadedAt(gbs float64) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		for _, c := range h.Cards {
			h.Load = append(h.Load, facts.LinkSample{BDF: c.BDF, Speed: 16, Width: 16, Loaded: true, Count: 5, Source: src})
		}
		for i := range h.Rates {
			h.Rates[i].Best = gbs
		}
	}
}

// An uplink that is slower than the cards' own links is pcie.uplink's matter: a card that fills it is sound.
func TestCopiesThroughAnUplink(t *testing.T) {
	runRows(t, "link.bandwidth", []row{
		{"a Gen3 uplink, filled", 2, both(switched(16, 8), loadedAt(12.4)), Pass, ""},
		{"a Gen4 uplink of x8, filled", 2, both(switched(8, 16), loadedAt(12.4)), Pass, ""},
		{"a Gen4 uplink, half filled", 2, both(switched(16, 16), loadedAt(12.4)), Fail, "link.bandwidth/slow"},
		{"a Gen3 uplink, a third filled", 2, both(switched(16, 8), loadedAt(4)), Fail, "link.bandwidth/slow"},
	})
}

// Slowness that the link's own errors explain is no fault of its own.
func TestSlowCopiesAreExplainedByErrors(t *testing.T) {
	rig, h := goodRig(2), goodHost(2)
	rates(0, 9, 9)(rig, h)
	bdf := h.Cards[0].BDF
	fs := []Finding{
		fail(bdf, "errs").fix("pcie.errors/link"), fail(bdf, "slow").fix("link.bandwidth/slow"),
	}
	fs[0].Check, fs[0].ID, fs[1].Check, fs[1].ID = "pcie.errors", "pcie.errors@"+bdf, "link.bandwidth", "link.bandwidth@"+bdf
	link(fs)
	if fs[1].Cause == nil || *fs[1].Cause != fs[0].ID {
		t.Errorf("cause %v", fs[1].Cause)
	}
}

// copied sets the result of the P2P copies between all pairs.
func copied(result string) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		h.Copies = nil
		for _, a := range h.Cards {
			for _, b := range h.Cards {
				if a.BDF != b.BDF {
					h.Copies = append(h.Copies, facts.PeerCopy{From: a.BDF, To: b.BDF, Path: "p2p", Result: result, Bytes: 48 << 20, Best: 25, Source: src},
						facts.PeerCopy{From: a.BDF, To: b.BDF, Path: "staged", Result: "ok", Bytes: 48 << 20, Best: 18, Source: src})
				}
			}
		}
	}
}

func TestCopiesBetweenCards(t *testing.T) {
	runRows(t, "topology.p2p", []row{
		{"no P2P claimed, none tried", 4, copied("absent"), Pass, ""},
		{"every byte arrives", 4, copied("ok"), Pass, ""},
		{"data arrives wrong", 4, copied("corrupt"), Fail, "topology.p2p/corrupt"},
		{"a copy never ends", 4, copied("hang"), Fail, "topology.p2p/corrupt"},
		{"the driver refuses what it claims", 4, copied("error"), Fail, "topology.p2p/corrupt"},
		{"right and slow", 4, copied("slow"), Warn, "topology.p2p/slow"},
		{"broken off after the first path", 4, both(copied("ok"), func(_ *rg, h *ho) { h.Copies = h.Copies[:1] }), Unknown, ""},
		{"broken off where the profile requires P2P", 4, both(copied("ok"), func(r *rg, h *ho) { h.Copies = h.Copies[:1] }), Unknown, ""},
		{"one path was not tried", 4, both(copied("ok"), func(_ *rg, h *ho) { h.Copies[0].Result = "not-tried" }), Unknown, ""},
		{"one path is claimed by nobody", 4, both(copied("ok"), func(_ *rg, h *ho) { h.Copies[0].Result = "absent" }), Pass, ""},
		{"broken off, and one arrived wrong", 4, both(copied("corrupt"), func(_ *rg, h *ho) { h.Copies = h.Copies[:1] }), Fail, "topology.p2p/corrupt"},
		{"only staged copies were made", 4, both(copied("ok"), func(_ *rg, h *ho) {
			for i := range h.Copies {
				h.Copies[i].Path = "staged"
			}
		}), Pass, ""},
	})
	rig, h := goodRig(4), goodHost(4)
	copied("ok")(rig, h)
	if _, f := verdictOf(judge(rig, h), "topology.p2p"); !strings.Contains(f.Note, "patched") {
		t.Errorf("P2P on a GeForce is not remarked on: %s (%s)", f.Summary, f.Note)
	}
}

// A run that was broken off proves no fault and no health; wrong sums that were seen before count all the same.
func TestRunsThatBrokeOff(t *testing.T) {
	for wrong, want := range map[int64]Verdict{-1: Unknown, 0: Unknown, 3: Fail} {
		rig, h := goodRig(4), goodHost(4)
		run := goodRun(4, 14)
		run.Wrong, run.Cut, run.Phase = wrong, "the connection ended during the run", "nccl-measure"
		h.NCCL = []facts.NCCLRun{run}
		if v, f := verdictOf(judge(rig, h), "nccl.all-reduce"); v != want || want == Unknown && f.Known == "" {
			t.Errorf("%d wrong: %s %s", wrong, v, f.Summary)
		}
	}
}

// What the same run without P2P gave locates a hang.
func TestRunsWithoutP2PLocateTheFault(t *testing.T) {
	hung := facts.NCCLRun{Engine: "native", Layout: "single", Ranks: 4, Wrong: -1, Hung: true, Phase: "nccl-first", Source: src}
	fine := goodRun(4, 14)
	fine.Engine, fine.Layout, fine.NoP2P = "native", "single", true
	alsoHung := hung
	alsoHung.NoP2P = true
	good := goodRun(4, 14)
	good.Engine, good.Layout = "native", "single"
	wedged := hung
	wedged.Wedged = true
	for _, r := range []struct {
		name, code, note string
		runs             []facts.NCCLRun
		want             Verdict
	}{
		{"P2P is the broken path", "nccl.all-reduce/hang", "P2P is the broken path", []facts.NCCLRun{hung, fine}, Fail},
		{"hangs either way", "nccl.all-reduce/hang", "hangs without P2P", []facts.NCCLRun{hung, alsoHung}, Fail},
		{"P2P was not trusted at all", "", "copies between the cards did not arrive", []facts.NCCLRun{fine}, Pass},
		{"both run", "", "14.0 GB/s without P2P", []facts.NCCLRun{good, fine}, Pass},
		{"stuck in the kernel", "nccl.all-reduce/wedged", "", []facts.NCCLRun{wedged}, Fail},
	} {
		t.Run(r.name, func(t *testing.T) {
			rig, h := goodRig(4), goodHost(4)
			h.NCCL = r.runs
			v, f := verdictOf(judge(rig, h), "nccl.all-reduce")
			if v != r.want || f.Remedy != r.code || !strings.Contains(f.Summary+f.Note, r.note) {
				t.Errorf("%s %q: %s (%s)", v, f.Remedy, f.Summary, f.Note)
			}
			if r.runs[0].Phase != "" && !strings.Contains(f.Summary, "first all-reduce") {
				t.Errorf("the phase is not in words: %s", f.Summary)
			}
		})
	}
}

// A driver that hangs before any figure is named by both checks, with the phase.
func TestDriverThatHangsBeforeAnyFigure(t *testing.T) {
	for phase, words := range map[string]string{"cuda-init": "the driver's initialisation", "link-alone": "copies between host and a card"} {
		rig, h := goodRig(4), goodHost(4)
		h.Rates, h.NCCL = nil, nil
		h.Helper = facts.Helper{Ended: of("exit"), Key: of("hang"), Reason: of("a phase did not end in time"), Phase: of(phase)}
		fs := judge(rig, h)
		for _, check := range []string{"link.bandwidth", "nccl.all-reduce"} {
			if v, f := verdictOf(fs, check); v != Unknown || !strings.Contains(f.Summary, words) {
				t.Errorf("%s: %s %s", check, v, f.Summary)
			}
		}
	}
}

// A slow run beside a job, by force, is no verdict; a result from elsewhere may show its own processes, and is one.
func TestSlowRunBesideAJob(t *testing.T) {
	for source, want := range map[string]Verdict{"probe:native": Unknown, "file:all_reduce.txt": Fail} {
		rig, h := goodRig(4), goodHost(4)
		h.Cards[1].Processes = of(1)
		run := goodRun(4, 2)
		run.Source = source
		h.NCCL = []facts.NCCLRun{run}
		if v, f := verdictOf(judge(rig, h), "nccl.all-reduce"); v != want {
			t.Errorf("%s: %s %s", source, v, f.Summary)
		}
	}
}

// What stands in the way of a measurement has a sentence of its own, and is no fault of the cards.
func TestHindrances(t *testing.T) {
	said := map[string]string{}
	for key := range measuring {
		rig, h := goodRig(4), goodHost(4)
		h.Rates, h.Helper = nil, facts.Helper{Ended: of("exit"), Key: of(key), Reason: of("the driver's words"), Phase: of("cuda-init")}
		h.NCCL = []facts.NCCLRun{{Engine: "native", Layout: "single", Ranks: 4, Wrong: -1, Key: key, Error: "the driver's words", Source: src}}
		fs := judge(rig, h)
		for _, check := range []string{"link.bandwidth", "nccl.all-reduce"} {
			v, f := verdictOf(fs, check)
			if v != Unknown || f.Known == "" || f.Summary != measuring[key].text {
				t.Errorf("%s, %s: %s %q", check, key, v, f.Summary)
			}
		}
		if other, twice := said[measuring[key].text]; twice {
			t.Errorf("%s and %s say the same", key, other)
		}
		said[measuring[key].text] = key
	}
}
