package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// Member is one host of an all-reduce over several.
type Member struct {
	Rig      string
	Host     Host
	Facts    *facts.Host
	Snapshot *facts.Snapshot
	NIC      string // interface that the rig names; "" is chosen by route
	Address  string // where others find the host: name or IP, without port
	Python   string
}

// lostGrace is what the other hosts have to tell their own errors once one failed.
const lostGrace = 5 * time.Second

// Across runs one all-reduce over the cards of all members, and keeps what came of it in every member's snapshot. There is no
// MPI: a helper on each host, NCCL's id carried over by the controller. What can be found out before NCCL is: cards at work,
// a libnccl of one version everywhere, ways between the hosts.
func Across(ctx context.Context, name string, members []Member, o Options) facts.AcrossRun {
	m := &meeting{run: facts.AcrossRun{Name: name, Wrong: -1}, members: members, o: o}
	for _, x := range members {
		m.run.Hosts = append(m.run.Hosts, facts.AcrossHost{Rig: x.Rig})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stay(o)+grace, errors.New("the hosts did not answer in time"))
	defer cancel()
	if m.idle() {
		m.meet(ctx)
		for _, step := range []func(context.Context) bool{m.hello, m.sameNCCL, m.listen, m.dial, m.reduce} {
			if !step(ctx) {
				break
			}
		}
		m.part()
	}
	raw, err := json.Marshal(m.run)
	for _, x := range members {
		if err == nil && x.Snapshot != nil {
			if x.Snapshot.Files == nil {
				x.Snapshot.Files = map[string][]byte{}
			}
			x.Snapshot.Files[facts.ProbeAcrossPath] = raw
		}
	}
	return m.run
}

// meeting is one run over several hosts while it goes on.
type meeting struct {
	run      facts.AcrossRun
	members  []Member
	o        Options
	sessions []*session
	ordinals [][]int    // cards of each host
	paths    []string   // libnccl of each host
	libs     [][]string // versions of each host, in its order
	found    []map[string]string
}

// fail notes why there is no figure, and ends the run.
func (m *meeting) fail(problem string, where []string, text string) bool {
	m.run.Problem, m.run.Where, m.run.Text = problem, where, text
	return false
}

// idle says whether no host's cards are at work.
func (m *meeting) idle() bool {
	for _, x := range m.members {
		if busy := Busy(x.Facts); busy != "" && !m.o.Force {
			return m.fail(facts.AcrossBusy, []string{x.Rig}, busy)
		}
	}
	return true
}

// all puts an order to every host at once.
func (m *meeting) all(request func(i int) wire.Request, heard func(i int, l wire.Line)) []reply {
	out := make([]reply, len(m.sessions))
	done := make(chan struct{})
	for i, s := range m.sessions {
		go func() {
			out[i] = s.ask(request(i), func(l wire.Line) {
				if heard != nil {
					heard(i, l)
				}
			})
			done <- struct{}{}
		}()
	}
	for range m.sessions {
		<-done
	}
	return out
}

// lost is the first host whose helper is gone.
func (m *meeting) lost(replies []reply) bool {
	for i, r := range replies {
		if r.gone {
			s := m.sessions[i]
			<-s.ended
			if s.c.ended.How == wire.EndedNever {
				m.fail(facts.AcrossMissing, []string{s.rig}, s.why())
			} else {
				m.fail(facts.AcrossLost, []string{s.rig}, s.why())
			}
			return true
		}
	}
	return false
}

// hello learns each host's cards and its libnccl.
func (m *meeting) hello(context.Context) bool {
	replies := m.all(func(i int) wire.Request {
		p := newPlan(m.members[i].Facts, Options{Python: m.members[i].Python})
		return p.request(wire.CommandHello, helloLimit)
	}, nil)
	if m.lost(replies) {
		return false
	}
	for i, r := range replies {
		cards := devices(r.answer)
		if r.answer.outcome != wire.OutcomeOK || len(cards) == 0 {
			return m.fail(facts.AcrossMissing, []string{m.members[i].Rig}, firstNonEmpty(errorOf(r.answer), "the driver shows no card"))
		}
		found := map[string]string{}
		var versions []string
		if lib := loadedNCCL(r.answer); lib.Version != "" {
			found[lib.Version], versions = lib.Path, []string{lib.Version}
		}
		m.ordinals, m.libs, m.found = append(m.ordinals, cards), append(m.libs, versions), append(m.found, found)
		m.run.Hosts[i].Cards = len(cards)
		m.run.Ranks += len(cards)
	}
	return true
}

// refusedAs says whether an answer's first error has a key.
func refusedAs(a answer, key string) bool {
	for _, l := range a.lines {
		if l.Error != nil {
			return l.Error.Key == key
		}
	}
	return false
}

func errorOf(a answer) string {
	for _, l := range a.lines {
		if l.Error != nil {
			return l.Error.Error()
		}
	}
	return ""
}

// listen opens a door on every host, on the interface that leads to the others.
func (m *meeting) listen(context.Context) bool {
	replies := m.all(func(i int) wire.Request {
		r := wire.Request{Command: wire.CommandReach, Limit: 30, Reach: &wire.ReachRequest{Listen: true, Interface: m.members[i].NIC}}
		for j := range m.members { // the next one first: hosts of a ring
			r.Reach.Toward = append(r.Reach.Toward, m.members[(i+1+j)%len(m.members)].Address)
		}
		r.Reach.Toward = r.Reach.Toward[:len(r.Reach.Toward)-1] // not itself
		return r
	}, nil)
	if m.lost(replies) {
		return false
	}
	for i, r := range replies {
		at := reached(r.answer)
		if refusedAs(r.answer, wire.KeyBadRequest) { // a helper of another version knows no such order
			return m.fail(facts.AcrossMissing, []string{m.members[i].Rig}, errorOf(r.answer))
		}
		if len(at) != 1 {
			return m.fail(facts.AcrossInterface, []string{m.members[i].Rig}, errorOf(r.answer))
		}
		h := &m.run.Hosts[i]
		h.Interface, h.Address, h.Mbit, h.Virtual, h.LowPort, h.HighPort = at[0].Interface, at[0].Address, at[0].Mbit, at[0].Virtual, at[0].LowPort, at[0].HighPort
		m.sessions[i].lines = []wire.Line{{Reach: &at[0]}}
	}
	return true
}

func reached(a answer) []wire.Reach {
	var out []wire.Reach
	for _, l := range a.lines {
		if l.Reach != nil {
			out = append(out, *l.Reach)
		}
	}
	return out
}

// dial tries the ways between the hosts, in both directions.
func (m *meeting) dial(context.Context) bool {
	doors := make([]string, len(m.sessions))
	for i, s := range m.sessions {
		doors[i] = net.JoinHostPort(s.lines[0].Reach.Address, fmt.Sprint(s.lines[0].Reach.Port))
	}
	replies := m.all(func(i int) wire.Request {
		r := wire.Request{Command: wire.CommandReach, Limit: 30, Reach: &wire.ReachRequest{}}
		for _, j := range peersOf(i, len(doors)) {
			r.Reach.Dial = append(r.Reach.Dial, doors[j])
		}
		return r
	}, nil)
	if m.lost(replies) {
		return false
	}
	for i, r := range replies {
		for k, x := range reached(r.answer) {
			if j := peersOf(i, len(doors))[k]; x.Result != wire.ReachOK {
				m.run.Blocked = append(m.run.Blocked, facts.AcrossWay{
					From: m.members[i].Rig, To: m.members[j].Rig, FromAddress: m.run.Hosts[i].Address, ToAddress: m.run.Hosts[j].Address, Result: x.Result,
				})
			}
		}
	}
	if len(m.run.Blocked) > 0 {
		return m.fail(facts.AcrossUnreachable, nil, "")
	}
	return true
}

// allPairs is up to how many hosts every way is tried; beyond, those that a job needs: the neighbours of a ring, and the host
// of rank 0.
const allPairs = 8

// peersOf are the hosts that one dials.
func peersOf(i, n int) []int {
	var out []int
	for j := range n {
		neighbour := j == (i+1)%n || i == (j+1)%n
		if j != i && (n <= allPairs || neighbour || j == 0 || i == 0) {
			out = append(out, j)
		}
	}
	return out
}
