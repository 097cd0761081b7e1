package checks

import (
	"fmt"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// nccl.all-reduce: do all cards reduce together, correctly, at the speed that their links allow?
//
//	correctness first:
//	  #wrong > 0                                   fail
//	  no row after the header, or past deadline    fail: hang, with its phase
//	  an error of CUDA or NCCL                     fail
//	  fewer ranks than cards                       fail
//	  network transport inside one host            fail
//	then the bus bandwidth of the largest size against E, what the measured (else achievable) links allow:
//	  ≥ 0.70 E      pass        0.35–0.70 E      warn        < 0.35 E      fail
//	below E, but no size reached 16 MiB: unknown, latency decides there
//	good against E but under 0.70 of what cards and slots could do at their best: warn, caused by the PCIe finding
//	no engine on the host, cards busy, not run     unknown
//	one card                                       skip
//
// Traps: "Avg bus bandwidth" is a mean over all sizes and no result; a build without MPI under mpirun runs
// independent one-rank jobs. Source: nccl-tests text or JSON, NCCL's log.
var ncclAllReduce = Check{ID: "nccl.all-reduce", Title: "NCCL all-reduce", Decide: decideNCCL}

func decideNCCL(s Subject) []Finding {
	if found := acrossHosts(s); found != nil && len(s.Host.NCCL) == 0 {
		return found
	}
	return append(oneHost(s), acrossHosts(s)...)
}

// oneHost judges the runs within the host.
func oneHost(s Subject) []Finding {
	if cardCount(s) == 1 && len(s.Host.NCCL) == 0 {
		return []Finding{skip(rigSubject, "one card has nobody to reduce with")}
	}
	var out []Finding
	for i, run := range primary(s.Host.NCCL) {
		f := compared(s, judgeRun(s, run), run)
		switch { // findings are told apart by their subject
		case i == 0:
		case run.Layout == "ranks":
			f.Subject = "process-per-card"
		default:
			f.Subject = fmt.Sprintf("run-%d", i+1)
		}
		out = append(out, f)
	}
	if len(out) == 0 && s.Host.Helper.Reason.Known() {
		return []Finding{unmeasured(s)} // it began, and did not come as far as an all-reduce
	}
	if len(out) == 0 {
		return []Finding{unknown(rigSubject, "no all-reduce was run").knownBy("measure the host: preflight probe nccl")}
	}
	return out
}

// primary are the runs to judge: those as the rig is set up. Runs without P2P are there to compare with, and judged
// only where nothing else was run.
func primary(runs []facts.NCCLRun) []facts.NCCLRun {
	var out []facts.NCCLRun
	for _, r := range runs {
		if !r.NoP2P {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return runs
	}
	return out
}

// compared tells what the same run without P2P gave: that locates a fault, or shows what P2P is worth.
func compared(s Subject, f Finding, run facts.NCCLRun) Finding {
	if run.NoP2P {
		return f.noting("run without P2P, since copies between the cards did not arrive")
	}
	for _, other := range s.Host.NCCL {
		if !other.NoP2P || other.Layout != run.Layout {
			continue
		}
		row, ok := other.Plateau()
		switch bad := f.Verdict == Fail || f.Verdict == Warn; {
		case ok && other.Wrong <= 0 && f.Verdict == Fail && (run.Hung || run.Error != "" || run.Wrong > 0):
			f.Summary += fmt.Sprintf("; without P2P (NCCL_P2P_DISABLE=1) it runs, at %.1f GB/s: P2P is the broken path", row.BusBW)
			return f
		case other.Hung && bad:
			f.Summary += "; it hangs without P2P (NCCL_P2P_DISABLE=1) as well"
			return f
		case ok:
			return f.noting("%.1f GB/s without P2P", row.BusBW)
		}
	}
	return f
}

func judgeRun(s Subject, run facts.NCCLRun) Finding {
	if f, done := notRun(run); done {
		return f
	}
	if f, bad := incorrect(s, run); bad {
		return f
	}
	row, ok := run.Plateau()
	if !ok || row.BusBW <= 0 {
		return unknown(rigSubject, "the run gave no result").because(evs(run.Source, "no usable row")).knownBy("run it again with NCCL_DEBUG=INFO")
	}
	return judgeSpeed(s, run, row)
}

// notRun: the probe could not or would not measure.
func notRun(run facts.NCCLRun) (Finding, bool) {
	if f, ok := hindered(run.Key, evs(run.Source, run.Error)); ok && len(run.Rows) == 0 {
		return f, true
	}
	switch {
	case run.Missing != "" && run.Engine == "none" && strings.HasPrefix(run.Missing, "the driver "):
		return unknown(rigSubject, "%s", run.Missing).because(evs(run.Source, run.Missing)).knownBy("mend driver.loaded first"), true
	case run.Missing != "":
		return unknown(rigSubject, "%s", run.Missing).because(evs(run.Source, run.Missing)).
			knownBy("mend what it says; or install nccl-tests (git clone https://github.com/NVIDIA/nccl-tests && make, or your distribution's package), or give the output of all_reduce_perf with --from"), true
	case run.Busy != "":
		return unknown(rigSubject, "the cards are busy: %s", run.Busy).because(evs(run.Source, run.Busy)).knownBy("run again when they are idle, or with --force"), true
	case run.Cut != "" && run.Wrong <= 0:
		return unknown(rigSubject, "the run broke off before its end: %s", run.Cut).because(evs(run.Source, run.Cut+inPhase(run))).
			knownBy("run it again; where the host went down meanwhile, read what its log says of that (journalctl -b -1)"), true
	case run.SingleRanks:
		return unknown(rigSubject, "independent jobs of one rank each: this nccl-tests was built without MPI").because(evs(run.Source, "ranks "+strconv.Itoa(run.Ranks))).
			knownBy("run all_reduce_perf -g N without mpirun"), true
	}
	return Finding{}, false
}

// incorrect are the faults that come before any speed.
func incorrect(s Subject, run facts.NCCLRun) (Finding, bool) {
	want := len(s.Cards)
	if want == 0 && s.Rig.Cards != nil {
		want = *s.Rig.Cards
	}
	base := func(f Finding) Finding { return f.because(evs(run.Source, engineWords(run))) }
	switch {
	case run.Wrong > 0:
		return base(fail(rigSubject, "%d values came out wrong", run.Wrong)).saw(fmt.Sprint(run.Wrong), "0").because(evs(run.Source, fmt.Sprintf("#wrong %d", run.Wrong))).fix("nccl.all-reduce/wrong-data"), true
	case run.Wedged:
		return base(fail(rigSubject, "the all-reduce hangs in the kernel%s: the driver is wedged", inPhase(run))).saw("hang", "a result").noting("%s", hangHint(s)).fix("nccl.all-reduce/wedged"), true
	case run.Hung:
		return base(fail(rigSubject, "the all-reduce hangs%s", inPhase(run))).saw("hang", "a result").noting("%s", hangHint(s)).fix("nccl.all-reduce/hang"), true
	case run.Error != "":
		code := "nccl.all-reduce/error"
		if strings.Contains(run.Error, "Incompatible NCCL versions") {
			code = "nccl.all-reduce/library"
		}
		return base(fail(rigSubject, "the all-reduce fails: %s", run.Error)).saw(run.Error, "a result").fix(code, "error", run.Error), true
	case run.Ranks == 1 && want != 1:
		return base(unknown(rigSubject, "a run on one card says nothing about several")).saw("1 rank", "").knownBy("run all_reduce_perf -g " + strconv.Itoa(max(want, 2))), true
	case run.Ranks > 0 && want > 0 && run.Ranks < want:
		return base(fail(rigSubject, "%d of %d cards took part", run.Ranks, want)).saw(strconv.Itoa(run.Ranks), strconv.Itoa(want)).fix("nccl.all-reduce/ranks"), true
	case run.Transport == "NET" && run.Ranks <= max(want, 1):
		return base(fail(rigSubject, "cards of one host talk over the network")).saw("NET", "P2P or SHM").fix("nccl.all-reduce/transport", "transport", "NET"), true
	}
	return Finding{}, false
}

func engineWords(run facts.NCCLRun) string {
	return fmt.Sprintf("engine %s%s, libnccl %s, %d ranks", run.Engine, prefixed(" ", run.Tool), firstOf(run.Library, "unknown"), run.Ranks)
}

func prefixed(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

func inPhase(run facts.NCCLRun) string {
	return prefixed(" in ", firstOf(phaseWords[run.Phase], run.Phase))
}

// phaseWords are the helper's phases in words.
var phaseWords = map[string]string{
	"cuda-init": "the driver's initialisation", "context": "opening a card", "memory": "taking memory on a card",
	"nccl-id": "NCCL's rendezvous", "nccl-init": "NCCL's initialisation", "nccl-first": "the first all-reduce", "nccl-measure": "an all-reduce under load",
	"link-alone": "copies between host and a card", "link-all": "copies between host and all cards", "link-busy": "copies between host and all cards",
	"nccl-end": "NCCL's end", "load-nccl": "loading libnccl", "load-cuda": "loading libcuda",
}

// hangHint names the causes that the facts at hand point at.
func hangHint(s Subject) string {
	const redirect = 0x4 | 0x8 | 0x10 // ReqRedir, CmpltRedir, UpstreamFwd
	for _, c := range s.Cards {
		for _, bdf := range c.Chain {
			if d, ok := s.device(bdf); ok && d.ACS.Value&redirect != 0 {
				return fmt.Sprintf("ACS redirect is on at %s (control %#06x): peer traffic detours through the root complex", bdf, d.ACS.Value)
			}
		}
	}
	if s.Host.IOMMU.Types["DMA"]+s.Host.IOMMU.Types["DMA-FQ"] > 0 {
		return "the IOMMU translates DMA: a usual cause of P2P hangs"
	}
	if p2pClaimed(s) && driverDisables(s) {
		return "the driver claims P2P on cards that normally have none"
	}
	for _, run := range s.Host.NCCL {
		if run.NoP2P {
			return "" // tried already, and told
		}
	}
	return "try NCCL_P2P_DISABLE=1: when that works, P2P is the broken path"
}

// plateauBytes is the size from which bandwidth and no longer latency decides: 16 to 32 MiB in published runs over PCIe.
const plateauBytes = 16 << 20

func judgeSpeed(s Subject, run facts.NCCLRun, row facts.NCCLRow) Finding {
	e, ok := expect(s, run, false)
	f := Finding{Subject: rigSubject, Observed: fmt.Sprintf("%.1f GB/s", row.BusBW)}.
		because(evs(run.Source, fmt.Sprintf("busbw %.2f GB/s at %d bytes", row.BusBW, row.Bytes)), evs(run.Source, engineWords(run)))
	if run.Wrong < 0 {
		f = f.noting("the data was not checked")
	}
	if !ok {
		if e, ok = guessByDeclaration(s, run, row); !ok {
			f.Verdict, f.Summary = Unknown, fmt.Sprintf("%.1f GB/s; what the links allow is not known", row.BusBW)
			return f.knownBy("give a snapshot of the host beside the result")
		}
	}
	f.Expected = fmt.Sprintf("≥ %.1f GB/s", s.Policy.NCCLPass*e.busbw)
	f.Summary = fmt.Sprintf("%.1f GB/s, %.0f %% of the %.1f that the links allow", row.BusBW, 100*row.BusBW/e.busbw, e.busbw)
	f = f.noting("expected %s", e.why)
	fix := func(f Finding) Finding {
		if c, busy := atWork(s); busy && strings.HasPrefix(run.Source, "probe") { // by --force; others' results may show their own processes
			f.Verdict, f.Summary = Unknown, fmt.Sprintf("%.1f GB/s, with other processes at work on %s", row.BusBW, c.BDF)
			return f.because(ev(c.Processes)).knownBy("run again when the cards are idle")
		}
		return f.fix("nccl.all-reduce/slow", "busbw", f.Observed, "expected", fmt.Sprintf("%.1f GB/s", e.busbw))
	}
	switch {
	case row.BusBW < s.Policy.NCCLPass*e.busbw && row.Bytes < plateauBytes:
		f.Verdict, f.Summary = Unknown, fmt.Sprintf("the largest size was %d bytes: too small to show what the links can do", row.Bytes)
		return f.knownBy("run all_reduce_perf up to 256M or more (-e 256M)")
	case row.BusBW < s.Policy.NCCLWarn*e.busbw:
		f.Verdict = Fail
		return fix(f)
	case row.BusBW < s.Policy.NCCLPass*e.busbw:
		f.Verdict = Warn
		return fix(f)
	}
	if best, ok := expect(s, run, true); ok && row.BusBW < s.Policy.NCCLPass*best.busbw && best.busbw > e.busbw*1.01 {
		f.Verdict = Warn
		f.Summary = fmt.Sprintf("%.1f GB/s, right for these links; %.1f if cards and slots ran at their best", row.BusBW, best.busbw)
		return fix(f)
	}
	f.Verdict = Pass
	return f
}

// atWork is a card that other processes used before the run.
func atWork(s Subject) (facts.Card, bool) {
	for _, c := range s.Cards {
		if c.Processes.Value > 0 {
			return c, true
		}
	}
	return facts.Card{}, false
}

// guessByDeclaration: only the model is declared. Its own full link is the most that can be asked for, so reaching
// the share of it passes; falling short may be the link's fault, so it is no more than a warning.
func guessByDeclaration(s Subject, run facts.NCCLRun, row facts.NCCLRow) (expectation, bool) {
	rows := s.Cat.BySlug(s.Rig.GPU)
	if len(rows) == 0 || run.Ranks < 2 {
		return expectation{}, false
	}
	share := shareSHM
	if run.Ranks > 4 {
		share = shareSHMWide
	}
	e := share * planShare * rawGBs(rows[0].Gen, rows[0].Width)
	if row.BusBW < s.Policy.NCCLWarn*e {
		return expectation{}, false
	}
	return expectation{e, fmt.Sprintf("%.2f × Gen%d x%d of a %s (links not in the input)", share, rows[0].Gen, rows[0].Width, rows[0].Name), "SHM"}, true
}
