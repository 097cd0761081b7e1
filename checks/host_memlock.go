package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// host.memlock: may a login's processes lock the memory that RDMA wants?
//
//	no RDMA adapter                                   pass with a note: within one host NCCL needs no locked memory
//	session unlimited (or 64 GiB and more)            pass; a note when services start with less
//	session limited, hard limit higher                warn: ulimit -l would do
//	session limited                                   warn: ibv_reg_mr ends with "Cannot allocate memory"
//	limit, or whether there is an adapter, not known  unknown
//
// Traps: the limit of a session says nothing of what systemd starts (slurmd, dockerd): those have
// DefaultLimitMEMLOCK, 8 MiB unless set. Under sudo a shell has root's limits; the login's are read.
var hostMemlock = Check{ID: "host.memlock", Title: "locked memory", Decide: decideMemlock}

// memlockWanted is what counts as no limit, KiB: no NCCL process registers more. Policy.
const memlockWanted = 64 << 20

func decideMemlock(s Subject) []Finding {
	l := s.Host.Limits
	adapters, known := rdmaOf(s)
	if known && len(adapters) == 0 {
		return []Finding{pass(rigSubject, "no RDMA adapter, so locked memory is no limit").because(ev(l.RDMA), ev(l.Memlock)).saw(kibWords(l.Memlock), "")}
	}
	soft, ok := l.Memlock.Get()
	switch enough := soft == facts.Unlimited || soft >= memlockWanted; {
	case !ok:
		return []Finding{unknown(rigSubject, "the limit of locked memory is not in the input").knownBy("give a snapshot of the host (preflight collect)")}
	case enough:
		return []Finding{servicesToo(s, pass(rigSubject, "locked memory: %s", kibWords(l.Memlock)).saw(kibWords(l.Memlock), "unlimited").because(ev(l.Memlock), ev(l.MemlockService)))}
	case !known:
		return []Finding{unknown(rigSubject, "whether there is an RDMA adapter is not in the input").because(ev(l.Memlock)).knownBy("give lspci, or a snapshot of the host")}
	}
	f := warn(rigSubject, "a login may lock %s, and RDMA (%s) wants it without limit", kibWords(l.Memlock), strings.Join(adapters, ", ")).
		saw(kibWords(l.Memlock), "unlimited").because(ev(l.Memlock), ev(l.MemlockHard), ev(l.RDMA)).fix("host.memlock/low")
	if l.MemlockHard.Known() && (l.MemlockHard.Value == facts.Unlimited || l.MemlockHard.Value > soft) {
		f = f.noting("the hard limit is %s: `ulimit -l` in the job's script would do", kibWords(l.MemlockHard))
	}
	return []Finding{f}
}

// servicesToo notes that what systemd starts may have less than the session.
func servicesToo(s Subject, f Finding) Finding {
	v, ok := s.Host.Limits.MemlockService.Get()
	switch {
	case !ok:
		return f.noting("services that systemd starts (slurmd, dockerd) have 8 MiB unless their units say otherwise")
	case v != facts.Unlimited && v < memlockWanted:
		return f.noting("services that systemd starts may lock %s unless their units say otherwise", kibWords(s.Host.Limits.MemlockService))
	}
	return f
}

// rdmaOf lists RDMA adapters: as the kernel's class of them lists, else InfiniBand functions on the bus.
func rdmaOf(s Subject) (names []string, known bool) {
	if v, ok := s.Host.Limits.RDMA.Get(); ok && len(v) > 0 {
		return v, true
	}
	for _, d := range s.Host.PCI {
		if strings.HasPrefix(d.Class, "0207") && !d.VF {
			names = append(names, d.BDF)
		}
	}
	return names, s.Host.Limits.RDMA.Known() || len(names) > 0
}

func kibWords(f facts.Fact[int64]) string {
	switch v, ok := f.Get(); {
	case !ok:
		return ""
	case v == facts.Unlimited:
		return "unlimited"
	case v < 1024:
		return fmt.Sprintf("%d KiB", v)
	case v < 1024*1024:
		return fmt.Sprintf("%d MiB", v/1024)
	default:
		return fmt.Sprintf("%d GiB", v>>20)
	}
}
