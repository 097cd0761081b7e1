package wire

// Line is one line of the helper's answer.
type Line struct {
	Phase string  `json:"phase"`
	State string  `json:"state"`
	T     float64 `json:"t"`               // seconds since the request began
	Limit float64 `json:"limit,omitempty"` // of a begin: seconds until the phase counts as hung
	Card  *int    `json:"card,omitempty"`  // CUDA ordinal
	Peer  *int    `json:"peer,omitempty"`  // the other card of a pair
	Rank  *int    `json:"rank,omitempty"`  // NCCL rank of the process that speaks
	Error *Error  `json:"error,omitempty"`

	Hello     *Hello     `json:"hello,omitempty"`
	Bandwidth *Bandwidth `json:"bandwidth,omitempty"`
	Pair      *Pair      `json:"pair,omitempty"`
	AllReduce *AllReduce `json:"all_reduce,omitempty"`
	Log       *NCCLLog   `json:"log,omitempty"`
	Library   *Library   `json:"library,omitempty"`
	Reach     *Reach     `json:"reach,omitempty"`
	Burn      *Burn      `json:"burn,omitempty"`
	ID        string     `json:"id,omitempty"` // of PhaseID: NCCL's unique id, hex
	Outcome   string     `json:"outcome,omitempty"`
}

// States of a line.
const (
	StateBegin   = "begin"
	StateEnd     = "end"
	StateResult  = "result"  // a figure; the phase goes on
	StateError   = "error"   // the phase ended with Error
	StateTimeout = "timeout" // the phase passed its limit; its process was killed
	StateCut     = "cut"     // the phase was still within its limit when another process's failure ended the run
)

// Phases, in the order in which they come.
const (
	PhaseRequest     = "request"      // reading the request
	PhaseLoadCUDA    = "load-cuda"    // finding and loading libcuda.so.1
	PhaseCUDAInit    = "cuda-init"    // cuInit
	PhaseDevices     = "devices"      // names, addresses, attributes
	PhaseLoadNCCL    = "load-nccl"    // finding and loading libnccl.so.2
	PhaseContext     = "context"      // primary context of a card
	PhaseMemory      = "memory"       // buffers on a card and on the host
	PhaseLinkAlone   = "link-alone"   // copies host↔card, one card
	PhaseLinkAll     = "link-all"     // the same, all cards at once
	PhaseLinkBusy    = "link-busy"    // all cards copy in both directions, so that links can be sampled
	PhasePeerStaged  = "peer-staged"  // copies card→host→card
	PhasePeerP2P     = "peer-p2p"     // verified copies card→card
	PhaseID          = "nccl-id"      // rank 0 makes the unique id
	PhaseNCCLInit    = "nccl-init"    // communicators
	PhaseNCCLFirst   = "nccl-first"   // the first collective; connections are made here since NCCL 2.22
	PhaseNCCLMeasure = "nccl-measure" // warm-up and timed batches of one size, and the check of its sums
	PhaseNCCLEnd     = "nccl-end"     // communicators are destroyed
	PhaseExit        = "exit"         // between phases, and the end of a process: the driver frees its memory
	PhaseNCCLLog     = "nccl-log"     // what NCCL's own log says, told at the end of any run that loaded NCCL
	PhaseDone        = "done"         // the request is finished; nothing of it is running
)

// phaseLimits are the default limits, seconds. A first context without persistence mode takes 5 to 20 s on a host
// with many cards; NCCL's own retries of a connection between hosts end after about 60 s.
var phaseLimits = map[string]float64{
	PhaseLoadCUDA: 20, PhaseCUDAInit: 45, PhaseDevices: 20, PhaseLoadNCCL: 30, PhaseContext: 45, PhaseMemory: 45,
	PhaseLinkAlone: 30, PhaseLinkAll: 30, PhaseLinkBusy: 30, PhasePeerStaged: 20, PhasePeerP2P: 20,
	PhaseBurnLoad: 90, PhaseBurn: 30, PhaseID: 20, PhaseNCCLInit: 60, PhaseNCCLFirst: 45, PhaseNCCLMeasure: 60, PhaseNCCLEnd: 20, PhaseExit: 30,
}

// acrossInit is the limit of PhaseNCCLInit between hosts, seconds.
const acrossInit = 120

// PhaseLimit is the limit of a phase under a request, seconds. PhaseLinkBusy and PhaseBurn have the asked seconds on top.
func PhaseLimit(r Request, phase string) float64 {
	limit, asked := r.Deadlines[phase]
	if !asked || limit <= 0 {
		limit = phaseLimits[phase]
		if phase == PhaseNCCLInit && r.Command == CommandAcross {
			limit = acrossInit
		}
	}
	if limit <= 0 {
		limit = 30
	}
	if phase == PhaseLinkBusy && r.Links != nil {
		limit += r.Links.Busy
	}
	if phase == PhaseBurn && r.Burn != nil {
		limit += r.Burn.Seconds
	}
	return limit
}

// Outcomes of a request, told with PhaseDone.
const (
	OutcomeOK      = "ok"
	OutcomeError   = "error"   // an Error was told
	OutcomeTimeout = "timeout" // a phase hung; its process is gone
	OutcomeWedged  = "wedged"  // a process is stuck in the kernel (state D) and was abandoned: only a reboot clears it
	OutcomeCrash   = "crash"   // a process died of a signal
)

// Library is a shared library as found.
type Library struct {
	Name    string `json:"name"`              // libcuda, libnccl
	Path    string `json:"path"`              // as opened; a bare name was found by the loader
	Real    string `json:"real,omitempty"`    // the file behind it
	Version string `json:"version,omitempty"` // 2.22.3; of libcuda the CUDA version it serves, 12.4
	Origin  string `json:"origin,omitempty"`  // request, python, loader, folder
}

// Hello is what the helper sees without allocating anything. It is told also where CUDA could not be initialised, without
// devices; a line of the phase that failed says why.
type Hello struct {
	Protocol int               `json:"protocol"`
	Arch     string            `json:"arch"`
	Driver   string            `json:"driver,omitempty"` // version of the kernel module
	Env      map[string]string `json:"env,omitempty"`    // NCCL_ and CUDA_ variables of the login, which the probe drops
	Devices  []Device          `json:"devices"`
	Found    []Library         `json:"found,omitempty"` // every libnccl that was found, in the order of preference
}

// Device is one card as CUDA sees it. Memory in bytes; absent is 0.
type Device struct {
	Ordinal     int    `json:"ordinal"`
	Name        string `json:"name"`
	BDF         string `json:"bdf"` // 0000:41:00.0
	Total       uint64 `json:"total,omitempty"`
	Free        uint64 `json:"free,omitempty"` // from NVML; absent without it
	ComputeMode int    `json:"compute_mode"`   // 0 default, 2 prohibited, 3 exclusive process
	Capability  string `json:"capability"`     // 8.9
	MIG         bool   `json:"mig,omitempty"`
	Peers       []int  `json:"peers,omitempty"` // ordinals that the driver says it can reach directly
}

// Directions of a bandwidth.
const (
	HostToCard = "h2d"
	CardToHost = "d2h"
	BothWays   = "both" // both directions at once; the figures are the sum of them
)

// Bandwidth is one measured rate between host and card, GB/s (10^9 bytes).
type Bandwidth struct {
	Direction string  `json:"direction"`
	Bytes     int64   `json:"bytes"` // of one copy
	Cards     int     `json:"cards"` // that copied at the same time
	Best      float64 `json:"best"`
	Median    float64 `json:"median"`
	Worst     float64 `json:"worst"`
	Spread    float64 `json:"spread"` // (best − worst) ÷ best
	// In and Out split BothWays: host to card, and card to host.
	In  float64 `json:"in,omitempty"`
	Out float64 `json:"out,omitempty"`
}

// Paths of a pair.
const (
	PathStaged = "staged"
	PathP2P    = "p2p"
)

// Verdicts of one path of a pair.
const (
	PairOK       = "ok"
	PairAbsent   = "absent"    // the driver says that there is no P2P
	PairCorrupt  = "corrupt"   // bytes arrived wrong
	PairHang     = "hang"      // the copy did not end
	PairSlow     = "slow"      // right, under SlowBelow
	PairError    = "error"     // the driver refused, see Error
	PairNotTried = "not-tried" // an earlier pair hung too often
)

// Pair is one direction between two cards by one path.
type Pair struct {
	Path   string  `json:"path"`
	Result string  `json:"result"`
	Best   float64 `json:"best,omitempty"` // GB/s (10^9) at Bytes
	Median float64 `json:"median,omitempty"`
	Spread float64 `json:"spread,omitempty"`
	Bytes  int64   `json:"bytes,omitempty"` // the size of the rate, or the size that failed
	Wrong  int64   `json:"wrong,omitempty"` // 4-byte words that arrived wrong
	First  int64   `json:"first,omitempty"` // byte offset of the first wrong word
}

// AllReduce is one size of one run. Time in microseconds an all-reduce; rates in GB/s (10^9) by nccl-tests' formula:
// algbw = bytes ÷ time, busbw = algbw × 2(n−1) ÷ n.
type AllReduce struct {
	Layout string  `json:"layout"`
	Ranks  int     `json:"ranks"`
	Bytes  int64   `json:"bytes"`
	TimeUS float64 `json:"time_us"` // of the best batch
	AlgBW  float64 `json:"algbw"`
	BusBW  float64 `json:"busbw"`
	Median float64 `json:"median"` // busbw of the median batch
	Worst  float64 `json:"worst"`
	Spread float64 `json:"spread"` // (best − worst) ÷ best
	Wrong  int64   `json:"wrong"`  // elements with a wrong sum over the cards of this process
}

// Edge is a connection between two ranks as NCCL's log tells it, with the number of channels that use it.
type Edge struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Kind     string `json:"kind"` // P2P, SHM, NET
	Via      string `json:"via"`  // P2P/direct pointer, SHM/direct/direct, NET/Socket/0
	Channels int    `json:"channels"`
}

// NCCLLog is what NCCL's own log told.
type NCCLLog struct {
	Version   string   `json:"version,omitempty"`
	Transport string   `json:"transport,omitempty"` // the slowest kind among the edges
	Edges     []Edge   `json:"edges,omitempty"`
	Network   string   `json:"network,omitempty"`   // Socket, IB
	Interface string   `json:"interface,omitempty"` // of the bootstrap: eth0:10.0.0.1<0>
	Started   int      `json:"started"`             // ranks that began to initialise
	Complete  int      `json:"complete"`            // ranks that finished it
	Refused   bool     `json:"refused,omitempty"`   // the log says that P2P is disabled between connected cards
	Warnings  []string `json:"warnings,omitempty"`  // WARN lines in order, without their prefix
}
