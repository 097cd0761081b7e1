package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/probe"
	"preflight/inventory"
)

// Host is a reached machine.
type Host interface {
	collect.Runner
	Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error
	Close() error
}

// Open reaches a rig.
type Open func(ctx context.Context, rig *inventory.Rig) (Host, error)

// Options are the same for every rig of a run.
type Options struct {
	Parallel int // rigs at once; 0 means DefaultParallel
	Probe    bool
	Select   checks.Selection // what the run looks at: progress tells no verdict on the rest
	Look     bool             // facts are wanted, no verdict is told
	Raw      bool             // only read and save: no facts, no findings
	ProbeOpt probe.Options
	Serials  bool
	Tool     string
	Catalog  *catalog.Catalog                                  // nil: the embedded one
	Events   func(Event)                                       // progress; nil for none. Called from several goroutines
	Save     func(rig *inventory.Rig, s *facts.Snapshot) error // keeps a snapshot; nil for none
	circuits *circuits                                         // shared by the rigs of a run
	reopen   func(context.Context) (Host, error)               // reaches the rig anew; nil where it cannot be

	Finished func(i int, r Result) // a rig that is done, before it is seen beside others; nil for none. Called from several goroutines
}

// DefaultParallel is how many rigs are read at once.
const DefaultParallel = 32

// Phase is what a rig is at.
type Phase string

// The phases of a rig.
const (
	Connecting Phase = "connect"
	Collecting Phase = "collect"
	Probing    Phase = "probe nccl"
	Burning    Phase = "burn-in"
	Training   Phase = "probe ddp"
	Done       Phase = "done"
)

// Event is one step of progress.
type Event struct {
	Rig     string
	Phase   Phase
	Message string // what the phase is at; "" when the phase begins
	Elapsed time.Duration
	Lost    bool           // of Done: the rig gave no facts
	Verdict checks.Verdict // of Done
	Err     error          // of Done
}

// Result is one rig, judged or not.
type Result struct {
	Rig      *inventory.Rig
	Snapshot *facts.Snapshot
	Host     *facts.Host
	Policy   checks.Policy
	Findings []checks.Finding
	Err      error // why there are no findings, or why the probe broke off
	Took     time.Duration
}

// Judged is the part of a result that decides the exit code.
func (r Result) Judged() checks.Judged {
	return checks.Judged{Rig: r.Rig, Policy: r.Policy, Findings: r.Findings, Unreachable: r.Host == nil}
}

// Run takes every rig through all phases, some at once, and returns them in the order given. When ctx ends, rigs
// that are not finished are results with that error.
func Run(ctx context.Context, rigs []*inventory.Rig, open Open, o Options) []Result {
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	o.circuits = &circuits{}
	results := make([]Result, len(rigs))
	var g errgroup.Group
	g.SetLimit(o.Parallel)
	for i, rig := range rigs {
		results[i] = Result{Rig: rig, Err: errors.New("not begun: the run was interrupted")}
	}
	for i, rig := range rigs {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if ctx.Err() == nil {
				results[i] = one(ctx, rig, open, o)
			}
			o.finished(i, results[i])
			return nil // a rig's error is a result
		})
	}
	_ = g.Wait()
	if !o.Raw {
		Across(results)
	}
	return results
}

func (o Options) finished(i int, r Result) {
	if o.Finished != nil {
		o.Finished(i, r)
	}
}

// told is the verdict on what the run looks at.
func (o Options) told(r Result) checks.Verdict {
	r.Findings, r.Policy = o.Select.Apply(r.Findings, r.Policy)
	return r.Judged().Verdict()
}

// one takes a single rig through all phases.
func one(ctx context.Context, rig *inventory.Rig, open Open, o Options) Result {
	start := time.Now()
	r := Result{Rig: rig}
	say := func(p Phase, message string) {
		o.Events(Event{Rig: rig.Name, Phase: p, Message: message, Elapsed: time.Since(start)})
	}
	tell := func(p Phase) { say(p, "") }
	defer func() {
		done := Event{Rig: rig.Name, Phase: Done, Elapsed: time.Since(start), Verdict: o.told(r), Err: r.Err, Lost: r.Snapshot == nil}
		if (o.Raw || o.Look) && r.Err == nil {
			done.Verdict = ""
		}
		o.Events(done)
	}()
	tell(Connecting)
	host, err := open(ctx, rig)
	if err != nil {
		r.Err, r.Took = err, time.Since(start)
		return r
	}
	defer func() { _ = host.Close() }()
	o.reopen = func(ctx context.Context) (Host, error) { return open(ctx, rig) }
	r = on(ctx, host, r, o, say)
	r.Took = time.Since(start)
	if o.Save != nil && r.Snapshot != nil {
		if err := o.Save(rig, r.Snapshot); err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("the snapshot was not saved: %w", err))
		}
	}
	return r
}

// On reads, measures and judges a rig that is reached already, and leaves the connection open: whoever changes rigs looks
// before and after.
func On(ctx context.Context, host Host, rig *inventory.Rig, o Options) Result {
	start := time.Now()
	return on(ctx, host, Result{Rig: rig}, o, func(p Phase, message string) {
		if o.Events != nil {
			o.Events(Event{Rig: rig.Name, Phase: p, Message: message, Elapsed: time.Since(start)})
		}
	})
}

func on(ctx context.Context, host Host, r Result, o Options, say func(Phase, string)) Result {
	say(Collecting, "")
	rig := r.Rig
	snap, err := collect.Collect(ctx, host, collect.Request{
		Serials: o.Serials, Tool: o.Tool, Rig: rig.Name, Python: rig.Python, SlurmNode: rig.SlurmNode,
		Tell: func(item string) { say(Collecting, "reading "+item) },
	})
	if err != nil {
		r.Err = err
		return r
	}
	r.Snapshot = snap
	if !o.Raw {
		phase := o.measuring()
		o.ProbeOpt.Tell = func(what string) { say(phase, what) }
		r = judged(ctx, r, host, o, func(p Phase) { say(p, "") })
	}
	return r
}

// measuring is what the probe of a run is called.
func (o Options) measuring() Phase {
	switch {
	case o.ProbeOpt.AllReduce || o.ProbeOpt.Links:
	case o.ProbeOpt.Burn != nil:
		return Burning
	case o.ProbeOpt.DDP != nil:
		return Training
	}
	return Probing
}

// judged probes a rig that was read, and judges it.
func judged(ctx context.Context, r Result, host Host, o Options, tell func(Phase)) Result {
	seen := facts.FromSnapshot(r.Snapshot)
	var err error
	if o.Probe && ctx.Err() == nil {
		if probe.Ready(seen, o.ProbeOpt) {
			tell(o.measuring())
		}
		opt := o.ProbeOpt
		if r.Rig != nil {
			opt.Python = r.Rig.Python
		}
		if b := opt.Burn; b != nil && o.circuits != nil {
			mine := *b
			mine.Started = func(ctx context.Context) (func(), error) { return o.circuits.enter(ctx, r.Rig, seen, o.Catalog) }
			opt.Burn = &mine
		}
		err = probe.Run(ctx, runner{host}, seen, r.Snapshot, opt)
		if ctx.Err() != nil { // what was cut short by the user says nothing about the rig
			probe.Forget(r.Snapshot)
			err = errors.New("the measurement was interrupted")
		}
		seen = facts.FromSnapshot(r.Snapshot)
		if opt.Burn != nil {
			revisit(ctx, r.Snapshot, seen, o.reopen, o.ProbeOpt.Tell)
			seen = facts.FromSnapshot(r.Snapshot)
		}
	}
	out := Judge(r.Rig, r.Snapshot, seen, o.Catalog)
	out.Err = err
	return out
}

// Judge decides one rig from its snapshot; host may be nil, then it is read from the snapshot, and so may the
// catalogue, then it is the embedded one.
func Judge(rig *inventory.Rig, snap *facts.Snapshot, host *facts.Host, cat *catalog.Catalog) Result {
	if cat == nil {
		cat = catalog.MustLoad()
	}
	if host == nil {
		host = facts.FromSnapshot(snap)
	}
	r := Result{Rig: rig, Snapshot: snap, Host: host}
	r.Policy = policyOf(rig, host)
	r.Findings = checks.Run(rig, host, r.Policy, cat)
	return r
}

// policyOf is what a rig is judged by.
func policyOf(rig *inventory.Rig, host *facts.Host) checks.Policy {
	n := len(host.Cards)
	var profile *inventory.Profile
	if rig != nil {
		profile = rig.Profile
		if rig.Cards != nil {
			n = *rig.Cards
		}
	}
	return checks.PolicyFor(profile, n)
}

// runner lets a probe use a host.
type runner struct{ host Host }

func (r runner) RunScript(ctx context.Context, script []byte, stdout io.Writer) error {
	_, err := r.host.Run(ctx, script, stdout)
	return err
}

func (r runner) Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error {
	return r.host.Talk(ctx, script, talk)
}
