package fleet

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/probe"
	"preflight/inventory"
)

// RunAcross reads all rigs, runs one all-reduce over the cards of all of them, and judges each. The connections stay open
// until the end, since the hosts need each other. A rig that cannot be read makes the run impossible: the others are judged
// without it.
func RunAcross(ctx context.Context, name string, rigs []*inventory.Rig, open Open, o Options) []Result {
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	results, hosts := make([]Result, len(rigs)), make([]Host, len(rigs))
	start := time.Now()
	var g errgroup.Group
	for i, rig := range rigs {
		g.Go(func() error {
			results[i], hosts[i] = read(ctx, rig, open, o)
			return nil // a rig's error is a result
		})
	}
	_ = g.Wait()
	defer func() {
		for _, h := range hosts {
			if h != nil {
				_ = h.Close()
			}
		}
	}()
	var members []probe.Member
	for i, r := range results {
		if r.Snapshot == nil {
			members = nil
			break
		}
		members = append(members, probe.Member{
			Rig: r.Rig.Name, Host: runner{hosts[i]}, Facts: facts.FromSnapshot(r.Snapshot), Snapshot: r.Snapshot,
			NIC: r.Rig.NIC, Address: addressOf(hosts[i], r.Rig), Python: r.Rig.Python,
		})
	}
	if members != nil && ctx.Err() == nil {
		for _, r := range rigs {
			o.Events(Event{Rig: r.Name, Phase: Probing, Elapsed: time.Since(start)})
		}
		o.ProbeOpt.Tell = func(what string) {
			for _, r := range rigs {
				o.Events(Event{Rig: r.Name, Phase: Probing, Message: what, Elapsed: time.Since(start)})
			}
		}
		probe.Across(ctx, name, members, o.ProbeOpt)
	}
	for i := range results {
		finish(ctx, &results[i], members != nil, o)
		results[i].Took = time.Since(start)
		o.Events(Event{Rig: rigs[i].Name, Phase: Done, Elapsed: time.Since(start), Verdict: o.told(results[i]), Err: results[i].Err, Lost: results[i].Snapshot == nil})
	}
	Across(results)
	return results
}

// finish judges a rig after the run over several hosts.
func finish(ctx context.Context, r *Result, ran bool, o Options) {
	if r.Snapshot == nil {
		return
	}
	var err error
	switch {
	case ctx.Err() != nil:
		delete(r.Snapshot.Files, facts.ProbeAcrossPath) // what was cut short by the user says nothing about the rigs
		err = errors.New("the measurement was interrupted")
	case !ran:
		err = errors.New("not run across hosts: another rig was not reached")
	}
	took := r.Took
	*r = Judge(r.Rig, r.Snapshot, nil, o.Catalog)
	r.Err, r.Took = err, took
}

// read connects to a rig and collects its facts; the connection stays open.
func read(ctx context.Context, rig *inventory.Rig, open Open, o Options) (Result, Host) {
	start := time.Now()
	r := Result{Rig: rig}
	say := func(p Phase, message string) {
		o.Events(Event{Rig: rig.Name, Phase: p, Message: message, Elapsed: time.Since(start)})
	}
	say(Connecting, "")
	host, err := open(ctx, rig)
	if err != nil {
		r.Err = err
		return r, nil
	}
	say(Collecting, "")
	r.Snapshot, r.Err = collect.Collect(ctx, host, collect.Request{
		Serials: o.Serials, Tool: o.Tool, Rig: rig.Name, Python: rig.Python, SlurmNode: rig.SlurmNode,
		Tell: func(item string) { say(Collecting, "reading "+item) },
	})
	return r, host
}

// addressOf is where the other hosts find one: the IP that the controller reached, where there was no jump host, else the
// declared name.
func addressOf(h Host, rig *inventory.Rig) string {
	if a, ok := h.(interface{ Address() string }); ok && a.Address() != "" {
		return a.Address()
	}
	if host, _, err := net.SplitHostPort(rig.Address); err == nil {
		return host
	}
	return rig.Address
}
