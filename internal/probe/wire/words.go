package wire

import "fmt"

// phaseWords say what a phase does, for somebody who waits for it.
var phaseWords = map[string]string{
	PhaseLoadCUDA:   "loading libcuda",
	PhaseCUDAInit:   "initialising CUDA",
	PhaseLoadNCCL:   "loading libnccl",
	PhaseContext:    "opening the cards",
	PhaseMemory:     "reserving memory",
	PhaseLinkAlone:  "copying between host and cards, one at a time",
	PhaseLinkAll:    "copying between host and all cards at once",
	PhaseLinkBusy:   "keeping every link busy",
	PhasePeerStaged: "copying between cards through the host",
	PhasePeerP2P:    "copying between cards directly, every byte compared",
	PhaseReach:      "finding the way between the hosts",
	PhaseBurnLoad:   "loading kernels and reserving memory",
	PhaseBurn:       "all cards under load",
	PhaseNCCLInit:   "initialising NCCL",
	PhaseNCCLFirst:  "the first all-reduce",
	PhaseNCCLEnd:    "closing NCCL",
}

// Words say in a few words what a line tells of a request; "" for a line that nobody waits for.
func Words(r Request, l Line) string {
	how := ""
	if r.AllReduce != nil && r.AllReduce.Layout == LayoutRanks {
		how = ", a process for each card"
	}
	if r.Env["NCCL_P2P_DISABLE"] == "1" {
		how += ", without P2P"
	}
	switch {
	case l.AllReduce != nil:
		return fmt.Sprintf("all-reduce of %s: %.1f GB/s%s", sizeOf(l.AllReduce.Bytes), l.AllReduce.BusBW, how)
	case l.Phase == PhaseNCCLInit || l.Phase == PhaseNCCLFirst:
		if l.State == StateBegin {
			return phaseWords[l.Phase] + how
		}
	case l.State == StateBegin:
		return phaseWords[l.Phase]
	}
	return ""
}

func sizeOf(bytes int64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
