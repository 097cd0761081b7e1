package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/diff"
	"preflight/internal/export"
	"preflight/inventory"
)

// exportFlags choose the form.
type exportFlags struct {
	target  targetFlags
	ansible bool
	list    bool
	host    string
	ssh     bool
	slurm   string
	results string
}

func newInventory(env *environment) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "inventory [RIG...]",
		Short: "Write the inventory in the forms of other tools",
		Long: `inventory shows the rigs that an inventory declares, or writes them for other tools: Ansible's dynamic
inventory, OpenSSH's client configuration, Slurm's node lists of the rigs that passed or failed.

--slurm-nodes takes the results of the last run that was kept (check --save), or of --results: a run,
a JSON report, a snapshot or a bundle. A rig that warns passed; one that is unknown or was not reached
did not.`,
		Example: `  preflight inventory -i rigs.hcl
  preflight inventory -i rigs.hcl --ssh-config >>~/.ssh/config.d/rigs
  preflight inventory -i rigs.hcl --slurm-nodes fail --results report.json
  ansible-inventory -i ./rigs.sh --graph     # rigs.sh: exec preflight inventory -i rigs.hcl --ansible "$@"`,
		RunE: func(_ *cobra.Command, args []string) error { return runInventory(env, f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.target.inventory, "inventory", "i", "", "inventory: an HCL file, a directory of *.hcl, or - for standard input")
	fl.StringArrayVar(&f.target.vars, "var", nil, "set a variable of the inventory, name=value")
	fl.BoolVar(&f.ansible, "ansible", false, "as Ansible's dynamic inventory")
	fl.BoolVar(&f.list, "list", false, "all groups and hosts, as Ansible asks for them (the default of --ansible)")
	fl.StringVar(&f.host, "host", "", "the variables of one host, as Ansible asks for them")
	fl.BoolVar(&f.ssh, "ssh-config", false, "as Host blocks of ssh_config")
	fl.StringVar(&f.slurm, "slurm-nodes", "", "node list of the rigs that pass or fail")
	fl.StringVar(&f.results, "results", "", "where --slurm-nodes takes results from (default: the last run that was kept)")
	return c
}

func runInventory(env *environment, f *exportFlags, globs []string) error {
	forms := 0
	for _, on := range []bool{f.ansible, f.ssh, f.slurm != ""} {
		if on {
			forms++
		}
	}
	switch {
	case f.target.inventory == "":
		return usage("give the inventory: -i rigs.hcl")
	case forms > 1:
		return usage("--ansible, --ssh-config and --slurm-nodes exclude each other")
	case (f.list || f.host != "") && !f.ansible:
		return usage("--list and --host belong to --ansible")
	case f.results != "" && f.slurm == "":
		return usage("--results belongs to --slurm-nodes")
	case f.slurm != "" && f.slurm != "pass" && f.slurm != "fail":
		return usage("--slurm-nodes %s: it takes pass or fail", f.slurm)
	}
	cat, err := catalog.Load()
	if err != nil {
		return failed(err)
	}
	inv, err := f.target.load(env, cat)
	if err != nil {
		return err
	}
	rigs, err := inv.Select(globs)
	if err != nil {
		return usage("%w", err)
	}
	switch {
	case f.host != "":
		if err := export.AnsibleHost(env.stdout, rigs, f.host); err != nil {
			return usage("%w", err)
		}
		return nil
	case f.ansible:
		return export.Ansible(env.stdout, rigs)
	case f.ssh:
		return export.SSHConfig(env.stdout, rigs)
	case f.slurm != "":
		return f.slurmNodes(env, rigs, cat.With(inv.Catalog))
	}
	return listRigs(env, rigs)
}

// listRigs shows what is declared, a line a rig.
func listRigs(env *environment, rigs []*inventory.Rig) error {
	for _, r := range rigs {
		cards := "?"
		if r.Cards != nil {
			cards = fmt.Sprint(*r.Cards)
		}
		line := fmt.Sprintf("%-20s %-24s %2s× %-16s %s", r.Name, r.Address, cards, r.GPU, r.Group)
		if _, err := fmt.Fprintln(env.stdout, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// slurmNodes writes the nodes of the rigs that passed, or of those that did not.
func (f *exportFlags) slurmNodes(env *environment, rigs []*inventory.Rig, cat *catalog.Catalog) error {
	path := f.results
	if path == "" {
		dir, err := runsDir(stateFolder)
		if err == nil {
			path, err = lastRun(dir, f.target.inventory, rigs)
		}
		if err != nil {
			return usage("--slurm-nodes: %w, or name results with --results", err)
		}
	}
	s, err := loadSide(env, path, rigs, cat)
	if err != nil {
		return usage("--results: %w", err)
	}
	var nodes []string
	for _, r := range rigs {
		i := slices.IndexFunc(s.states, func(x diff.State) bool { return x.Name == r.Name })
		if i < 0 {
			return usage("%s has no result of %s", path, r.Name)
		}
		if passed(r, s.states[i]) == (f.slurm == "pass") {
			nodes = append(nodes, nodeOf(r))
		}
	}
	_, err = fmt.Fprintln(env.stdout, export.Hostlist(nodes))
	return err
}

// passed says whether a rig may take jobs: nothing fails, and nothing that is required is unknown.
func passed(r *inventory.Rig, s diff.State) bool {
	n := 0
	if r.Cards != nil {
		n = *r.Cards
	}
	j := checks.Judged{Rig: r, Policy: checks.PolicyFor(r.Profile, n), Findings: s.Findings, Unreachable: s.Lost}
	return !s.Lost && len(s.Findings) > 0 && checks.ExitCode([]checks.Judged{j}, checks.FailOn(checks.Fail)) == checks.ExitOK
}

// nodeOf is a rig's name in Slurm.
func nodeOf(r *inventory.Rig) string {
	if r.SlurmNode != "" {
		return r.SlurmNode
	}
	return r.Name
}
