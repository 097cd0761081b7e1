package checks

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// topology.numa: do the cards stand on one processor, or evenly on several, with memory at each?
//
//	one card, or one processor                                  skip / pass
//	all cards on one of several processors                      pass
//	every pair joined by NVLink                                 pass: traffic does not cross the processors
//	two cards on two processors                                 warn
//	more cards, evenly (4 + 4, 2 + 2, 2 + 1)                    pass with a note
//	more cards, unevenly (3 + 1, 6 + 2)                         warn
//	cards at a node without memory                              warn: their buffers lie across the interconnect
//	no nodes told (numa_node -1) on several processors          unknown
//	several processors as one node, or a guest of one node      unknown: memory is interleaved, or the host hides it
//
// Traps: numa_node is -1 on single-node hosts and in most guests, which says nothing. NPS4 and SNC cut one processor
// into several nodes: processors are compared, not nodes. SYS in `topo -m` between cards of one node is no crossing.
var topologyNUMA = Check{ID: "topology.numa", Title: "NUMA placement", Decide: decideNUMA}

func decideNUMA(s Subject) []Finding {
	if peerCount(s) == 1 {
		return []Finding{skip(rigSubject, "one card has no peer")}
	}
	if len(s.Cards) == 0 && len(s.Host.Topo) == 0 {
		return []Finding{unknown(rigSubject, "where the cards stand is not in the input").knownBy("give nvidia-smi topo -m, or a snapshot of the host")}
	}
	if nvlinkAll(s) {
		return []Finding{pass(rigSubject, "every pair of cards is joined by NVLink (%s)", s.Host.Topo[0].Level).because(evs(s.Host.Topo[0].Source, s.Host.Topo[0].Level))}
	}
	if bare := bareNodes(s); len(bare) > 0 {
		return bare
	}
	if len(s.Cards) == 1 && len(s.Host.Topo) == 0 {
		return []Finding{unknown(rigSubject, "where the cards stand is not in the input").knownBy("give nvidia-smi topo -m, or a snapshot of the host")}
	}
	if f, flat := oneNode(s); flat {
		return []Finding{f}
	}
	if s.Host.CPU.Sockets.Or(0) == 1 || s.Host.CPU.Nodes.Or(0) == 1 {
		return []Finding{pass(rigSubject, "one processor: all cards are equally near").because(ev(s.Host.CPU.Sockets), ev(s.Host.CPU.Nodes))}
	}
	groups, src, complete := placement(s)
	if !complete {
		return []Finding{byMatrix(s)}
	}
	return []Finding{judgePlacement(groups).because(evs(src, describeGroups(groups)))}
}

// oneNode: what shows a single node may be several processors.
func oneNode(s Subject) (Finding, bool) {
	sockets, nodes := s.Host.CPU.Sockets, s.Host.CPU.Nodes
	switch {
	case nodes.Or(0) != 1:
		return Finding{}, false
	case hostKindIn(s.Host, "vm", "wsl"): // its processors are made up as well
		return unknown(rigSubject, "this is a %s: it does not show the machine beneath", kindWord(s.Host.Kind.Value)).
			knownBy("run the check on the host itself").because(ev(s.Host.Kind), ev(nodes)), true
	case sockets.Or(0) > 1:
		return unknown(rigSubject, "the firmware shows %d processors as one NUMA node", sockets.Value).because(ev(sockets), ev(nodes)).
			knownBy("switch Node Interleaving (or NPS0) off in the BIOS, which is faster as well"), true
	}
	return Finding{}, false
}

// bareNodes finds cards whose node has processors but no memory.
func bareNodes(s Subject) []Finding {
	bare := map[int]facts.NUMANode{}
	for _, n := range s.Host.CPU.NUMA {
		if n.CPUs != "" && n.MemMiB == 0 {
			bare[n.ID] = n
		}
	}
	var out []Finding
	for _, id := range slices.Sorted(maps.Keys(bare)) {
		n := bare[id]
		var cards []facts.Card
		for _, c := range s.Cards {
			if at, ok := c.NUMA.Get(); ok && at == id {
				cards = append(cards, c)
			}
		}
		if len(cards) > 0 {
			out = append(out, warn(fmt.Sprintf("node%d", id), "NUMA node %d has no memory, and %s at it", id, plural(len(cards), "card")).saw("0 GiB", "memory at every node").
				because(evs(n.Source+"meminfo", "MemTotal: 0 kB"), evs("sysfs:numa_node", bdfs(cards))).noting("buffers lie across the interconnect; NCCL before 2.29 may fail there").fix("topology.numa/no-memory", "node", fmt.Sprint(id)))
		}
	}
	return out
}

// placement groups the cards by processor, else by node where each processor is one node; false when a card's place
// is not told.
func placement(s Subject) (groups map[string]int, src string, complete bool) {
	if len(s.Cards) == 0 {
		return placementByMatrix(s)
	}
	socketOf := map[int]int{}
	for _, n := range s.Host.CPU.NUMA {
		socketOf[n.ID] = n.Socket
	}
	groups = map[string]int{}
	for _, c := range s.Cards {
		node, told := c.NUMA.Get()
		socket, known := socketOf[node]
		switch {
		case told && node >= 0 && known && socket >= 0:
			groups[fmt.Sprintf("CPU%d", socket)]++
		case told && node < 0 && len(s.Host.CPU.NUMA) != 1:
			return nil, "", false // local_cpulist then names all processors, and the nearest is a guess
		case c.Socket.Known():
			groups[fmt.Sprintf("CPU%d", c.Socket.Value)]++
		case told && node >= 0:
			groups[nodeName(s, node)]++
		default:
			return placementByMatrix(s)
		}
		src = firstOf(c.NUMA.Source, c.Socket.Source)
	}
	return groups, src, true
}

// nodeName is the processor of a node where it is known how many nodes each has (NPS and SNC number them in turn), else
// the node itself.
func nodeName(s Subject, node int) string {
	sockets, nodes := s.Host.CPU.Sockets.Or(0), s.Host.CPU.Nodes.Or(0)
	if sockets > 0 && nodes > sockets && nodes%sockets == 0 {
		return fmt.Sprintf("CPU%d", node/(nodes/sockets))
	}
	return fmt.Sprintf("node %d", node)
}

// placementByMatrix groups the cards by what `topo -m` prints: the NUMA affinity of every card, else the pairs that do
// not cross, where these part the cards into whole groups.
func placementByMatrix(s Subject) (groups map[string]int, src string, complete bool) {
	names := map[string]bool{}
	for _, p := range s.Host.Topo {
		names[p.A], names[p.B] = true, true
	}
	groups = map[string]int{}
	if len(names) > 1 && len(s.Host.TopoNodes) == len(names) {
		for _, n := range s.Host.TopoNodes {
			groups[nodeName(s, n.Node)]++
		}
		return groups, s.Host.TopoNodes[0].Source, true
	}
	if len(names) < 3 {
		return nil, "", false
	}
	leader := map[string]string{}
	for n := range names {
		leader[n] = n
	}
	for range names {
		for _, p := range s.Host.Topo {
			if a, b := leader[p.A], leader[p.B]; p.Level != "SYS" && a != b {
				leader[p.A], leader[p.B] = min(a, b), min(a, b)
			}
		}
	}
	for n := range names {
		groups[leader[n]]++
	}
	for _, p := range s.Host.Topo { // within a group nothing may cross, or the matrix is no picture of processors
		if p.Level == "SYS" && leader[p.A] == leader[p.B] {
			return nil, "", false
		}
	}
	if len(groups) == len(names) { // each card alone: no machine has so many processors
		return nil, "", false
	}
	return byNumber(groups), s.Host.Topo[0].Source, true
}

// byNumber names groups by turns, in the order of their leaders.
func byNumber(groups map[string]int) map[string]int {
	leaders := make([]string, 0, len(groups))
	for l := range groups {
		leaders = append(leaders, l)
	}
	sort.Strings(leaders)
	out := map[string]int{}
	for i, l := range leaders {
		out[fmt.Sprintf("node %d", i)] = groups[l]
	}
	return out
}

func judgePlacement(groups map[string]int) Finding {
	var counts []int64
	total := 0
	for _, n := range groups {
		counts = append(counts, int64(n))
		total += n
	}
	low, high := span(counts)
	seen := describeGroups(groups)
	switch {
	case len(groups) == 1:
		return pass(rigSubject, "all %d cards are on one processor", total).saw(seen, "")
	case total == 2:
		return warn(rigSubject, "the two cards are on two processors: all they exchange crosses the link between them").saw(seen, "both on one").fix("topology.numa/split")
	case high-low > 1:
		return warn(rigSubject, "the cards are spread unevenly over the processors: %s", seen).saw(seen, "evenly").fix("topology.numa/uneven")
	}
	return pass(rigSubject, "the cards are spread evenly over the processors: %s", seen).saw(seen, "").noting("normal for so many cards; start each process on the processor of its card")
}

// byMatrix judges from `topo -m` alone: two cards whose only pair is SYS stand on two nodes.
func byMatrix(s Subject) Finding {
	crossing := 0
	for _, p := range s.Host.Topo {
		if p.Level == "SYS" {
			crossing++
		}
	}
	switch n := len(s.Host.Topo); {
	case n == 0 && s.Host.CPU.Sockets.Or(0) == 0:
		return unknown(rigSubject, "which processor each card belongs to is not in the input").knownBy("give nvidia-smi topo -m, or a snapshot of the host")
	case n == 0:
		return unknown(rigSubject, "the firmware does not tell which processor a card belongs to").knownBy("look into the board's manual; a newer BIOS may tell").because(ev(s.Host.CPU.Sockets))
	case crossing == 0:
		return pass(rigSubject, "no pair of cards crosses processors").because(evs(s.Host.Topo[0].Source, "no SYS"))
	case n == 1:
		return warn(rigSubject, "the two cards are on two processors: all they exchange crosses the link between them").saw("SYS", "both on one").
			because(evs(s.Host.Topo[0].Source, "SYS")).fix("topology.numa/split")
	}
	return unknown(rigSubject, "some pairs cross processors, but not how the cards are spread").because(evs(s.Host.Topo[0].Source, fmt.Sprintf("%d of %d pairs SYS", crossing, len(s.Host.Topo)))).
		knownBy("give the NUMA affinity of nvidia-smi topo -m, or a snapshot of the host")
}

// describeGroups is "4 on CPU0, 4 on CPU1".
func describeGroups(groups map[string]int) string {
	var parts []string
	for name, n := range groups {
		parts = append(parts, fmt.Sprintf("%d on %s", n, name))
	}
	sort.Slice(parts, func(i, j int) bool { return afterOn(parts[i]) < afterOn(parts[j]) })
	return strings.Join(parts, ", ")
}

func afterOn(s string) string {
	_, name, _ := strings.Cut(s, " on ")
	return name
}
