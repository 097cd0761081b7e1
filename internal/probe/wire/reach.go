package wire

import (
	"errors"
	"fmt"
	"net"
)

// CommandReach finds out, before a job over several hosts, by which interface they talk and whether they can: no CUDA, no NCCL.
const CommandReach = "reach"

// PhaseReach is the only phase of a reach.
const PhaseReach = "reach"

// ReachRequest opens a listener, or dials those of other hosts. The listener stays until a request that is no reach.
type ReachRequest struct {
	Listen    bool     `json:"listen,omitempty"`
	Interface string   `json:"interface,omitempty"` // exact name; "" means the one that leads to Toward
	Toward    []string `json:"toward,omitempty"`    // addresses or names of other hosts
	Dial      []string `json:"dial,omitempty"`      // IP:port of other hosts' listeners
}

// Reach is what came of it. A listener says where it is, a dial whether it arrived.
type Reach struct {
	Interface string `json:"interface,omitempty"`
	Address   string `json:"address,omitempty"` // IP
	Port      int    `json:"port,omitempty"`
	Mbit      int    `json:"mbit,omitempty"`    // line rate from /sys/class/net/IF/speed; 0 when the interface does not tell one
	Virtual   bool   `json:"virtual,omitempty"` // no device behind it: a bridge, a tunnel, loopback
	LowPort   int    `json:"low_port,omitempty"`
	HighPort  int    `json:"high_port,omitempty"` // the ports that NCCL's connections take: net.ipv4.ip_local_port_range

	To     string `json:"to,omitempty"`     // IP:port that was dialed
	Result string `json:"result,omitempty"` // of a dial
	Text   string `json:"text,omitempty"`
}

// Results of a dial.
const (
	ReachOK      = "ok"
	ReachRefused = "refused"  // a reset: a firewall that rejects, or the wrong host
	ReachTimeout = "timeout"  // nothing came back: a firewall that drops, or the wrong network
	ReachNoRoute = "no-route" // this host knows no way there
	ReachError   = "error"
)

// maxReach bounds the hosts of one job.
const maxReach = 256

func (r *ReachRequest) check() error {
	switch {
	case r == nil:
		return errors.New("reach without what to reach")
	case r.Listen == (len(r.Dial) > 0):
		return errors.New("a reach listens or dials")
	case len(r.Dial) > maxReach || len(r.Toward) > maxReach:
		return fmt.Errorf("more than %d hosts", maxReach)
	}
	for _, to := range r.Dial {
		host, _, err := net.SplitHostPort(to)
		if err != nil || net.ParseIP(host) == nil {
			return fmt.Errorf("%q is no IP and port", to)
		}
	}
	return nil
}
