package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"preflight/internal/rigsim"
)

// demoFlags are the flags of demo.
type demoFlags struct {
	faults []string
	cards  int
	list   bool
	keep   bool
	dir    string
	since  string
	output outputFlags
}

func newDemo(env *environment) *cobra.Command {
	f := &demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "See preflight work on simulated rigs, over real SSH on loopback",
		Long: `demo builds simulated rigs in a temporary folder, serves them over SSH on 127.0.0.1, checks
them like any other rig, and says which faults were planted. Without --fault: a healthy 2-card
rig, and faulty ones with 4 and 8 cards.

The rigs run the same collector as real hosts do; only the files and tools it meets are made.
Exit codes are those of check: with a fault planted, 3.`,
		Example: `  preflight demo
  preflight demo --fault narrow-slot --cards 4 -v
  preflight demo --fault none --format json=before.json && preflight demo --fault bios-reset --since before.json
  preflight demo --list
  preflight demo --keep      # leaves the rigs served until Ctrl-C, to try check on them`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), env, f) },
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.faults, "fault", nil, "plant these faults in one rig (see --list), or none for a healthy one")
	fl.IntVar(&f.cards, "cards", 4, "cards of the rig that --fault builds: 1 to 8")
	fl.BoolVar(&f.list, "list", false, "list the faults that can be planted")
	fl.BoolVar(&f.keep, "keep", false, "keep the rigs served until interrupted")
	fl.StringVar(&f.dir, "dir", "", "build the rigs here and leave them, instead of in a temporary folder")
	fl.StringVar(&f.since, "since", "", "compare with a report of another demo, as check --since does")
	f.output.add(fl)
	return c
}

func runDemo(ctx context.Context, env *environment, f *demoFlags) error {
	if f.list {
		return listFaults(env)
	}
	if _, err := f.output.sinks(env); err != nil {
		return err
	}
	specs, err := f.specs()
	if err != nil {
		return err
	}
	dir := f.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "preflight-demo-"); err != nil {
			return failed(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
	} else if err = os.MkdirAll(dir, 0o755); err != nil {
		return failed(err)
	}
	rigs, err := rigsim.Serve(ctx, dir, specs...)
	if err != nil {
		return failed(err)
	}
	defer rigs.Close()
	if err := rigs.GiveLibraries(); err != nil {
		_, _ = fmt.Fprintf(env.stderr, "preflight: %v\nThe rigs' cards cannot be measured by the native helper; the all-reduce is their nccl-tests'.\n", err)
	}
	announce(env, rigs, specs)
	check := &checkFlags{
		target: targetFlags{inventory: rigs.InventoryPath, shown: "rigs.hcl", parallel: len(specs), ssh: sshFlags{config: os.DevNull}},
		output: f.output, since: f.since, failOn: "fail", engine: "auto", small: true, probeLimit: 12 * time.Second,
	}
	result := runCheck(ctx, env, check, nil)
	if f.keep {
		_, _ = fmt.Fprintf(env.stderr, "\nThe rigs stay served until Ctrl-C. In another terminal:\n  preflight %s\n", strings.Join(toTry(specs, rigs.InventoryPath), "\n  preflight "))
		<-ctx.Done()
	} else if more := toTry(specs, "rigs.hcl")[1:]; len(more) > 0 {
		_, _ = fmt.Fprintf(env.stderr, "\nWhat was planted shows only to a probe that check does not run. Serve the rigs with --keep --dir DIR; then, in DIR:\n  preflight %s\n", strings.Join(more, "\n  preflight "))
	}
	return result
}

// toTry are commands that show what was planted: check, and the probes that it does not run by itself.
func toTry(specs []rigsim.Spec, inventory string) []string {
	all := []string{"check -i " + inventory}
	for _, s := range specs {
		for _, k := range s.Faults {
			x, _ := faultNamed(string(k))
			for _, p := range []struct{ id, command string }{
				{"burn-in.", "probe burn-in -i " + inventory + " --duration quick"},
				{"ddp.", "probe ddp -i " + inventory},
			} {
				shown := slices.ContainsFunc(x.Checks, func(id string) bool { return strings.HasPrefix(id, p.id) })
				if shown && !slices.Contains(all, p.command) {
					all = append(all, p.command)
				}
			}
		}
	}
	return all
}

// specs are the rigs to build: four by default, one with --fault.
func (f *demoFlags) specs() ([]rigsim.Spec, error) {
	if len(f.faults) == 0 {
		four, eight := rigsim.Healthy("frame-4", 4), rigsim.Healthy("server-8", 8)
		four.Faults = []rigsim.Kind{rigsim.NarrowSlot, rigsim.LowRAM}
		eight.Faults = []rigsim.Kind{rigsim.ReBAROff, rigsim.PSUShort}
		stuck := rigsim.Healthy("stuck-2", 2)
		stuck.Faults = []rigsim.Kind{rigsim.P2PHang}
		return []rigsim.Spec{rigsim.Healthy("desk-2", 2), stuck, four, eight}, nil
	}
	if f.cards < 1 || f.cards > 8 {
		return nil, usage("--cards %d: 1 to 8 can be simulated", f.cards)
	}
	s := rigsim.Healthy("rig", f.cards)
	for _, name := range f.faults {
		if name == "none" && len(f.faults) == 1 {
			break
		}
		if _, ok := faultNamed(name); !ok {
			return nil, usage("no fault is called %q; see: preflight demo --list", name)
		}
		s.Faults = append(s.Faults, rigsim.Kind(name))
	}
	return []rigsim.Spec{s}, nil
}

func faultNamed(name string) (rigsim.Fault, bool) {
	for _, x := range append(rigsim.Faults(), rigsim.BurnFaults()...) {
		if string(x.Kind) == name {
			return x, true
		}
	}
	return rigsim.Fault{}, false
}

func listFaults(env *environment) error {
	for _, x := range append(rigsim.Faults(), rigsim.BurnFaults()...) {
		if _, err := fmt.Fprintf(env.stdout, "%-16s %-26s %s\n", x.Kind, strings.Join(x.Checks, ", "), x.Words); err != nil {
			return err
		}
	}
	return nil
}

// announce says what was built and what was planted, on standard error, so that the report stays alone on standard
// output.
func announce(env *environment, rigs *rigsim.Fleet, specs []rigsim.Spec) {
	_, _ = fmt.Fprintf(env.stderr, "Simulated rigs on loopback, over SSH. Inventory: %s\n", rigs.InventoryPath)
	for i, s := range specs {
		var planted []string
		for _, k := range s.Faults {
			x, _ := faultNamed(string(k))
			planted = append(planted, fmt.Sprintf("%s (%s)", k, x.Words))
		}
		if len(planted) == 0 {
			planted = []string{"nothing: it is healthy"}
		}
		_, _ = fmt.Fprintf(env.stderr, "  %-9s %s  planted: %s\n", s.Name, rigs.Rigs[i].Addr, strings.Join(planted, "; "))
	}
	_, _ = fmt.Fprintln(env.stderr)
}
