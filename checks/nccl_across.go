package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// Shares of a network's line rate that NCCL keeps for data, measured on published clusters: TCP sockets 85 %, InfiniBand and
// RoCE 90 %. Policy.
const (
	shareSocket = 0.85
	shareIB     = 0.90
)

// acrossHosts judges one all-reduce over several hosts; every host that took part tells the same.
//
//	cards at work, a host without driver or libnccl, the connection broke off    unknown
//	no version of libnccl that all hosts have                                    fail
//	a way between two hosts is blocked                                           fail; both addresses and the ports are named
//	it hangs or fails                                                            fail; the host that stuck first is named
//	wrong sums                                                                   fail
//	busbw against the line rate of the slowest host's interface × 0.85 or 0.90   nccl_pass, nccl_warn of it
//	no line rate known                                                           unknown
func acrossHosts(s Subject) []Finding {
	run := s.Host.Across
	if run == nil {
		return nil
	}
	f := acrossFinding(s, *run)
	f.Subject = run.Name
	return []Finding{f.because(acrossEvidence(*run)...)}
}

func acrossFinding(s Subject, run facts.AcrossRun) Finding {
	where := strings.Join(run.Where, ", ")
	switch run.Problem {
	case facts.AcrossBusy:
		return unknown(rigSubject, "not run across hosts: cards of %s are at work (%s)", where, run.Text).knownBy("run again when the cards are idle, or with --force")
	case facts.AcrossMissing:
		return unknown(rigSubject, "not run across hosts: %s cannot take part: %s", where, run.Text).knownBy("mend that rig first: preflight check")
	case facts.AcrossNoNCCL:
		return unknown(rigSubject, "not run across hosts: %s has no libnccl", where).knownBy("install libnccl2, or name the Python whose torch brings one: python in rigs.hcl")
	case facts.AcrossInterface:
		return unknown(rigSubject, "not run across hosts: %s finds no way to the others: %s", where, run.Text).knownBy("correct nic of the rig in rigs.hcl")
	case facts.AcrossLost:
		return unknown(rigSubject, "the run across hosts broke off: %s: %s", where, run.Text).knownBy("run again; if it stays, look at that rig's log")
	case facts.AcrossVersions:
		return fail(rigSubject, "no version of libnccl is on all rigs: %s", run.Text).saw(run.Text, "one version").fix("nccl.all-reduce/nccl-versions", "versions", run.Text)
	case facts.AcrossUnreachable:
		return blocked(run)
	case facts.AcrossHang:
		return acrossHang(run, where)
	case facts.AcrossError:
		return fail(rigSubject, "the all-reduce across hosts fails on %s: %s", where, run.Text).
			saw(run.Text, "a result").fix("nccl.all-reduce/across-hang", "host", where)
	}
	if run.Wrong > 0 {
		return fail(rigSubject, "%d values came out wrong across hosts", run.Wrong).saw(fmt.Sprint(run.Wrong), "0").fix("nccl.all-reduce/wrong-data")
	}
	return acrossSpeed(s, run)
}

func acrossHang(run facts.AcrossRun, where string) Finding {
	phase := firstOf(phaseWords[run.Phase], run.Phase)
	f := fail(rigSubject, "the all-reduce across hosts hangs in %s: %s is there first, and the others wait for it", phase, where)
	if len(run.Where) == len(run.Hosts) {
		f = fail(rigSubject, "the all-reduce across hosts hangs in %s, on all rigs alike", phase)
	}
	return f.saw("hang", "a result").fix("nccl.all-reduce/across-hang", "host", where)
}

// blocked names the first way that does not work, with both addresses, and how many more there are.
func blocked(run facts.AcrossRun) Finding {
	w := run.Blocked[0]
	more := ""
	if n := len(run.Blocked) - 1; n > 0 {
		more = fmt.Sprintf("; %d more ways are blocked", n)
	}
	ports := "all TCP ports"
	for _, h := range run.Hosts {
		if h.Rig == w.To && h.HighPort > 0 {
			ports = fmt.Sprintf("TCP %d-%d", h.LowPort, h.HighPort)
		}
	}
	how := map[string]string{"refused": "connection refused", "timeout": "no answer", "no-route": "no route"}[w.Result]
	return fail(rigSubject, "%s (%s) does not reach %s (%s): %s%s", w.From, w.FromAddress, w.To, w.ToAddress, firstOf(how, w.Result), more).saw(w.Result, "ok").
		fix("nccl.all-reduce/unreachable", "from", w.FromAddress, "to", w.ToAddress, "ports", ports, "host", w.To)
}

// acrossSpeed compares with the slowest interface's line rate.
func acrossSpeed(s Subject, run facts.AcrossRun) Finding {
	var row facts.NCCLRow
	for _, r := range run.Rows {
		if r.Bytes >= row.Bytes {
			row = r
		}
	}
	if row.BusBW <= 0 {
		return unknown(rigSubject, "the run across hosts gave no figure").knownBy("run again: preflight probe nccl --across")
	}
	slow := facts.AcrossHost{}
	for _, h := range run.Hosts {
		switch {
		case h.Mbit == 0:
			kind := ""
			if h.Virtual {
				kind = ", which has no device behind it"
			}
			return unknown(rigSubject, "%.2f GB/s across hosts; the line rate of %s on %s is not known%s", row.BusBW, h.Interface, h.Rig, kind).knownBy("set nic of the rig in rigs.hcl to the interface of the cable")
		case slow.Mbit == 0 || h.Mbit < slow.Mbit:
			slow = h
		}
	}
	share, kind := shareSocket, "TCP"
	if run.Transport == "IB" {
		share, kind = shareIB, "InfiniBand or RoCE"
	}
	want := share * float64(slow.Mbit) / 8000
	f := Finding{Observed: fmt.Sprintf("%.2f GB/s", row.BusBW), Expected: fmt.Sprintf("≥ %.2f GB/s", s.Policy.NCCLPass*want)}.
		noting("%.2f × %d Mbit/s of %s on %s (%s)", share, slow.Mbit, slow.Interface, slow.Rig, kind)
	f.Summary = fmt.Sprintf("%.2f GB/s across hosts, %.0f %% of the %.2f that the network allows", row.BusBW, 100*row.BusBW/want, want)
	switch {
	case row.Bytes < plateauBytes:
		f.Verdict = Unknown
		f.Summary = fmt.Sprintf("%.2f GB/s across hosts at %d bytes: too small to show what the network can do", row.BusBW, row.Bytes)
		return f.knownBy("run again without made-up cards")
	case row.BusBW >= s.Policy.NCCLPass*want:
		f.Verdict = Pass
		return f
	case row.BusBW >= s.Policy.NCCLWarn*want:
		f.Verdict = Warn
	default:
		f.Verdict = Fail
	}
	return f.fix("nccl.all-reduce/slow-network", "busbw", f.Observed, "expected", fmt.Sprintf("%.2f GB/s", want), "interface", slow.Interface, "host", slow.Rig)
}

// acrossEvidence are the hosts and how they talk: nothing is chosen silently.
func acrossEvidence(run facts.AcrossRun) []Evidence {
	out := []Evidence{evs("probe:across/ranks", fmt.Sprint(run.Ranks)), evs("probe:across/libnccl", firstOf(run.Library, "?")), evs("probe:across/network", firstOf(run.Transport, "?"))}
	for _, h := range run.Hosts {
		out = append(out, evs("probe:across/"+h.Rig, strings.Join([]string{fmt.Sprint(h.Cards), h.Interface, h.Address}, " ")))
	}
	return out
}
