package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"preflight/internal/probe"
	"preflight/internal/sample"
)

// burnFlags are those of a burn-in.
type burnFlags struct {
	duration string // "" for no burn-in
	named    string // the flag that gave it
	sweep    []string
	core     float64
	memory   float64
	share    float64
	every    time.Duration
	silence  time.Duration
}

// Times of a burn-in. Heat soak takes the metal of a rig and the air of its room some twenty minutes: what is shorter is quick.
// Policy.
const (
	burnFull      = 30 * time.Minute
	burnQuick     = 3 * time.Minute
	burnSoak      = 20 * time.Minute
	burnShortest  = 5 * time.Second
	burnLongest   = 12 * time.Hour
	burnCool      = 30 * time.Second // idle before the load, at most
	burnCoolDown  = 3 * time.Minute  // idle after it, at most
	coolShare     = 15               // the load's length ÷ the idle time before it
	coolDownShare = 6
	mostWatts     = 5000 // of a cap; more than any card takes
)

// usual is what a burn-in is when nobody asks for anything else.
var usual = burnFlags{core: probe.BurnCore, memory: probe.BurnMemoryTemp, share: 0.85, every: 2 * time.Second, silence: probe.BurnSilence}

func (b *burnFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&b.sweep, "sweep", nil, "power caps in watts to hold one after another during the load, such as 450,400,350,300")
	fl.Float64Var(&b.core, "abort-temp", usual.core, "°C of a card's core at which the load is stopped")
	fl.Float64Var(&b.memory, "abort-memory-temp", usual.memory, "°C of a card's memory at which the load is stopped, where the card tells it")
	fl.Float64Var(&b.share, "memory", usual.share, "share of each card's free memory to write and compare")
	fl.DurationVar(&b.every, "interval", usual.every, "time between two samples")
	fl.DurationVar(&b.silence, "silence", usual.silence, "how long a rig keeps its load without hearing from here")
}

// options understands the flags; nil when no burn-in is asked for.
func (b *burnFlags) options() (*probe.BurnOptions, error) {
	if b.duration == "" {
		return nil, nil
	}
	load, err := burnTime(b.named, b.duration)
	if err != nil {
		return nil, err
	}
	o := &probe.BurnOptions{
		Load: load, Quick: load < burnSoak, Every: b.every, Memory: b.share, Core: b.core, MemoryTemp: b.memory, Silence: b.silence,
		Cool: min(burnCool, max(2*time.Second, load/coolShare)), CoolDown: min(burnCoolDown, max(2*time.Second, load/coolDownShare)),
	}
	for _, x := range b.sweep {
		w, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(x), "W"), 64)
		if err != nil || !(w > 0 && w <= mostWatts) {
			return nil, usage("--sweep %s: a power cap is a number of watts up to %d, such as 350", x, mostWatts)
		}
		if slices.Contains(o.Caps, w) {
			return nil, usage("--sweep names %g W twice", w)
		}
		o.Caps = append(o.Caps, w)
	}
	if n := time.Duration(len(o.Caps)); n > 0 && load/n < probe.ShortestStep {
		return nil, usage("--sweep over %d caps takes at least %s: --duration %s", n, probe.ShortestStep*n, probe.ShortestStep*n)
	}
	return o, b.bounds()
}

func burnTime(flag, s string) (time.Duration, error) {
	switch s {
	case "quick":
		return burnQuick, nil
	case "full":
		return burnFull, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < burnShortest || d > burnLongest {
		return 0, usage("--%s %s: quick (%s), full (%s), or a time from %s to %s", flag, s, burnQuick, burnFull, burnShortest, burnLongest)
	}
	return d, nil
}

func (b *burnFlags) bounds() error {
	switch { // each in a form that refuses NaN, with which no card would ever be too hot
	case !(b.core >= 40 && b.core <= 110):
		return usage("--abort-temp %g: 40 to 110 °C", b.core)
	case !(b.memory >= 40 && b.memory <= 120):
		return usage("--abort-memory-temp %g: 40 to 120 °C", b.memory)
	case !(b.share > 0 && b.share <= 0.95):
		return usage("--memory %g: a share above 0, at most 0.95", b.share)
	case b.every < sample.Shortest || b.every > 10*time.Second:
		return usage("--interval %s: %s to 10s", b.every, sample.Shortest)
	case b.silence < time.Second || b.silence > time.Minute:
		return usage("--silence %s: 1s to 1m", b.silence)
	}
	return nil
}

// asked are the checks that a burn-in of this length is expected to decide.
func (b *burnFlags) asked(o *probe.BurnOptions) []string {
	switch {
	case o == nil:
		return nil
	case o.Quick:
		return []string{"burn-in.power", "burn-in.memory"}
	}
	return []string{"burn-in.thermal", "burn-in.power", "burn-in.memory"}
}

func newProbeBurnIn(env *environment) *cobra.Command {
	f := &checkFlags{only: measures["burn-in"], failOn: "fail", engine: "auto", probeLimit: probe.DefaultLimit}
	c := &cobra.Command{
		Use:   "burn-in [RIG...]",
		Short: "Put all cards of each rig under load, watch them, and judge what they did",
		Long: `probe burn-in loads all cards of a rig at the same moment: tensor cores (plain multiply-adds where
there are none) whose results are compared bit by bit, and patterns over most of the memory, each
word written and compared. Meanwhile one reader samples power, temperatures, clocks, event reasons,
fans, links and ECC, and the kernel's log for Xid and link errors. Before the load the cool cards are
sampled, after it the way back.

The load stops at --abort-temp, at the first card that is lost, at Ctrl-C, and within --silence when
a rig does not hear from here any more. Cards at work are never loaded. It needs the NVIDIA driver
and nothing more, changes nothing, and leaves nothing; only --sweep changes power limits, as root,
and puts them back.

A full burn-in takes 30 minutes. Anything under 20 minutes finds supplies, cables and cards that give
in, and proves nothing about heat soak.`,
		Example: `  preflight probe burn-in -i rigs.hcl
  preflight probe burn-in -i rigs.hcl node-a --duration quick
  preflight probe burn-in -i rigs.hcl --duration 1h --abort-temp 86 --format text,html=burn-in.html
  preflight probe burn-in -i rigs.hcl node-a --sweep 450,400,350,300`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCheck(cmd.Context(), env, f, args) },
	}
	fl := c.Flags()
	f.target.add(fl, false)
	f.output.add(fl)
	f.keeping(fl)
	f.burn.named = "duration"
	fl.StringVar(&f.burn.duration, f.burn.named, "full", "time of load: full (30m), quick (3m), or a time such as 1h")
	f.burn.add(fl)
	return c
}
