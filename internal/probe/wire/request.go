package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Protocol is the version of this language. Helper and controller are built together; a difference means a mix-up.
const Protocol = 1

// Commands of a request.
const (
	CommandHello     = "hello"      // what is there: versions, libraries, cards; allocates nothing
	CommandLinks     = "links"      // host↔card bandwidth, each card alone and all at once
	CommandPeers     = "peers"      // card↔card: staged through the host, and verified P2P copies
	CommandAllReduce = "all-reduce" // NCCL over the cards of this host
	CommandAcross    = "across"     // this host's ranks of an NCCL job over several hosts
)

// Layouts of an all-reduce.
const (
	LayoutSingle = "single" // one process drives every card (ncclCommInitAll)
	LayoutRanks  = "ranks"  // a process for each card, as DDP does it (ncclCommInitRank)
)

// Request is one order to the helper.
type Request struct {
	Command string `json:"command"`
	// Limit is the wall-clock limit of the whole request, seconds; 0 means DefaultLimit. Beyond it the kernel ends the
	// helper (SIGALRM), even when nothing in it runs any more.
	Limit float64 `json:"limit,omitempty"`
	// Deadlines replaces the limits of single phases, seconds, by phase name; see PhaseLimit.
	Deadlines map[string]float64 `json:"deadlines,omitempty"`
	// Cards are CUDA ordinals in PCI bus order; empty means all. A process for each card (LayoutRanks, across) needs
	// them named: which there are is what hello tells.
	Cards []int `json:"cards,omitempty"`
	// LibCUDA and LibNCCL are full paths; empty means that they are searched.
	LibCUDA string `json:"libcuda,omitempty"`
	LibNCCL string `json:"libnccl,omitempty"`
	// Pythons are interpreters or environments whose site-packages are searched for libnccl first.
	Pythons []string `json:"pythons,omitempty"`
	// Env is set for the processes that load the libraries: names that begin with NCCL_ or CUDA_ only. NCCL_ and
	// CUDA_ variables of the helper's own environment are dropped, so that two runs differ in nothing but this.
	Env map[string]string `json:"env,omitempty"`

	Links     *LinksRequest     `json:"links,omitempty"`
	Peers     *PeersRequest     `json:"peers,omitempty"`
	AllReduce *AllReduceRequest `json:"all_reduce,omitempty"`
	Across    *AcrossRequest    `json:"across,omitempty"`
	Reach     *ReachRequest     `json:"reach,omitempty"`
	Burn      *BurnRequest      `json:"burn,omitempty"`
}

// DefaultLimit of a request, seconds.
const DefaultLimit = 300

// LinksRequest chooses the copies between host and cards.
type LinksRequest struct {
	Sizes   []int64 `json:"sizes,omitempty"`   // bytes of one copy; empty means 4 MiB and 64 MiB
	Repeats int     `json:"repeats,omitempty"` // timed copies of each size; 0 means 10
	Busy    float64 `json:"busy,omitempty"`    // seconds to keep all cards copying in both directions, for sampling links
}

// PeersRequest chooses the copies between cards.
type PeersRequest struct {
	Sizes   []int64  `json:"sizes,omitempty"`   // bytes; empty means 64 KiB, 8 MiB and 48 MiB
	Repeats int      `json:"repeats,omitempty"` // timed copies of the largest size; 0 means 10
	Pairs   [][2]int `json:"pairs,omitempty"`   // source and target ordinals; empty means all ordered pairs
	NoP2P   bool     `json:"no_p2p,omitempty"`  // measure staged copies only
	NoStage bool     `json:"no_stage,omitempty"`
	// SlowBelow is the rate under which a verified P2P path is called slow, GB/s; 0 means never.
	SlowBelow float64 `json:"slow_below,omitempty"`
}

// AllReduceRequest chooses the all-reduce, for one host and across hosts.
type AllReduceRequest struct {
	Layout     string  `json:"layout,omitempty"`     // LayoutSingle when empty; across hosts it is always LayoutRanks
	Sizes      []int64 `json:"sizes,omitempty"`      // bytes a card, multiples of 4; empty means 1 MiB, 64 MiB and 256 MiB
	WarmUp     int     `json:"warm_up,omitempty"`    // untimed rounds a size; 0 means 5
	Iterations int     `json:"iterations,omitempty"` // all-reduces of one timed batch; 0 means 20
	Batches    int     `json:"batches,omitempty"`    // timed batches; 0 means 5. Best, median and worst of them are told
}

// AcrossRequest places this host's ranks in a job over several hosts. Rank 0's helper makes the id and tells it in a
// line of PhaseID; every other helper gets it here.
type AcrossRequest struct {
	FirstRank int    `json:"first_rank"`
	Ranks     int    `json:"ranks"` // of the whole job
	ID        string `json:"id,omitempty"`
	Interface string `json:"interface,omitempty"` // network interface of the job, exact name
}

// ReadableEnv says whether a request may set this variable.
func ReadableEnv(name string) bool {
	if name == "NCCL_DEBUG_FILE" || name == "NCCL_DEBUG" || strings.ContainsAny(name, "=\x00") {
		return false // the log is the helper's own
	}
	return strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "CUDA_")
}

// Check says what is wrong with a request, nil when it can be run. Sizes and counts are bounded, so that a mistake
// cannot fill a host.
func (r Request) Check() error {
	switch r.Command {
	case CommandHello, CommandLinks, CommandPeers, CommandAllReduce:
	case CommandAcross:
		if err := r.Across.check(); err != nil {
			return err
		}
	case CommandBurn:
		if err := r.Burn.check(); err != nil {
			return err
		}
	case CommandReach:
		if err := r.Reach.check(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown command %q", r.Command)
	}
	for name := range r.Env {
		if !ReadableEnv(name) {
			return fmt.Errorf("variable %q may not be set", name)
		}
	}
	if r.Limit < 0 || r.Limit > 24*3600 {
		return errors.New("limit is not within a day")
	}
	ranks := r.Command == CommandAcross || r.Command == CommandAllReduce && r.AllReduce != nil && r.AllReduce.Layout == LayoutRanks
	if ranks && len(r.Cards) == 0 {
		return errors.New("a process for each card needs the cards named")
	}
	var sizes []int64
	if r.Links != nil {
		sizes = append(sizes, r.Links.Sizes...)
	}
	if r.Peers != nil {
		sizes = append(sizes, r.Peers.Sizes...)
	}
	if r.AllReduce != nil {
		sizes = append(sizes, r.AllReduce.Sizes...)
		if l := r.AllReduce.Layout; l != "" && l != LayoutSingle && l != LayoutRanks {
			return fmt.Errorf("unknown layout %q", l)
		}
	}
	for _, n := range sizes {
		if n < 4 || n > maxSize || n%4 != 0 {
			return fmt.Errorf("size %d is not a multiple of 4 between 4 bytes and 16 GiB", n)
		}
	}
	return nil
}

// maxSize bounds one buffer, bytes.
const maxSize = 16 << 30

func (a *AcrossRequest) check() error {
	switch {
	case a == nil:
		return errors.New("across without its ranks")
	case a.Ranks < 2 || a.FirstRank < 0 || a.FirstRank >= a.Ranks:
		return fmt.Errorf("rank %d of %d does not exist", a.FirstRank, a.Ranks)
	case a.FirstRank > 0 && len(a.ID) != 2*IDBytes:
		return errors.New("a rank other than 0 needs the id of rank 0")
	}
	return nil
}

// IDBytes is the size of NCCL's unique id.
const IDBytes = 128
