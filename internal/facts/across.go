package facts

import "encoding/json"

// ProbeAcrossPath holds one all-reduce over several hosts as [AcrossRun], the same on every host that took part.
const ProbeAcrossPath = "probe/across.json"

// AcrossRun is one all-reduce over the cards of several hosts. Bandwidths in GB/s (10^9 bytes).
type AcrossRun struct {
	Name      string       `json:"name"` // "group:lab-1", or "across" for rigs that were named
	Hosts     []AcrossHost `json:"hosts"`
	Blocked   []AcrossWay  `json:"blocked,omitempty"` // ways between hosts that do not work
	Ranks     int          `json:"ranks"`
	Rows      []NCCLRow    `json:"rows,omitempty"`
	Wrong     int64        `json:"wrong"`
	Transport string       `json:"transport,omitempty"` // NCCL's network: Socket, IB
	Library   string       `json:"library,omitempty"`
	Problem   string       `json:"problem,omitempty"` // why there is no figure: see the constants
	Where     []string     `json:"where,omitempty"`   // the hosts at which it stuck first
	Phase     string       `json:"phase,omitempty"`
	Text      string       `json:"text,omitempty"`
}

// AcrossHost is one host of the run, and how it talks to the others.
type AcrossHost struct {
	Rig       string `json:"rig"`
	Cards     int    `json:"cards"`
	NCCL      string `json:"nccl,omitempty"`
	Interface string `json:"interface,omitempty"`
	Address   string `json:"address,omitempty"`
	Mbit      int    `json:"mbit,omitempty"` // line rate; 0 when the interface tells none
	Virtual   bool   `json:"virtual,omitempty"`
	LowPort   int    `json:"low_port,omitempty"`
	HighPort  int    `json:"high_port,omitempty"`
}

// AcrossWay is one direction between two hosts that does not work.
type AcrossWay struct {
	From        string `json:"from"` // rigs
	To          string `json:"to"`
	FromAddress string `json:"from_address"`
	ToAddress   string `json:"to_address"`
	Result      string `json:"result"` // refused, timeout, no-route, error
}

// Problems of a run over several hosts.
const (
	AcrossBusy        = "busy"          // cards of a host are at work
	AcrossMissing     = "missing"       // a host without driver, helper or cards
	AcrossNoNCCL      = "no-nccl"       // a host without libnccl
	AcrossVersions    = "nccl-versions" // no version of libnccl that all have
	AcrossInterface   = "interface"     // no interface that leads to the others
	AcrossUnreachable = "unreachable"   // ways between hosts are blocked
	AcrossHang        = "hang"
	AcrossError       = "error"
	AcrossLost        = "lost" // the connection to a host broke off, or the run was ended from outside
)

// readAcross takes the run over several hosts that a snapshot keeps.
func readAcross(b *builder) {
	raw, ok := b.snap.Files[ProbeAcrossPath]
	if !ok {
		return
	}
	var run AcrossRun
	if json.Unmarshal(raw, &run) == nil && run.Name != "" && len(run.Hosts) <= 1024 && len(run.Rows) <= 1024 {
		b.host.Across = &run
	}
}
