package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/fit"
	"preflight/internal/fleet"
	"preflight/internal/workload"
	"preflight/inventory"
)

// fitInputs are what fit reckons with.
type fitInputs struct {
	source     string // of the report: "files" for saved input, "declared" for the rest
	workloads  []workload.Workload
	rigs       []workload.Rig
	references []workload.Rig
	open       []workload.Open

	declared []*inventory.Workload
	cat      *catalog.Catalog
}

// inputs finds workloads and machines; every mistake of the command line is told with what is taken.
func (f *fitFlags) inputs(env *environment, args []string) (*fitInputs, error) {
	in := &fitInputs{source: "declared", cat: catalog.MustLoad()}
	f.target.parallel = fleet.DefaultParallel
	f.target.from, args = morePaths(separatePaths(f.target.from), args)
	if err := in.machines(env, f, append(slices.Clone(f.rigs), args...)); err != nil {
		return nil, err
	}
	if err := in.jobs(f); err != nil {
		return nil, err
	}
	if err := in.compare(f); err != nil {
		return nil, err
	}
	if err := in.money(f); err != nil {
		return nil, err
	}
	return in, in.speeds(f)
}

// machines are those that are described, and the rigs of inventory or saved input: all of them, unless some are named.
func (in *fitInputs) machines(env *environment, f *fitFlags, asked []string) error {
	var names []string
	for _, a := range asked {
		if !fit.Described(a) {
			names = append(names, a)
		}
	}
	known := f.target.inventory != "" || len(f.target.from) > 0
	if len(names) > 0 && f.target.inventory == "" && len(f.target.from) == 0 {
		return usage("--rig %s: write a machine as 4x4090, or give the inventory that declares the rig: -i rigs.hcl", names[0])
	}
	if f.target.inventory != "" && len(f.target.from) == 0 {
		inv, err := f.target.load(env, in.cat)
		if err != nil {
			return err
		}
		in.cat, in.declared = in.cat.With(inv.Catalog), inv.Workloads
		if len(names) > 0 || len(asked) == 0 {
			if err := in.ofInventory(inv, names); err != nil {
				return err
			}
		}
	}
	if len(f.target.from) > 0 {
		if err := in.ofSaved(env, f, names); err != nil {
			return err
		}
	}
	for _, a := range asked {
		if !fit.Described(a) {
			continue
		}
		r, err := fit.Describe(a, in.cat)
		if err != nil {
			return usage("--rig %w", err)
		}
		in.rigs = append(in.rigs, r)
	}
	if len(in.rigs)+len(in.open) == 0 && !known {
		return usage("no machine is given: --rig 4x4090, -i rigs.hcl, or --from PATH")
	}
	return nil
}

func (in *fitInputs) ofInventory(inv *inventory.Inventory, names []string) error {
	rigs, err := inv.Select(names)
	if err != nil {
		return usage("%w", err)
	}
	for _, rig := range rigs {
		r, err := fit.Declared(rig, in.cat)
		if err != nil {
			in.open = append(in.open, workload.Open{Rig: rig.Name, Why: err.Error()})
			continue
		}
		in.rigs = append(in.rigs, r)
	}
	return nil
}

func (in *fitInputs) ofSaved(env *environment, f *fitFlags, names []string) error {
	t, err := f.target.resolve(env, names, "")
	if err != nil {
		return err
	}
	defer t.close()
	in.source, in.cat, in.declared = "files", t.catalogue(), t.declared
	for i, rig := range t.rigs {
		j := fleet.Judge(rig, t.snapshots[i], nil, t.catalog)
		r, err := fit.Judged(rig, j.Host, j.Findings, j.Policy, t.catalog)
		if err != nil {
			in.open = append(in.open, workload.Open{Rig: rig.Name, Why: err.Error()})
			continue
		}
		in.rigs = append(in.rigs, r)
	}
	return nil
}

// jobs are the workload of the flags, else those of the inventory.
func (in *fitInputs) jobs(f *fitFlags) error {
	if f.ask.Model != "" || f.ask.Config != "" {
		if len(f.workloads) > 0 {
			return usage("--workload names a block of the inventory, and --model or --config another job: give one of them")
		}
		w, err := f.flagged()
		in.workloads = []workload.Workload{w}
		return err
	}
	if len(in.declared) == 0 {
		return usage("no workload is given: --model 7B, --config config.json, or a workload block in the inventory")
	}
	for _, name := range []string{"method", "precision", "optimizer", "sequence", "micro-batch", "global-batch", "checkpointing", "attention", "strategy", "requests", "lora-rank", "tokens"} {
		if f.given != nil && f.given(name) {
			return usage("--%s belongs to a job of the command line: add --model or --config, or say it in the workload block", name)
		}
	}
	var err error
	if in.workloads, err = blocks(in.declared, f.workloads); err != nil {
		return err
	}
	for i := range in.workloads {
		in.workloads[i].Hours, in.workloads[i].HoursOn = f.ask.Workload.Hours, f.ask.Workload.HoursOn
	}
	return nil
}

// flagged is the workload that the flags describe.
func (f *fitFlags) flagged() (workload.Workload, error) {
	w := f.ask.Workload
	for _, x := range []struct {
		flag  string
		value int
	}{{"sequence", w.Sequence}, {"micro-batch", w.MicroBatch}, {"global-batch", w.GlobalBatch}, {"requests", w.Requests}, {"lora-rank", w.Rank}} {
		if f.given != nil && f.given(x.flag) && x.value < 1 {
			return w, usage("--%s %d: it must be at least 1", x.flag, x.value)
		}
	}
	if f.tokens != "" {
		n, problem := inventory.ParameterCount(f.tokens)
		if problem != "" {
			return w, usage("--tokens %s: it takes a number of tokens, as 1B or 300M", f.tokens)
		}
		f.ask.Workload.Tokens = n
	}
	w, err := f.ask.Read()
	if err != nil {
		return w, usage("%w", err)
	}
	return w, nil
}

// compare are the machines to compare with, and the one on which hours were measured.
func (in *fitInputs) compare(f *fitFlags) error {
	for _, text := range f.references {
		if text == "none" || text == "" {
			continue
		}
		r, err := fit.Describe(text, in.cat)
		if err != nil {
			return usage("--reference %w", err)
		}
		in.references = append(in.references, r)
	}
	w := f.ask.Workload
	switch {
	case w.Hours == 0 && w.HoursOn == "" && !(f.given != nil && f.given("hours")):
		return nil
	case math.IsNaN(w.Hours) || math.IsInf(w.Hours, 0) || w.Hours <= 0:
		return usage("--hours %g: it must be above 0", w.Hours)
	case w.HoursOn == "":
		return usage("--hours %g: on which machine? --hours-on 1xa100-80gb-sxm, or a rig", w.Hours)
	case slices.ContainsFunc(append(slices.Clone(in.rigs), in.references...), func(r workload.Rig) bool { return slices.Contains(r.Names, w.HoursOn) }):
		return nil
	}
	r, err := fit.Describe(w.HoursOn, in.cat)
	if err != nil {
		return usage("--hours-on %w", err)
	}
	in.references = append(in.references, r)
	return nil
}

// money gives machines their prices: the most particular wins.
func (in *fitInputs) money(f *fitFlags) error {
	prices, err := figures("price", f.prices)
	if err != nil {
		return err
	}
	buys, err := figures("buy", f.buys)
	if err != nil {
		return err
	}
	used := map[string]bool{"": true}
	for _, list := range [][]workload.Rig{in.rigs, in.references} {
		for i := range list {
			for _, p := range prices {
				if f.meant(p.name, list[i]) {
					used[p.name] = true
					if p.name != "" || list[i].Price == nil && !isIn(in.references, list[i]) {
						list[i].Price = &workload.Price{PerCard: p.value, Origin: "--price"}
					}
				}
			}
			for _, p := range buys {
				if f.meant(p.name, list[i]) && (p.name != "" || !isIn(in.references, list[i])) {
					used[p.name], list[i].Buy = true, p.value
				}
			}
		}
	}
	for _, p := range append(prices, buys...) {
		if !used[p.name] {
			return usage("no machine of this run is meant by %s=%g: there are %s", p.name, p.value, machineNames(in))
		}
	}
	return nil
}

// meant says whether a name of --price means a machine: its name, its card, or the beginning of either.
func (*fitFlags) meant(name string, r workload.Rig) bool {
	return name == "" || slices.Contains(r.Names, name) || strings.HasPrefix(r.Card.Slug, name) || strings.HasPrefix(r.Card.Slug, "rtx-"+name)
}

func isIn(list []workload.Rig, r workload.Rig) bool {
	return slices.ContainsFunc(list, func(x workload.Rig) bool { return slices.Equal(x.Names, r.Names) })
}

func machineNames(in *fitInputs) string {
	var out []string
	for _, r := range append(slices.Clone(in.rigs), in.references...) {
		out = append(out, strings.Join(r.Names, ", "))
	}
	return strings.Join(out, ", ")
}

// speeds puts what was measured in place of the estimate. It is of one kind of card on one job, so there must be one.
func (in *fitInputs) speeds(f *fitFlags) error {
	var list []workload.Rate
	switch given := f.given != nil && f.given("tokens-per-second"); {
	case given && f.measured != "":
		return usage("--tokens-per-second and --measured exclude each other: 1=%g in --measured says the same", f.speed)
	case given && (f.speed <= 0 || math.IsNaN(f.speed) || math.IsInf(f.speed, 0)):
		return usage("--tokens-per-second %g: it must be above 0", f.speed)
	case given:
		list = []workload.Rate{{Cards: 1, TokensPerSecond: f.speed}}
	case f.measured != "":
		var err error
		if list, err = rates(f.measured); err != nil {
			return err
		}
	default:
		return nil
	}
	kinds := map[string]bool{}
	for _, r := range in.rigs {
		kinds[r.Card.Name] = true
	}
	if len(kinds) > 1 || len(in.workloads) > 1 {
		return usage("a measured throughput is of one job on one kind of card, and there are %s", fmt.Sprintf("%d jobs and %d kinds of cards", len(in.workloads), len(kinds)))
	}
	for i := range in.rigs {
		in.rigs[i].Card.MoreCards = list
		for _, x := range list {
			if x.Cards == 1 {
				in.rigs[i].Card.Measured = x.TokensPerSecond
			}
		}
	}
	return nil
}
