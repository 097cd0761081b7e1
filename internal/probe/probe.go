package probe

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"preflight/internal/facts"
)

// Host is a machine that a probe runs on. RunScript runs one script with /bin/sh and copies its output; Talk hands a
// script's input and output to a function. Both must return soon after ctx ends, even when the host does not.
type Host interface {
	RunScript(ctx context.Context, script []byte, stdout io.Writer) error
	Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error
}

// Options are what a user may choose.
type Options struct {
	Engine    string        // auto, native, nccl-tests or torch; "" is auto
	Limit     time.Duration // deadline of one all-reduce on the host; 0 means DefaultLimit
	Force     bool          // probe although cards are busy
	Links     bool          // measure host↔card links
	AllReduce bool          // run the all-reduce
	Python    string        // the Python that the rig names
	Small     bool          // small copies, for cards that a processor plays

	DDP  *DDPOptions  // a scaling test through torch; nil for none
	Burn *BurnOptions // put all cards under load last; nil for not at all

	Tell func(what string) // hears what is measured as it begins; nil for nobody

	helper func(machine string) ([]byte, string, error) // tests put another helper here
}

func (o Options) limit() time.Duration {
	if o.Limit <= 0 {
		return DefaultLimit
	}
	return min(o.Limit, longest)
}

// DefaultLimit is the deadline of an all-reduce: a healthy one takes seconds, and eight cards may take half a minute
// to initialise.
const DefaultLimit = 120 * time.Second

// ShortestLimit is the least deadline that a user may set: under it sound rigs would be called hung.
const ShortestLimit = 10 * time.Second

// longest is what the helper takes for the limit of a request.
const longest = 24 * time.Hour

// grace is what the connection waits beyond the host's own deadline.
const grace = 20 * time.Second

// engine is one way to measure. It says whether it ran, and if not, why.
type engine struct {
	name string
	run  func(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) (ran bool, why string, err error)
}

// engines, best first: the helper brings what it needs, nccl-tests and torch must be on the host.
var engines = []engine{{"native", native}, {"nccl-tests", ncclTests}, {"torch", torch}}

// Engines are the names that --engine takes.
func Engines() []string {
	names := []string{"auto"}
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// Run measures a host and adds the results to its snapshot: with the first engine that can, or with the one that was
// asked for. A host on which none can or must run gets a result that says why. An error means that the host did not
// answer at all; the snapshot then holds what was heard.
func Run(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) error {
	if s.Files == nil {
		s.Files = map[string][]byte{}
	}
	if o.Burn == nil && o.DDP == nil || o.Links || o.AllReduce {
		if err := measure(ctx, host, h, s, o); err != nil {
			return err
		}
	}
	if o.DDP != nil && ctx.Err() == nil {
		if err := ddp(ctx, host, h, s, o); err != nil {
			return err
		}
	}
	if o.Burn != nil && ctx.Err() == nil {
		return burnIn(ctx, host, h, s, o)
	}
	return nil
}

// measure copies and reduces.
func measure(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) error {
	if why, skip := notNow(h, o); skip {
		if why.Busy != "" || why.Missing != "" {
			saveRuns(s, why)
		}
		return nil
	}
	var reasons []string
	for _, e := range engines {
		if o.Engine != "" && o.Engine != "auto" && o.Engine != e.name || len(h.Cards) == 1 && e.name != "native" {
			continue // a single card has links, and nobody to reduce with
		}
		ran, why, err := e.run(ctx, host, h, s, o)
		if ran || err != nil {
			return err
		}
		if e.name != o.Engine {
			why = e.name + ": " + why
		}
		reasons = append(reasons, why)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if len(h.Cards) < 2 {
		return nil
	}
	saveRuns(s, facts.NCCLRun{Engine: "none", Wrong: -1, Missing: strings.Join(reasons, "; "), Source: "probe"})
	return nil
}

// Ready says whether Run would measure anything on this host.
func Ready(h *facts.Host, o Options) bool {
	if o.Burn != nil || o.DDP != nil {
		return true
	}
	_, skip := notNow(h, o)
	return !skip
}

// notNow says why a probe does not run: too few cards, cards at work, or no driver.
func notNow(h *facts.Host, o Options) (facts.NCCLRun, bool) {
	run := facts.NCCLRun{Engine: "none", Wrong: -1, Source: "probe"}
	attached := 0
	for _, c := range h.Cards {
		if c.Index.Known() {
			attached++
		}
	}
	switch {
	case len(h.Cards) < 2 && len(h.Cards) == attached && !(o.Links && attached == 1):
		return run, true
	case attached < min(2, len(h.Cards)):
		run.Missing = "the driver shows fewer than two cards"
		return run, true
	case h.Driver.SMIHung.Value:
		run.Missing = "the driver does not answer; a probe would hang as well"
		return run, true
	}
	if busy := Busy(h); busy != "" && !o.Force {
		run.Busy = busy
		return run, true
	}
	return run, false
}

// busyMiB and busyPercent are when a card counts as at work. Policy: 1 GiB used, or more than 5 % twice.
const (
	busyMiB     = 1024
	busyPercent = 5
)

// Busy names the first card that is at work, or "". A display server is not work: a card that drives a display may
// hold memory without a compute process.
func Busy(h *facts.Host) string {
	if jobs := h.Software.SlurmJobs.Value; len(jobs) > 0 { // a job may be about to start although its cards are still idle
		return fmt.Sprintf("Slurm runs job %s on this node", jobs[0])
	}
	for _, c := range h.Cards {
		switch {
		case c.Processes.Value > 0:
			return fmt.Sprintf("%s runs %d compute processes", c.BDF, c.Processes.Value)
		case c.UsedMiB.Value > busyMiB && !c.Display.Value:
			return fmt.Sprintf("%s holds %d MiB", c.BDF, c.UsedMiB.Value)
		case c.MinUtil.Value > busyPercent:
			return fmt.Sprintf("%s is at %d %%", c.BDF, c.MinUtil.Value)
		}
	}
	return ""
}
