package probe

import (
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// answer is a request with what came back.
type answer struct {
	request wire.Request
	lines   []wire.Line
	outcome string // of the done line; "" when none came
}

// failed says whether an answer holds no figure to trust: a hang, an error, wrong sums.
func (a answer) failed() bool {
	if a.outcome != wire.OutcomeOK {
		return true
	}
	for _, l := range a.lines {
		if l.AllReduce != nil && l.AllReduce.Wrong > 0 {
			return true
		}
	}
	return false
}

// plan decides the next request from all answers so far; false ends the conversation. It is pure, so that what a host
// is asked can be tested without one.
type plan struct {
	links, nccl bool
	wide        bool // NVLink: larger sizes
	limit       float64
	pythons     []string
	small       bool // for cards that a processor plays
	several     bool // the host has more cards than one
}

// Limits of single requests, seconds.
const (
	helloLimit = 90
	linksLimit = 180
	peersLimit = 180
)

// stay is how long the helper may be on a host: every request at its own limit, with what it takes to end one. Less
// would end a slow host's measurement, and call it a hang.
func stay(o Options) time.Duration {
	const ending = 30 * time.Second
	return (helloLimit+linksLimit+peersLimit)*time.Second + allReduces*o.limit() + (3+allReduces)*ending
}

// allReduces is the most that a plan asks for: each layout with P2P and without.
const allReduces = 4

// busySeconds is how long all cards copy in both directions, so that every hop is seen awake several times.
const busySeconds = 3

func newPlan(h *facts.Host, o Options) plan {
	p := plan{links: o.Links, nccl: o.AllReduce, wide: nvlink(h), limit: o.limit().Seconds(), small: o.Small, several: len(h.Cards) > 1}
	if o.Python != "" {
		p.pythons = append(p.pythons, o.Python)
	}
	for _, t := range h.Software.Torch {
		p.pythons = append(p.pythons, t.Python)
	}
	return p
}

// next goes: what is there; links; verified copies between cards; the all-reduce in one process and in a process for
// each card; and the same without P2P, where that tells P2P's share in a failure or in the speed.
func (p plan) next(done []answer) (wire.Request, bool) {
	if len(done) == 0 {
		return p.request(wire.CommandHello, helloLimit), true
	}
	last := done[len(done)-1]
	if last.outcome == "" || last.outcome == wire.OutcomeWedged || done[0].outcome != wire.OutcomeOK {
		return wire.Request{}, false
	}
	cards := devices(done[0])
	for _, step := range p.steps(done, cards) {
		if !asked(done, step) {
			return step, true
		}
	}
	return wire.Request{}, false
}

// steps are the requests that make sense after what was answered, in order.
func (p plan) steps(done []answer, cards []int) []wire.Request {
	var out []wire.Request
	if p.links {
		r := p.request(wire.CommandLinks, linksLimit)
		r.Links = &wire.LinksRequest{Busy: busySeconds}
		if p.small {
			r.Links = &wire.LinksRequest{Busy: 1, Sizes: []int64{1 << 20, 4 << 20}, Repeats: 4}
		}
		out = append(out, r)
	}
	if len(cards) < 2 {
		if p.nccl && p.several { // answered with what hides the others
			out = append(out, p.allReduce(wire.LayoutSingle, cards, false))
		}
		return out
	}
	peers := p.request(wire.CommandPeers, peersLimit)
	if p.small {
		peers.Peers = &wire.PeersRequest{Sizes: []int64{64 << 10, 1 << 20}, Repeats: 3}
	}
	out = append(out, peers)
	if !p.nccl {
		return out
	}
	working, broken := copies(done)
	for _, layout := range []string{wire.LayoutSingle, wire.LayoutRanks} {
		if !broken {
			out = append(out, p.allReduce(layout, cards, false))
		}
		if broken = broken || failedWithP2P(done, layout); broken { // nothing is gained by a second hang
			out = append(out, p.allReduce(layout, cards, true))
		}
	}
	if working && !broken && !p.wide {
		out = append(out, p.allReduce(wire.LayoutSingle, cards, true))
	}
	return out
}

func (p plan) request(command string, limit float64) wire.Request {
	return wire.Request{Command: command, Limit: limit, Pythons: p.pythons}
}

func (p plan) allReduce(layout string, cards []int, noP2P bool) wire.Request {
	r := p.request(wire.CommandAllReduce, p.limit)
	r.Cards = cards
	r.AllReduce = &wire.AllReduceRequest{Layout: layout}
	switch {
	case p.small: // the least that shows a curve and its plateau
		r.AllReduce.Sizes, r.AllReduce.Batches = []int64{1 << 20, 4 << 20, 16 << 20}, 2
	case p.wide: // NVLink's plateau begins later
		r.AllReduce.Sizes = []int64{1 << 20, 512 << 20, 2 << 30}
	default:
		r.AllReduce.Sizes = []int64{1 << 20, 64 << 20, 256 << 20}
	}
	if noP2P {
		r.Env = map[string]string{"NCCL_P2P_DISABLE": "1"}
	}
	return r
}

// asked says whether a request has been put already: by command, layout, and with P2P or without.
func asked(done []answer, r wire.Request) bool {
	for _, a := range done {
		if a.request.Command == r.Command && layoutOf(a.request) == layoutOf(r) && a.request.Env["NCCL_P2P_DISABLE"] == r.Env["NCCL_P2P_DISABLE"] {
			return true
		}
	}
	return false
}

func layoutOf(r wire.Request) string {
	if r.AllReduce == nil {
		return ""
	}
	return r.AllReduce.Layout
}

// devices are the ordinals that the helper sees.
func devices(hello answer) []int {
	var out []int
	for _, l := range hello.lines {
		if l.Hello != nil {
			for _, d := range l.Hello.Devices {
				out = append(out, d.Ordinal)
			}
		}
	}
	return out
}

// copies says whether some P2P path carries data, and whether some path that the driver claims does not.
func copies(done []answer) (working, broken bool) {
	for _, a := range done {
		for _, l := range a.lines {
			if l.Pair == nil || l.Pair.Path != wire.PathP2P {
				continue
			}
			switch l.Pair.Result {
			case wire.PairOK, wire.PairSlow:
				working = true
			case wire.PairCorrupt, wire.PairHang, wire.PairError:
				broken = true
			}
		}
	}
	return working, broken
}

func failedWithP2P(done []answer, layout string) bool {
	for _, a := range done {
		if a.request.Command == wire.CommandAllReduce && layoutOf(a.request) == layout && a.request.Env["NCCL_P2P_DISABLE"] == "" && a.failed() {
			return true
		}
	}
	return false
}
