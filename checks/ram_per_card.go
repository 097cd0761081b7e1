package checks

import (
	"fmt"
	"math"

	"preflight/internal/facts"
)

// ram.per-card: is there enough RAM for every card's share?
//
//	installed size (SMBIOS 17) ≥ wanted           pass; less: fail
//	without it, online memory ≥ wanted            pass
//	without it, MemTotal ≥ 0.93 wanted            pass
//	            0.90 … 0.93                       warn
//	            less                              fail
//	a container's filtered view                   unknown
//	installed and MemTotal differ by over 10 %    warn: a module is mapped out, or mem= is set
//
// Wanted by policy: 32 GiB a card. MemTotal is always less than what is installed: page tables take 1.6 %, firmware
// and crash kernels more.
var ramPerCard = Check{ID: "ram.per-card", Title: "RAM", Decide: decideRAM}

const (
	memTotalPass = 0.93
	memTotalWarn = 0.90
	memTotalLost = 0.10
)

func decideRAM(s Subject) []Finding {
	n := cardCount(s)
	m := s.Host.Memory
	if n == 0 {
		return []Finding{unknown(rigSubject, "the number of cards is not known").knownBy("declare `cards` in rigs.hcl")}
	}
	want := s.Policy.RAMPerCard * float64(n)
	if s.Host.Kind.Value == "container" || m.Filtered.Value {
		return []Finding{unknown(rigSubject, "a container's /proc/meminfo may be its own view").because(ev(m.TotalMiB)).knownBy("run the check on the host itself")}
	}
	if v, ok := m.InstalledMiB.Get(); ok {
		out := []Finding{judgeRAM(s, gib(v), want, 1, 1, m.InstalledMiB)}
		if t, ok := m.TotalMiB.Get(); ok && float64(v-t) > memTotalLost*float64(v) {
			out = append(out, warn("memory", "%.0f GiB installed, the kernel uses %.0f", gib(v), gib(t)).saw(fmt.Sprintf("%.0f GiB", gib(t)), fmt.Sprintf("%.0f GiB", gib(v))).
				because(ev(m.InstalledMiB), ev(m.TotalMiB), ev(s.Host.OS.Cmdline)).fix("ram.per-card/lost-dimm"))
		}
		return out
	}
	if v, ok := m.OnlineMiB.Get(); ok && gib(v) >= want {
		return []Finding{judgeRAM(s, gib(v), want, 1, 1, m.OnlineMiB)}
	}
	if v, ok := m.TotalMiB.Get(); ok {
		return []Finding{judgeRAM(s, gib(v), want, memTotalPass, memTotalWarn, m.TotalMiB).noting("MemTotal: what is installed needs root")}
	}
	return []Finding{unknown(rigSubject, "no source tells how much RAM there is").knownBy(howToKnow[facts.KindMemory])}
}

func gib(mib int64) float64 { return float64(mib) / 1024 }

func judgeRAM(s Subject, have, want, passAt, warnAt float64, src facts.Fact[int64]) Finding {
	f := Finding{Subject: rigSubject, Verdict: Pass, Observed: fmt.Sprintf("%.0f GiB", have), Expected: fmt.Sprintf("≥ %.0f GiB", want)}.because(ev(src))
	f.Summary = fmt.Sprintf("%.0f GiB for %s, %.0f wanted", math.Round(have), plural(cardCount(s), "card"), want)
	switch {
	case have >= want*passAt:
		return f
	case have >= want*warnAt:
		f.Verdict = Warn
	default:
		f.Verdict = Fail
	}
	return f.fix("ram.per-card/short", "have", fmt.Sprintf("%.0f GiB", have), "needed", fmt.Sprintf("%.0f GiB", want))
}

// storage.capacity: is there enough NVMe for data sets and checkpoints?
//
//	NVMe ≥ 0.95 of the wanted size     pass (a "2 TB" drive holds a little less or more)
//	half of that or more               warn
//	less                               fail
//
// Wanted by policy: 2 TB for 1–2 cards, 4 TB from 3 on; TB are 10^12 bytes. Other drives are named, not counted.
var storageCapacity = Check{ID: "storage.capacity", Title: "NVMe storage", Needs: []facts.Kind{facts.KindDisks}, Decide: decideStorage}

const nominalShare = 0.95

func decideStorage(s Subject) []Finding {
	if cardCount(s) == 0 {
		return []Finding{unknown(rigSubject, "how much is wanted depends on the number of cards, which is not known").knownBy("declare `cards` in rigs.hcl")}
	}
	var nvme, other int64
	var evidence []Evidence
	for _, d := range s.Host.Disks {
		switch {
		case d.Removable:
		case d.NVMe:
			nvme += d.Bytes
			evidence = append(evidence, evs(d.Source, fmt.Sprintf("%s %.2f TB", d.Name, float64(d.Bytes)/1e12)))
		default:
			other += d.Bytes
		}
	}
	have, want := float64(nvme)/1e12, s.Policy.StorageTB
	f := Finding{Subject: rigSubject, Verdict: Pass, Observed: fmt.Sprintf("%.2f TB", have), Expected: fmt.Sprintf("≥ %g TB", want)}.because(evidence...)
	f.Summary = fmt.Sprintf("%.2f TB of NVMe, %g wanted", have, want)
	if other > 0 {
		f = f.noting("%.2f TB on other drives", float64(other)/1e12)
	}
	if have >= want*nominalShare {
		return []Finding{f}
	}
	f.Verdict = Warn
	if have < want*nominalShare/2 {
		f.Verdict = Fail
	}
	return []Finding{f.fix("storage.capacity/short", "have", fmt.Sprintf("%.2f TB", have), "needed", fmt.Sprintf("%g TB", want))}
}
