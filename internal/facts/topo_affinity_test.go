package facts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTopoNodes(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       []int
	}{
		{"cards and network cards", "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\nGPU0     X      SYS     SYS     0-127   0               N/A\nGPU1    SYS      X      SYS     8-15,24-31 1            N/A\nNIC0    SYS     SYS      X\n", []int{0, 1}},
		{"not told of one", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-15\tN/A\nGPU1\tSYS\t X \t16-31\t1\n", []int{1}},
		{"old driver, no such column", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-15\nGPU1\tPHB\t X \t0-15\n", nil},
		{"ANSI codes", "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\nGPU0\t X \tNV4\t0-15\t0\nGPU1\tNV4\t X \t16-31\t1\n", []int{0, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []int
			for _, n := range FromSnapshot(snapshotOf("cmd/topo-m.txt", row.text)).TopoNodes {
				got = append(got, n.Node)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzTopoNodes(f *testing.F) {
	f.Add("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-15\t99999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range FromSnapshot(snapshotOf("cmd/topo-m.txt", text)).TopoNodes {
			if n.Node < 0 || n.Node >= maxNodes {
				t.Errorf("node %d", n.Node)
			}
		}
	})
}
