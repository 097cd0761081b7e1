//go:build linux

package main

import (
	"slices"

	"preflight/internal/probe/wire"
)

// firstJobs are the workers with which a request begins. Ranks other than the one that makes the id follow later.
func (s *supervisor) firstJobs() []job {
	r := s.request
	switch {
	case r.Command == wire.CommandAcross && r.Across.FirstRank > 0:
		return ranks(r, r.Across.FirstRank, r.Across.Ranks, 0, r.Across.ID)
	case r.Command == wire.CommandAcross:
		return ranks(r, 0, r.Across.Ranks, 0, "")[:1]
	case r.Command == wire.CommandAllReduce && r.AllReduce != nil && r.AllReduce.Layout == wire.LayoutRanks:
		return ranks(r, 0, len(r.Cards), 0, "")[:1]
	}
	return []job{{}}
}

// otherRanks are the ranks of this host that wait for the id.
func (s *supervisor) otherRanks(id string) []job {
	r := s.request
	switch {
	case r.Command == wire.CommandAcross && r.Across.FirstRank == 0:
		return ranks(r, 0, r.Across.Ranks, 1, id)
	case r.Command == wire.CommandAllReduce:
		return ranks(r, 0, len(r.Cards), 1, id)
	}
	return nil
}

// ranks places one rank on each card, from the skip-th card on.
func ranks(r wire.Request, first, all, skip int, id string) []job {
	var out []job
	for i, card := range r.Cards {
		if i >= skip {
			out = append(out, job{Rank: first + i, Ranks: all, Card: card, ID: id})
		}
	}
	return out
}

// pairKey is one direction between two cards by one path.
type pairKey struct {
	Path string `json:"path"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

// hangsAllowed is how many pairs of a path may hang before the rest of that path is left alone: each costs its limit,
// and a card on which copies hang tends to get worse.
const hangsAllowed = 2

// peerProgress remembers which pairs were told, so that a new worker goes on behind a hung one.
type peerProgress struct {
	done   []pairKey
	giveUp []string
	hangs  map[string]int
	again  bool // the last hang was one between two cards
}

func (p *peerProgress) saw(l wire.Line) {
	if l.Pair != nil && l.Card != nil && l.Peer != nil {
		p.done = append(p.done, pairKey{l.Pair.Path, *l.Card, *l.Peer})
	}
}

// hung makes a result of a hang between two cards.
func (p *peerProgress) hung(l *wire.Line) {
	path := map[string]string{wire.PhasePeerStaged: wire.PathStaged, wire.PhasePeerP2P: wire.PathP2P}[l.Phase]
	if l.State != wire.StateTimeout || path == "" || l.Card == nil || l.Peer == nil {
		return
	}
	l.Pair = &wire.Pair{Path: path, Result: wire.PairHang}
	p.done = append(p.done, pairKey{path, *l.Card, *l.Peer})
	p.again = true
	if p.hangs == nil {
		p.hangs = map[string]int{}
	}
	if p.hangs[path]++; p.hangs[path] >= hangsAllowed && !slices.Contains(p.giveUp, path) {
		p.giveUp = append(p.giveUp, path)
	}
}

// next is the worker that goes on behind a hung pair.
func (p *peerProgress) next(r wire.Request) (job, bool) {
	if r.Command != wire.CommandPeers || !p.again {
		return job{}, false
	}
	p.again = false
	return job{Done: p.done, GiveUp: p.giveUp}, true
}
