package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// host.ports: is port 29500, on which torch's processes meet, free and kept free?
//
//	somebody listens on it                                     warn: the next torchrun ends with EADDRINUSE, or joins a stranger
//	a connection holds it as its own port                      warn: the same, now and then
//	inside the ephemeral range and not among reserved ports    warn: the kernel may give it to any connection
//	otherwise                                                  pass
//	ports in use, or the ephemeral range, not known            unknown
//
// Linux gives 32768–60999 to connections unless told otherwise, so 29500 lies outside. NCCL itself takes ports of that
// range in both directions: between rigs a firewall must let them through, which cannot be seen from one of them.
var hostPorts = Check{ID: "host.ports", Title: "ports", Decide: decidePorts}

func decidePorts(s Subject) []Finding {
	l := s.Host.Limits
	port := facts.MasterPort
	ephemeral, ranged := ephemeralRange(l)
	switch {
	case slices.Contains(l.Listening.Value, port):
		return []Finding{warn(rigSubject, "port %d is in use: a training that starts on it fails", port).saw("in use", "free").
			because(evs(l.Listening.Source, fmt.Sprintf("%d in LISTEN", port))).noting("harmless if that is a training of yours").fix("host.ports/busy")}
	case l.MasterBusy.Value:
		return []Finding{warn(rigSubject, "a connection holds port %d as its own", port).saw("in use", "free").because(ev(l.MasterBusy), evs(l.PortLow.Source, ephemeral)).fix("host.ports/ephemeral")}
	case ranged && port >= l.PortLow.Value && port <= l.PortHigh.Value && !isReserved(l.Reserved.Value, port):
		return []Finding{warn(rigSubject, "port %d lies in the range %s that the kernel gives to connections", port, ephemeral).saw(ephemeral, "without 29500").
			because(evs(l.PortLow.Source, ephemeral), ev(l.Reserved)).fix("host.ports/ephemeral")}
	case !l.Listening.Known():
		return []Finding{unknown(rigSubject, "which ports are in use is not in the input").knownBy("give a snapshot of the host (preflight collect)")}
	case !ranged:
		return []Finding{unknown(rigSubject, "port %d is free now; which ports the kernel gives to connections is not in the input", port).knownBy("give a snapshot of the host (preflight collect)")}
	}
	f := pass(rigSubject, "port %d is free", port).saw("free", "").because(evs(l.Listening.Source, portList(l.Listening.Value)), evs(l.PortLow.Source, ephemeral))
	if s.Rig.Group != "" {
		f = f.noting("whether a firewall lets it and %s through to other rigs cannot be seen from here", firstOf(ephemeral, "the ephemeral ports"))
	}
	return []Finding{f}
}

func ephemeralRange(l facts.Limits) (words string, known bool) {
	if !l.PortLow.Known() || !l.PortHigh.Known() {
		return "", false
	}
	return fmt.Sprintf("%d–%d", l.PortLow.Value, l.PortHigh.Value), true
}

// isReserved reads ip_local_reserved_ports: numbers and ranges, separated by commas.
func isReserved(list string, port int) bool {
	for _, part := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			hi = lo
		}
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 == nil && err2 == nil && port >= a && port <= b {
			return true
		}
	}
	return false
}

func portList(ports []int) string {
	var words []string
	for i, p := range ports {
		if i == 16 {
			words = append(words, "…")
			break
		}
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, " ")
}
