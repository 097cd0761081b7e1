package facts

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// maxNodes bounds the NUMA nodes of one host; the largest x86 servers have 16.
const maxNodes = 256

var (
	nodeCPUs  = regexp.MustCompile(`^sys/devices/system/node/node(\d{1,4})/cpulist$`)
	nodeTotal = regexp.MustCompile(`MemTotal:\s+(\d{1,15}) kB`)
)

// readNUMA reads the online nodes of sysfs: processors, memory, distances. A node may have processors and no memory
// (a socket without modules), or memory and no processors (CXL, a GPU's own memory).
func readNUMA(b *builder) {
	for path := range b.snap.Files {
		m := nodeCPUs.FindStringSubmatch(path)
		if m == nil || len(b.host.CPU.NUMA) >= maxNodes {
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		b.host.CPU.NUMA = append(b.host.CPU.NUMA, b.numaNode(id))
	}
	nodes := b.host.CPU.NUMA
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].ID < nodes[j].ID })
}

func (b *builder) numaNode(id int) NUMANode {
	dir := "sys/devices/system/node/node" + strconv.Itoa(id) + "/"
	n := NUMANode{ID: id, MemMiB: -1, Socket: -1, Source: "sysfs:" + dir}
	n.CPUs, _ = b.text(dir + "cpulist")
	if first, _, _ := strings.Cut(strings.ReplaceAll(n.CPUs, "-", ","), ","); first != "" {
		if p, ok := b.packages[first]; ok {
			n.Socket = p
		}
	}
	if t, ok := b.text(dir + "meminfo"); ok {
		if m := nodeTotal.FindStringSubmatch(t); m != nil {
			kib, _ := strconv.ParseInt(m[1], 10, 64)
			n.MemMiB = kib / 1024
		}
	}
	t, _ := b.text(dir + "distance")
	for _, f := range strings.Fields(t) {
		if d, err := strconv.Atoi(f); err == nil && len(n.Distance) < maxNodes {
			n.Distance = append(n.Distance, d)
		}
	}
	return n
}
