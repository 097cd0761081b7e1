package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/workload"
	"preflight/inventory"
)

// targetFlags say which machines a command is about and how they are reached.
type targetFlags struct {
	inventory string
	local     bool
	from      []string
	vars      []string
	parallel  int
	serials   bool
	ssh       sshFlags
	shown     string // a name for an inventory that the user did not give
}

func (t *targetFlags) add(fl *pflag.FlagSet, offline bool) {
	fl.StringVarP(&t.inventory, "inventory", "i", "", "inventory: an HCL file, a directory of *.hcl, or - for standard input")
	fl.BoolVar(&t.local, "local", false, "read this machine, without SSH")
	if offline {
		fl.StringArrayVar(&t.from, "from", nil, "judge saved input instead of hosts: snapshots, bug reports, dumps or directories of them; - for standard input")
	}
	fl.StringArrayVar(&t.vars, "var", nil, "set a variable of the inventory, name=value")
	fl.IntVar(&t.parallel, "parallel", fleet.DefaultParallel, "rigs at once")
	fl.BoolVar(&t.serials, "serials", false, "keep serial numbers, UUIDs and MAC addresses in snapshots and reports")
	t.ssh.add(fl)
}

// target is what a run is about: rigs to reach, or snapshots to judge.
type target struct {
	flags     *targetFlags
	source    string // "ssh", "local", "files"
	rigs      []*inventory.Rig
	snapshots []*facts.Snapshot // one for each rig; nil unless source is "files"
	notes     [][]string        // for each rig: what was not read
	dialer    *dialer
	catalog   *catalog.Catalog // with the rows that the inventory adds
	across    string           // name of an all-reduce over all rigs; "" for none

	declared []*inventory.Workload // of the inventory
	jobs     []workload.Workload   // of them, those that the report ends with
}

// catalogue is the built-in one with the rows that the inventory adds.
func (t *target) catalogue() *catalog.Catalog {
	if t.catalog == nil {
		return catalog.MustLoad()
	}
	return t.catalog
}

// openHost connects to a rig of a target, or to this machine.
func openHost(ctx context.Context, t *target, r *inventory.Rig) (fleet.Host, error) {
	if t.source == "local" {
		return thisMachine{}, nil
	}
	return t.dialer.Open(ctx, r)
}

func (t *target) close() {
	if t.dialer != nil {
		t.dialer.Close()
	}
}

// resolve reads the inventory and finds the machines. Every mistake is told before any host is touched.
func (t *targetFlags) resolve(env *environment, globs []string, profile string) (*target, error) {
	var rigs []*inventory.Rig
	var declared []*inventory.Workload
	if t.parallel < 1 {
		return nil, usage("--parallel %d: at least 1", t.parallel)
	}
	t.from, globs = morePaths(separatePaths(t.from), globs)
	if len(globs) > 0 && t.inventory == "" {
		return nil, usage("%s: %s", strings.Join(globs, " "), needsInventory(t.from))
	}
	cat, err := catalog.Load()
	if err != nil {
		return nil, failed(err)
	}
	if t.inventory != "" {
		inv, err := t.load(env, cat)
		if err != nil {
			return nil, err
		}
		cat, declared = cat.With(inv.Catalog), inv.Workloads
		if rigs, err = inv.Select(globs); err != nil {
			return nil, usage("%w", err)
		}
		if len(rigs) == 0 {
			return nil, usage("%s declares no rig", t.inventory)
		}
		if profile != "" {
			p, err := inv.Profile(profile)
			if err != nil {
				return nil, usage("%w", err)
			}
			for _, r := range rigs {
				r.Profile = p
			}
		}
	} else if profile != "" {
		return nil, usage("--profile needs the inventory that declares it: -i rigs.hcl")
	}
	out, err := t.find(env, rigs)
	if err == nil {
		out.catalog, out.declared = cat, declared
	}
	return out, err
}

// needsInventory says why an argument means nothing without an inventory.
func needsInventory(from []string) string {
	if len(from) > 0 {
		return "no such file, and names of rigs need the inventory that declares them: -i rigs.hcl"
	}
	return "names of rigs need the inventory that declares them: -i rigs.hcl"
}

// separatePaths parts what commas join. A name that has a comma and is on disk is one name.
func separatePaths(from []string) []string {
	var paths []string
	for _, f := range from {
		if _, err := os.Stat(f); err == nil {
			paths = append(paths, f)
			continue
		}
		paths = append(paths, strings.Split(f, ",")...)
	}
	return paths
}

// morePaths takes arguments after --from that name something on disk for further input, as a shell's wildcard gives
// them; the rest are names of rigs.
func morePaths(from, args []string) (paths, globs []string) {
	if len(from) == 0 {
		return from, args
	}
	for _, a := range args {
		if _, err := os.Stat(a); err == nil {
			from = append(from, a)
		} else {
			globs = append(globs, a)
		}
	}
	return from, globs
}

// find chooses between hosts, this machine and saved input.
func (t *targetFlags) find(env *environment, rigs []*inventory.Rig) (*target, error) {
	switch {
	case t.local && len(t.from) > 0:
		return nil, usage("--local and --from exclude each other")
	case len(t.from) > 0:
		return t.offline(env, rigs)
	case t.local:
		return t.here(rigs)
	case t.inventory == "":
		return nil, usage("nothing to look at: give -i rigs.hcl, --local or --from PATH\n`preflight init HOST` writes a first inventory")
	}
	d, err := t.ssh.dialer(env)
	if err != nil {
		return nil, err
	}
	return &target{flags: t, source: "ssh", rigs: rigs, dialer: d}, nil
}

func (t *targetFlags) load(env *environment, cat *catalog.Catalog) (*inventory.Inventory, error) {
	vars := map[string]string{}
	for _, v := range t.vars {
		k, val, ok := strings.Cut(v, "=")
		if !ok {
			return nil, usage("--var %s: it takes name=value", v)
		}
		vars[k] = val
	}
	inv, diags := inventory.Load(t.inventory, inventory.Options{
		HostType: checks.HostType(), GPUSlugs: cat.Slugs(), CheckIDs: checks.IDs(), Vars: vars, Env: os.Environ(),
	})
	if len(diags) > 0 {
		width, _ := terminal(env.stderr)
		_ = inventory.WriteDiagnostics(env.stderr, inv.Files, diags, uint(width), colors(env.stderr))
	}
	if diags.HasErrors() {
		return nil, exit{checks.ExitUsage, fmt.Errorf("the inventory has mistakes; no host was touched")}
	}
	return inv, nil
}

// declared is the one rig of the inventory that saved or local input is judged against.
func declared(rigs []*inventory.Rig, what string) (*inventory.Rig, error) {
	switch len(rigs) {
	case 0:
		return nil, nil
	case 1:
		return rigs[0], nil
	}
	var names []string
	for _, r := range rigs {
		names = append(names, r.Name)
	}
	return nil, usage("%s is one machine, and the inventory declares %d (%s): name the rig", what, len(rigs), strings.Join(names, ", "))
}

func (t *targetFlags) here(rigs []*inventory.Rig) (*target, error) {
	rig, err := declared(rigs, "--local")
	if err != nil {
		return nil, err
	}
	if rig == nil {
		name, err := os.Hostname()
		if err != nil {
			name = "localhost"
		}
		rig = &inventory.Rig{Name: name}
	}
	return &target{flags: t, source: "local", rigs: []*inventory.Rig{rig}}, nil
}

// run takes the target through its phases, with progress on standard error.
func (t *target) run(ctx context.Context, env *environment, o fleet.Options) []fleet.Result {
	if t.source == "files" {
		out := make([]fleet.Result, len(t.rigs))
		for i, rig := range t.rigs {
			out[i] = fleet.Judge(rig, t.snapshots[i], nil, t.catalog)
			if o.Finished != nil {
				o.Finished(i, out[i])
			}
		}
		fleet.Across(out)
		return out
	}
	show := env.progress(len(t.rigs))
	defer env.calm()
	o.Events, o.Catalog = show.Event, t.catalog
	open := func(ctx context.Context, rig *inventory.Rig) (fleet.Host, error) {
		return t.dialer.Open(ctx, rig)
	}
	if t.source == "local" {
		open = func(context.Context, *inventory.Rig) (fleet.Host, error) { return thisMachine{}, nil }
	}
	if t.across != "" {
		return fleet.RunAcross(ctx, t.across, t.rigs, open, o)
	}
	return fleet.Run(ctx, t.rigs, open, o)
}

// acrossName is what a run over several rigs is called: their group, or "across" for those that were named.
func acrossName(t *target, globs []string) (string, error) {
	if t.source != "ssh" {
		return "", usage("--across is about several rigs: it needs -i rigs.hcl")
	}
	groups := map[string]int{}
	for _, r := range t.rigs {
		groups[r.Group]++
	}
	switch {
	case len(t.rigs) < 2:
		return "", usage("--across needs at least two rigs, and %s is one", t.rigs[0].Name)
	case len(groups) == 1 && t.rigs[0].Group != "":
		return "group:" + t.rigs[0].Group, nil
	case len(globs) > 0:
		return "across", nil
	}
	names := slices.Sorted(maps.Keys(groups))
	for i, n := range names {
		names[i] = "group:" + n
		if n == "" {
			names[i] = "rigs without a group"
		}
	}
	return "", usage("--across runs one job, and the inventory has %s: name the rigs of the job, or their group", strings.Join(names, ", "))
}

// thisMachine is a host without SSH.
type thisMachine struct{ collect.Shell }

func (thisMachine) Close() error { return nil }

// saver keeps snapshots in a directory, or is nil for none.
func saver(dir string) (func(*inventory.Rig, *facts.Snapshot) error, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, failed(err)
	}
	return func(rig *inventory.Rig, s *facts.Snapshot) error {
		return writeWhole(filepath.Join(dir, rig.Name+".tar.gz"), func(w io.Writer) error { return facts.Save(w, s) })
	}, nil
}
