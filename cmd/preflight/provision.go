package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"

	"preflight/checks"
	"preflight/inventory"
	"preflight/playbooks"
)

// changeFlags are those of every command that changes hosts.
type changeFlags struct {
	target      targetFlags
	folder      string
	apply       bool
	yes         bool
	force       bool
	allowReboot bool
	breakLock   bool
	batch       int
	maxFailures int
	undo        string
}

func (f *changeFlags) add(fl *pflag.FlagSet) {
	f.target.add(fl, false)
	fl.StringVar(&f.folder, "playbooks", "", "a folder of playbooks of your own, which add to those that come with preflight or take their place")
	fl.BoolVar(&f.apply, "apply", false, "make the changes; without it they are only planned")
	fl.BoolVar(&f.yes, "yes", false, "apply without asking")
	fl.BoolVar(&f.force, "force", false, "change machines whose cards are busy")
	fl.BoolVar(&f.allowReboot, "allow-reboot", false, "reboot rigs whose changes take effect at the next boot only")
	fl.BoolVar(&f.breakLock, "break-lock", false, "take away a lock that a run left behind on a host")
	fl.IntVar(&f.batch, "batch", 4, "rigs that are changed at once")
	fl.IntVar(&f.maxFailures, "max-failures", 1, "rigs that may fail before no further ones are begun")
	fl.StringVar(&f.undo, "undo", "", "take back what a run changed, by its id")
}

func (f *changeFlags) validate() error {
	switch {
	case f.batch < 1:
		return usage("--batch %d: at least 1", f.batch)
	case f.maxFailures < 1:
		return usage("--max-failures %d: at least 1", f.maxFailures)
	case f.yes && !f.apply && f.undo == "":
		return usage("--yes belongs to --apply")
	case f.allowReboot && !f.apply:
		return usage("--allow-reboot belongs to --apply")
	}
	return nil
}

// library loads the playbooks; mistakes are shown with their snippets.
func (f *changeFlags) library(env *environment) (playbooks.Library, error) {
	lib, diags := playbooks.Load(f.folder)
	if len(diags) > 0 {
		width, _ := terminal(env.stderr)
		_ = inventory.WriteDiagnostics(env.stderr, lib.Files, diags, uint(width), colors(env.stderr))
	}
	if diags.HasErrors() {
		return lib, exit{checks.ExitUsage, errors.New("the playbooks have mistakes; no host was touched")}
	}
	return lib, nil
}

func newProvision(env *environment) *cobra.Command {
	f := &changeFlags{}
	var set []string
	list := false
	c := &cobra.Command{
		Use:   "provision PLAYBOOK... [RIG...]",
		Short: "Bring rigs to a wanted state with playbooks: planned first, applied on request",
		Long: `provision plans what playbooks would change on each rig and shows it: files as a difference, packages,
units, commands, reboots. Nothing is touched. With --apply it asks once, makes the changes under a lock
on the host, verifies every task, judges the rig again and shows what turned. A second run finds
nothing to do; a run that was cut is resumed by running again, and taken back with --undo.

Every change is recorded on the host (/var/lib/preflight) with a backup, and here. Machines whose cards
are busy, or whose facts could not be read, are left alone.`,
		Example: `  preflight provision --list
  preflight provision -i rigs.hcl persistence memlock
  preflight provision -i rigs.hcl iommu --set mode=pt group:lab-1 --apply --allow-reboot
  preflight provision -i rigs.hcl --undo 20261201T090000Z-a1b2c3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runProvision(cmd.Context(), env, f, list, set, args)
		},
	}
	fl := c.Flags()
	f.add(fl)
	fl.BoolVar(&list, "list", false, "list the playbooks, or tell what the named ones do")
	fl.StringArrayVar(&set, "set", nil, "set a parameter: NAME=VALUE, or PLAYBOOK.NAME=VALUE")
	return c
}

func runProvision(ctx context.Context, env *environment, f *changeFlags, list bool, set, args []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	lib, err := f.library(env)
	if err != nil {
		return err
	}
	if f.undo != "" {
		return runUndo(ctx, env, f, args)
	}
	names, rest := split(lib, args)
	if list {
		if len(rest) > 0 {
			return usage("no playbook is called %q%s", rest[0], nearest(rest[0], lib.Names()))
		}
		return listPlaybooks(env, lib, names)
	}
	if len(names) == 0 {
		if len(rest) == 0 {
			return usage("name a playbook; `preflight provision --list` lists them")
		}
		return usage("no playbook is called %q%s; `preflight provision --list` lists them", rest[0], nearest(rest[0], lib.Names()))
	}
	values, err := settings(lib, names, set)
	if err != nil {
		return usage("%w", err)
	}
	t, err := f.target.resolve(env, rest, "")
	if err != nil {
		return err
	}
	defer t.close()
	w := &worksite{env: env, flags: f, target: t, lib: lib}
	return w.work(ctx, func(*site) []wanted {
		var out []wanted
		for _, n := range names {
			out = append(out, wanted{playbook: lib.Playbooks[n], params: values[n]})
		}
		return out
	})
}

// split parts playbooks from rigs: the first words that are playbooks, then rigs.
func split(lib playbooks.Library, args []string) (names, rigs []string) {
	for i, a := range args {
		if _, ok := lib.Playbooks[a]; !ok {
			return names, args[i:]
		}
		if !slices.Contains(names, a) {
			names = append(names, a)
		}
	}
	return names, nil
}

// settings are the parameters of each playbook.
func settings(lib playbooks.Library, names, set []string) (map[string]map[string]cty.Value, error) {
	given := map[string]map[string]string{}
	for _, n := range names {
		given[n] = map[string]string{}
	}
	var errs []error
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--set %s: it takes NAME=VALUE", s))
			continue
		}
		book, param, dotted := strings.Cut(name, ".")
		if dotted {
			if given[book] == nil {
				errs = append(errs, fmt.Errorf("--set %s: playbook %q is not among those that are named", s, book))
				continue
			}
			given[book][param] = value
			continue
		}
		taken := false
		for _, n := range names {
			if _, has := lib.Playbooks[n].Param(name); has {
				given[n][name], taken = value, true
			}
		}
		if !taken {
			given[names[0]][name] = value // told as unknown, with what was meant
		}
	}
	out := map[string]map[string]cty.Value{}
	for _, n := range names {
		v, err := lib.Playbooks[n].Values(given[n])
		errs = append(errs, err)
		out[n] = v
	}
	return out, errors.Join(errs...)
}

// listPlaybooks lists all, or tells what some do.
func listPlaybooks(env *environment, lib playbooks.Library, names []string) error {
	l := env.lang()
	title := func(p playbooks.Playbook) string {
		if l == "zh" && p.TitleZh != "" {
			return p.TitleZh
		}
		return p.Title
	}
	var b strings.Builder
	for _, n := range lib.Names() {
		p := lib.Playbooks[n]
		if len(names) == 0 {
			fmt.Fprintf(&b, "%-18s %s\n", n, title(p))
			continue
		}
		if !slices.Contains(names, n) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n\n%s\n", n, title(p), p.Doc)
		for _, x := range p.Params {
			choice := ""
			if len(x.OneOf) > 0 {
				choice = " (" + strings.Join(x.OneOf, ", ") + ")"
			}
			fmt.Fprintf(&b, "  --set %s=%s%s\n      %s\n", x.Name, shownDefault(x.Default), choice, x.Doc)
		}
		if len(p.Clears) > 0 {
			fmt.Fprintf(&b, "clears: %s\n", strings.Join(p.Clears, ", "))
		}
		for _, note := range p.Notes {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
		b.WriteByte('\n')
	}
	_, err := env.stdout.Write([]byte(b.String()))
	return err
}

func shownDefault(v cty.Value) string {
	switch {
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type() == cty.Number:
		return v.AsBigFloat().String()
	}
	return ""
}

// who is the person and machine that change a host, for its lock.
func who() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	user := os.Getenv("USER")
	if user == "" {
		user = fmt.Sprint(os.Getuid())
	}
	return user + "@" + host
}
