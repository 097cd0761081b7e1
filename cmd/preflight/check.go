package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/fleet"
	"preflight/internal/lang"
	"preflight/internal/probe"
	"preflight/internal/report"
)

// checkFlags are the flags of check; collect and probe share parts of them.
type checkFlags struct {
	target targetFlags
	output outputFlags

	only, skip []string
	profile    string
	failOn     string
	noProbe    bool
	engine     string
	small      bool // cards that a processor plays: see demo
	force      bool
	probeLimit time.Duration
	save       string // where runs are kept; "" for none
	since      string // what to compare with
	watch      time.Duration
	across     bool // one all-reduce over several rigs
	burn       burnFlags
	ddp        ddpFlags
	ddpOpt     *probe.DDPOptions  // of ddp, understood
	burnOpt    *probe.BurnOptions // of burn, understood

	given func(flag string) bool // whether a flag was given, be it with an empty value
}

func newCheck(env *environment) *cobra.Command {
	f := &checkFlags{}
	c := &cobra.Command{
		Use:   "check [RIG...]",
		Short: "Judge rigs: what is wrong, the evidence, and how to mend it",
		Long: `check reads rigs over SSH (-i), this machine (--local) or saved input (--from), judges
them, and says how to mend what it found. It never changes a host.

RIG is a name or a pattern of the inventory ("node-*", "group:lab-1"); without any, all.

Exit codes: 0 no fail and nothing required unknown; 1 preflight itself failed; 2 bad usage or
inventory; 3 at least one fail; 4 a required check is unknown or a rig was unreachable;
130 interrupted.`,
		Example: `  preflight check -i rigs.hcl
  preflight check -i rigs.hcl 'node-*' --only firmware,pcie
  preflight check -i rigs.hcl --ask-become-pass --format json -o report.json
  preflight check -i rigs.hcl --format text,junit=junit.xml,sarif=preflight.sarif
  preflight check -i rigs.hcl --save && … && preflight check -i rigs.hcl --since last
  preflight check -i rigs.hcl node-a --only pcie --watch 30s     # while somebody swaps risers
  preflight check --local --no-probe
  preflight check --from snapshot.tar.gz -i rigs.hcl node-a
  preflight check --from nvidia-bug-report.log.gz
  preflight check --from lspci-vvv.txt nvidia-smi-q.txt dmesg.txt
  ssh node-a 'lspci -vvv' | preflight check --from -`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCheck(cmd.Context(), env, f, args) },
	}
	fl := c.Flags()
	f.target.add(fl, true)
	f.output.add(fl)
	fl.StringSliceVar(&f.only, "only", nil, "checks to look at, by id or first part (firmware, pcie.width)")
	fl.StringSliceVar(&f.skip, "skip", nil, "checks to leave out; they are reported unknown")
	fl.StringVar(&f.profile, "profile", "", "judge every rig by this profile of the inventory")
	fl.StringVar(&f.failOn, "fail-on", "fail", "what makes the exit code non-zero: fail, warn or unknown")
	fl.BoolVar(&f.noProbe, "no-probe", false, "run nothing under load; results lying in the input are judged")
	f.probing(fl)
	fl.DurationVar(&f.probeLimit, "probe-timeout", probe.DefaultLimit, "deadline of one all-reduce on a rig")
	f.keeping(fl)
	fl.StringVar(&f.since, "since", "", "compare with the last run that was kept (last), or with a run, a bundle, a report or a snapshot; what got worse fails")
	fl.DurationVar(&f.watch, "watch", 0, "judge again after this time, until every rig passes or Ctrl-C")
	return c
}

// keeping is the flag that keeps a run.
func (f *checkFlags) keeping(fl *pflag.FlagSet) {
	fl.StringVar(&f.save, "save", "", "keep this run (report and snapshots) in the state folder, or in a folder: --save=DIR")
	fl.Lookup("save").NoOptDefVal = stateFolder
	f.given = fl.Changed
}

// probing are the flags that check and probe share.
func (f *checkFlags) probing(fl *pflag.FlagSet) {
	fl.BoolVar(&f.force, "force", false, "probe although cards are busy")
	fl.StringVar(&f.engine, "engine", "auto", "what measures: "+strings.Join(probe.Engines(), ", "))
}

func runCheck(ctx context.Context, env *environment, f *checkFlags, globs []string) error {
	sel := checks.Selection{Only: f.only, Skip: f.skip}
	if err := f.validate(sel); err != nil {
		return err
	}
	sel.Asked = f.burn.asked(f.burnOpt)
	if f.ddpOpt != nil {
		sel.Asked = measures["ddp"]
	}
	if f.ddpOpt == nil && f.burnOpt == nil {
		sel.Asked = f.only // what is named is asked for
	}
	sinks, err := f.output.sinks(env)
	if err != nil {
		return err
	}
	if err := f.misplaced(globs); err != nil {
		return err
	}
	t, err := f.target.resolve(env, globs, f.profile)
	if err != nil {
		return f.hinted(err, globs)
	}
	defer t.close()
	if err := t.readJobs(); err != nil {
		return err
	}
	if f.across {
		if t.across, err = acrossName(t, globs); err != nil {
			return err
		}
	}
	if err := keepable(f.save); err != nil {
		return err
	}
	before, err := f.before(env, t, globs)
	if err != nil {
		return err
	}
	r := rounds{f: f, target: t, sel: sel, sinks: sinks, before: before}
	if f.watch > 0 {
		return r.untilPass(ctx, env)
	}
	_, err = r.one(ctx, env)
	return err
}

// rounds are one run of check, or several.
type rounds struct {
	f      *checkFlags
	target *target
	sel    checks.Selection
	sinks  []sink
	before *side // what each is compared with; nil for nothing
}

// one judges the rigs once and delivers the report; the error carries the exit code.
func (r rounds) one(ctx context.Context, env *environment) (judgement, error) {
	live, err := streams(env, r.sinks, r.target)
	if err != nil {
		return judgement{}, err
	}
	o := r.f.options(r.sel)
	o.Finished = func(i int, result fleet.Result) {
		result.Findings, result.Policy = r.sel.Apply(result.Findings, result.Policy)
		for _, s := range live {
			s.finished(i, result)
		}
	}
	run := r.f.judge(ctx, env, r.target, r.sel, o)
	run.compare(r.before, r.sel)
	if r.f.save != "" {
		if run.kept, err = r.f.keep(run); err != nil {
			err = fmt.Errorf("the run was not kept: %w", err)
		}
	}
	return run, r.deliver(env, run, live, err)
}

// deliver writes the report everywhere; failure is what went wrong before.
func (r rounds) deliver(env *environment, run judgement, live []*stream, failure error) error {
	err := r.f.output.write(env, r.sinks, run.report)
	for _, s := range live {
		err = errors.Join(err, s.end(run.report))
	}
	if err = errors.Join(err, failure); err != nil {
		return failed(err)
	}
	if run.kept != "" {
		_, _ = fmt.Fprintf(env.stderr, "preflight: kept as %s\n", run.kept)
	}
	if run.code != checks.ExitOK {
		return exit{code: run.code}
	}
	return nil
}

// options are what a run measures and keeps.
func (f *checkFlags) options(sel checks.Selection) fleet.Options {
	opt := probe.Options{Engine: f.engine, Limit: f.probeLimit, Force: f.force, Small: f.small, AllReduce: sel.Has("nccl.all-reduce")}
	if f.ddpOpt != nil {
		return fleet.Options{Parallel: f.target.parallel, Probe: !f.noProbe, ProbeOpt: probe.Options{DDP: f.ddpOpt, Force: f.force}, Serials: f.target.serials, Tool: version}
	}
	if opt.Burn = f.burnOpt; opt.Burn != nil && !sel.Has("link.bandwidth") {
		return fleet.Options{Parallel: f.target.parallel, Probe: true, ProbeOpt: probe.Options{Burn: opt.Burn}, Serials: f.target.serials, Tool: version}
	}
	opt.Links = sel.Has("link.bandwidth") || sel.Has("topology.p2p") || sel.Has("pcie.width") || sel.Has("pcie.speed")
	return fleet.Options{
		Parallel: f.target.parallel, Probe: (opt.Links || opt.AllReduce) && !f.noProbe, ProbeOpt: opt,
		Serials: f.target.serials, Tool: version,
	}
}

// judgement is a run that is over.
type judgement struct {
	target  *target
	results []fleet.Result
	start   time.Time
	code    int // exit code

	acceptance *report.Acceptance // of a hand-over
	changes    *diff.Result       // since another run
	kept       string             // folder of a run that was kept
}

// report tells a run in a language.
func (j judgement) report(l lang.Language) (*report.Report, error) {
	r, err := buildReport(j.target, j.results, j.start, j.code, l)
	if err == nil {
		r.Acceptance, r.Changes, r.Fit = j.acceptance, j.changes, j.fits()
	}
	return r, err
}

// before loads what a run is compared with, before any host is touched; nil for nothing.
func (f *checkFlags) before(env *environment, t *target, globs []string) (*side, error) {
	if f.since == "" {
		return nil, nil
	}
	path, err := f.since, error(nil)
	if path == "last" {
		if path, err = runsDir(f.save); err == nil {
			path, err = lastRun(path, f.target.inventory, t.rigs)
		}
	} else if runs, e := runsIn(path); e == nil && len(runs) > 0 { // a folder of --save=DIR
		path, err = lastRun(path, f.target.inventory, t.rigs)
	}
	if err != nil {
		return nil, usage("--since %s: %w", f.since, err)
	}
	s, err := loadSide(env, path, t.rigs, t.catalogue())
	if err != nil {
		return nil, usage("--since %s: %w", f.since, err)
	}
	if len(s.states) == 0 {
		return nil, usage("--since %s: no rig is told of there", f.since)
	}
	if len(globs) > 0 && len(s.states) > 1 { // only some of its rigs are looked at now
		s.states = slices.DeleteFunc(s.states, func(x diff.State) bool { return named(t.rigs, x.Name) == nil })
	}
	return &s, nil
}

// compare tells what changed since another run, and fails on what got worse. What was not looked at now did not change.
func (j *judgement) compare(before *side, sel checks.Selection) {
	if before == nil {
		return
	}
	d := diff.Compare(before.states, states(*j), func(check string) bool { return slices.Contains(checks.IDs(), check) && !sel.Has(check) })
	d.Before, d.After = before.name, j.start.UTC().Format("2006-01-02 15:04 UTC")
	j.changes = &d
	if code := changeCode(d); code == checks.ExitFail && j.code != checks.ExitInterrupted || j.code == checks.ExitOK {
		j.code = code
	}
}

// judge takes the rigs of a target through all phases.
func (f *checkFlags) judge(ctx context.Context, env *environment, t *target, sel checks.Selection, o fleet.Options) judgement {
	j := judgement{target: t, start: time.Now()}
	o.Select = sel
	j.results = t.run(ctx, env, o)
	judged := make([]checks.Judged, len(j.results))
	for i := range j.results {
		r := &j.results[i]
		r.Findings, r.Policy = sel.Apply(r.Findings, r.Policy)
		judged[i] = r.Judged()
	}
	j.code = checks.ExitCode(judged, checks.FailOn(f.failOn))
	if ctx.Err() != nil {
		j.code = checks.ExitInterrupted
	}
	return j
}

// validate finds mistakes of the command line before any host is touched.
func (f *checkFlags) validate(sel checks.Selection) error {
	if err := sel.Validate(); err != nil {
		return usage("%w", err)
	}
	if !slices.ContainsFunc(checks.IDs(), sel.Has) && !slices.ContainsFunc(f.only, isSite) {
		return usage("--only and --skip leave no check to look at")
	}
	empty := func(flag, value string) bool { return value == "" && f.given != nil && f.given(flag) }
	switch {
	case empty("save", f.save):
		return usage("--save= names no folder; --save alone keeps the run in the state folder")
	case empty("since", f.since):
		return usage("--since names nothing to compare with: it takes last, or a path")
	case f.save != "" && len(f.target.from) > 0:
		return usage("--save keeps what is read from hosts; --from is saved already")
	case f.watch < 0 || f.watch > 0 && f.watch < time.Second:
		return usage("--watch %s: at least 1s", f.watch)
	case f.watch > 0 && len(f.target.from) > 0:
		return usage("--watch looks at rigs again; --from is saved and stays as it is")
	case f.probeLimit <= 0:
		return usage("--probe-timeout %s: it must be above 0", f.probeLimit)
	case f.probeLimit < probe.ShortestLimit:
		return usage("--probe-timeout %s: at least %s, a sound rig may take that long to begin", f.probeLimit, probe.ShortestLimit)
	}
	if !slices.Contains(probe.Engines(), f.engine) {
		return usage("--engine %s: it takes %s", f.engine, strings.Join(probe.Engines(), ", "))
	}
	switch f.failOn {
	case "fail", "warn", "unknown":
	default:
		return usage("--fail-on %s: it takes fail, warn or unknown", f.failOn)
	}
	var err error
	if f.ddpOpt, err = f.ddp.options(); err != nil {
		return err
	}
	f.burnOpt, err = f.burn.options()
	return err
}

// misplaced finds the folder of --save where a rig should be: it wants an equals sign.
func (f *checkFlags) misplaced(globs []string) error {
	for _, g := range globs {
		if info, err := os.Stat(g); f.save == stateFolder && (strings.Contains(g, "/") || err == nil && info.IsDir()) {
			return usage("--save %s: write --save=%s", g, g)
		}
	}
	return nil
}

// hinted adds to a mistake that a folder of --save may have been taken for a rig.
func (f *checkFlags) hinted(err error, globs []string) error {
	var e exit
	if f.save != stateFolder || len(globs) == 0 || !errors.As(err, &e) || e.code != checks.ExitUsage || e.err == nil {
		return err
	}
	return usage("%w\nif %s is the folder of --save, write --save=%s", e.err, globs[0], globs[0])
}

// isSite says whether a selection names rules of the site, which are not in the catalogue.
func isSite(name string) bool { return name == "site" || strings.HasPrefix(name, "site.") }
