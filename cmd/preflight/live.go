package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/semaphore"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/sample"
	"preflight/internal/watch"
)

// liveFlags are those of watch.
type liveFlags struct {
	target   targetFlags
	interval time.Duration
	duration time.Duration
	once     bool
	all      bool
	hot      float64
	record   string
	format   string
}

func newWatch(env *environment) *cobra.Command {
	f := &liveFlags{}
	c := &cobra.Command{
		Use:   "watch [RIG...]",
		Short: "Watch the cards of many rigs live: load, memory, power, heat, clocks, links, errors",
		Long: `watch keeps one reader on each rig and shows its cards as they are: those in trouble first with a line for
each card, those that are well folded to one line. A rig that goes away is tried again until it is back.
Piped, it writes plain lines. Ctrl-C ends it.

Nothing is changed on the rigs, and nothing stays there.`,
		Example: `  preflight watch -i rigs.hcl
  preflight watch -i rigs.hcl group:lab-1 --all --interval 5s
  preflight watch -i rigs.hcl --once
  preflight watch -i rigs.hcl --record night.csv --format csv --for 8h
  preflight watch -i rigs.hcl --format prometheus --record /var/lib/node_exporter/preflight.prom`,
		RunE: func(cmd *cobra.Command, args []string) error { return runWatch(cmd.Context(), env, f, args) },
	}
	fl := c.Flags()
	f.target.add(fl, false)
	fl.DurationVar(&f.interval, "interval", 2*time.Second, "time between samples, 1s to 1m")
	fl.DurationVar(&f.duration, "for", 0, "end after this time; without it, at Ctrl-C")
	fl.BoolVar(&f.once, "once", false, "show each card once and end")
	fl.BoolVar(&f.all, "all", false, "a line for each card of rigs that are well, too")
	fl.Float64Var(&f.hot, "hot", 85, "degrees Celsius above which a card is too hot; 5 below is warm")
	fl.StringVar(&f.record, "record", "", "write samples to this file, as --format says (jsonl when it does not)")
	fl.StringVar(&f.format, "format", "", "csv, jsonl or prometheus: to --record, else to standard output in place of the view")
	return c
}

func (f *liveFlags) validate() error {
	switch {
	case f.interval < sample.Shortest || f.interval > sample.Longest:
		return usage("--interval %s: %s to %s", f.interval, sample.Shortest, sample.Longest)
	case f.interval%time.Second != 0:
		return usage("--interval %s: whole seconds, as nvidia-smi counts them", f.interval)
	case f.duration < 0:
		return usage("--for %s: it must be above 0", f.duration)
	case f.once && f.duration > 0:
		return usage("--once and --for do not go together")
	case f.hot < 30 || f.hot > 120:
		return usage("--hot %g: 30 to 120", f.hot)
	case f.format != "" && !slices.Contains([]string{"csv", "jsonl", "prometheus"}, f.format):
		return usage("--format %s: it takes csv, jsonl or prometheus", f.format)
	}
	return nil
}

// live is one run of watch.
type live struct {
	env    *environment
	f      *liveFlags
	target *target
	fleet  *watch.Fleet
	view   watch.View
	dials  *semaphore.Weighted

	mu       sync.Mutex // of what follows, and of standard output
	recorder watch.Recorder
	failed   error // of the recorder
	stop     context.CancelCauseFunc
}

func runWatch(ctx context.Context, env *environment, f *liveFlags, globs []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	t, err := f.target.resolve(env, globs, "")
	if err != nil {
		return err
	}
	defer t.close()
	var names []string
	for _, r := range t.rigs {
		names = append(names, r.Name)
	}
	policy := watch.DefaultPolicy(f.interval)
	policy.Hot, policy.Warm, policy.Xid = f.hot, f.hot-5, xidWords(t.catalogue())
	l := &live{
		env: env, f: f, target: t, fleet: watch.New(names, time.Now), view: watch.View{Policy: policy, All: f.all || f.once}, dials: semaphore.NewWeighted(int64(f.target.parallel)),
	}
	end, err := l.records()
	if err != nil {
		return err
	}
	ctx, l.stop = context.WithCancelCause(ctx)
	defer l.stop(nil)
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	var rigs sync.WaitGroup
	for i := range t.rigs {
		rigs.Go(func() { l.follow(ctx, i) })
	}
	over := make(chan struct{})
	go func() { rigs.Wait(); close(over) }()
	l.show(ctx, over)
	l.stop(nil)
	<-over
	if err := errors.Join(l.failed, end()); err != nil {
		return failed(err)
	}
	return l.outcome()
}

// xidWords tells what an Xid means by the catalogue: what a program can bring about is worth a look, the rest is bad.
func xidWords(cat *catalog.Catalog) func(int) (watch.Level, string) {
	return func(number int) (watch.Level, string) {
		x, ok := cat.Xid(number)
		switch {
		case !ok:
			return watch.Bad, ""
		case x.Severity == "app" || x.Severity == "info" || x.Severity == "warn":
			return watch.Look, "(" + x.Name + ")"
		}
		return watch.Bad, "(" + x.Name + ")"
	}
}

// outcome is 4 when a rig gave no sample at all; Ctrl-C is how a watch ends, and no error.
func (l *live) outcome() error {
	var silent []string
	for _, r := range l.fleet.Rigs() {
		if r.LastAt.IsZero() {
			silent = append(silent, r.Name)
		}
	}
	if len(silent) > 0 {
		return exit{checks.ExitUnknown, fmt.Errorf("no sample came from %s", strings.Join(silent, ", "))}
	}
	return nil
}

// records opens what samples are written to; end closes it.
func (l *live) records() (end func() error, err error) {
	end = func() error { return nil }
	switch {
	case l.f.format == "prometheus" || l.f.format == "" && l.f.record == "":
		return end, nil // written from the state
	case l.f.record == "":
		l.recorder = watch.NewRecorder(l.env.stdout, l.f.format)
		return end, nil
	}
	file, err := os.OpenFile(l.f.record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, failed(err)
	}
	l.recorder = watch.NewRecorder(file, l.f.format)
	return file.Close, nil
}

// hear notes what a rig said, and writes it down. A file that cannot be written ends the watch: a gap would not be noticed.
func (l *live) hear(i int, it sample.Item) {
	l.fleet.Hear(i, it)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recorder == nil || l.failed != nil {
		return
	}
	if err := l.recorder.Hear(l.target.rigs[i].Name, time.Now(), it); err != nil {
		l.failed = err
		l.stop(err)
	}
}

// Pauses between tries to reach a rig that is away.
const (
	firstPause = 2 * time.Second
	mostPause  = 30 * time.Second
)

// follow keeps one rig's reader running until ctx ends; with --once, until it has told each card.
func (l *live) follow(ctx context.Context, i int) {
	pause := firstPause
	for ctx.Err() == nil {
		heard, err := l.visit(ctx, i)
		if ctx.Err() != nil || errors.Is(err, errSeen) {
			return
		}
		l.fleet.Enter(i, watch.Away, shown(err))
		if l.f.once {
			return
		}
		if heard {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// errSeen ends a visit when every card was told.
var errSeen = errors.New("seen")

// visit connects to a rig and hears it out. It returns whether it said anything, and why it ended.
func (l *live) visit(ctx context.Context, i int) (heard bool, err error) {
	if err := l.dials.Acquire(ctx, 1); err != nil {
		return false, err
	}
	host, err := openHost(ctx, l.target, l.target.rigs[i])
	l.dials.Release(1)
	if err != nil {
		return false, err
	}
	defer func() { _ = host.Close() }()
	l.fleet.Enter(i, watch.Live, "")
	seen := map[string]int{}
	said := 0
	err = sample.Read(ctx, host, l.f.interval, func(it sample.Item) error {
		heard = true
		l.hear(i, it)
		switch {
		case !l.f.once:
		case it.Card != nil:
			if seen[it.Card.BDF]++; seen[it.Card.BDF] > 1 {
				return errSeen
			}
		case it.Ended != "":
			if said++; said > 1 {
				return errSeen
			}
		}
		return nil
	})
	return heard, err
}
