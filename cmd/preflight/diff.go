package main

import (
	"io"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/diff"
	"preflight/internal/report"
	"preflight/inventory"
)

// diffFlags are those of a comparison.
type diffFlags struct {
	target targetFlags
	format string
	output string
}

func newDiff(env *environment) *cobra.Command {
	f := &diffFlags{}
	c := &cobra.Command{
		Use:   "diff BEFORE AFTER [RIG...]",
		Short: "Compare two states of rigs: what changed, and did anything get worse?",
		Long: `diff compares two runs that were kept with check --save, JSON reports, acceptance bundles,
snapshots, or anything else that check --from reads. Cards are followed by identity, bridges by
their way from the root port; temperatures, idle link speeds and counters are left out. Snapshots
are judged by today's rules on both sides; with -i against the inventory. RIG is a name or a
pattern ("node-*"); without any, all.

Exit codes: 0 nothing got worse; 3 something did: a new fault, a fact that fell, a part that is gone;
4 something that was known is not any more, or a rig was not reached or is not there; 2 input that cannot be read.`,
		Example: `  preflight diff before.json after.json
  preflight diff before.tar.gz after.tar.gz -i rigs.hcl
  preflight diff ~/.local/state/preflight/runs/20261201T090000Z-a1b2c3 today.json --format markdown`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return runDiff(env, f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.target.inventory, "inventory", "i", "", "inventory that snapshots are judged against")
	fl.StringArrayVar(&f.target.vars, "var", nil, "set a variable of the inventory, name=value")
	fl.StringVar(&f.format, "format", "text", "text, json or markdown")
	fl.StringVarP(&f.output, "output", "o", "", "write to this file instead of standard output")
	return c
}

func runDiff(env *environment, f *diffFlags, args []string) error {
	if !slices.Contains([]string{"text", "json", "markdown"}, f.format) {
		return usage("--format %s: it takes text, json or markdown", f.format)
	}
	if err := writable(f.output); err != nil {
		return err
	}
	cat, err := catalog.Load()
	if err != nil {
		return failed(err)
	}
	var rigs []*inventory.Rig
	if f.target.inventory != "" {
		inv, err := f.target.load(env, cat)
		if err != nil {
			return err
		}
		rigs, cat = inv.Rigs, cat.With(inv.Catalog)
	}
	before, err := loadSide(env, args[0], rigs, cat)
	if err != nil {
		return usage("%w", err)
	}
	after, err := loadSide(env, args[1], rigs, cat)
	if err != nil {
		return usage("%w", err)
	}
	if err := pick(args[2:], &before, &after); err != nil {
		return err
	}
	d := diff.Compare(before.states, after.states, nil)
	d.Before, d.After = before.name, after.name
	if err := f.write(env, d); err != nil {
		return failed(err)
	}
	if code := changeCode(d); code != checks.ExitOK {
		return exit{code: code}
	}
	return nil
}

// pick keeps the rigs that are named, or match a pattern.
func pick(globs []string, sides ...*side) error {
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil {
			return usage("%s: %w", glob, err)
		}
		if !slices.ContainsFunc(sides, func(s *side) bool {
			return slices.ContainsFunc(s.states, func(x diff.State) bool { return matches(glob, x.Name) })
		}) {
			return usage("no rig is called %q on either side", glob)
		}
	}
	for _, s := range sides {
		if len(globs) > 0 {
			s.states = slices.DeleteFunc(s.states, func(x diff.State) bool {
				return !slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, x.Name) })
			})
		}
	}
	return nil
}

func matches(glob, name string) bool {
	ok, _ := path.Match(glob, name)
	return ok || glob == name
}

// changeCode is the exit code of a comparison.
func changeCode(d diff.Result) int {
	switch {
	case d.Regressed():
		return checks.ExitFail
	case d.Darkened():
		return checks.ExitUnknown
	}
	return checks.ExitOK
}

func (f *diffFlags) write(env *environment, d diff.Result) error {
	fill := func(w io.Writer) error {
		switch f.format {
		case "json":
			return report.WriteChangesJSON(w, d)
		case "markdown":
			return report.WriteChangesMarkdown(w, d, env.lang())
		}
		width, _ := terminal(w)
		return report.WriteChanges(w, d, report.TextOptions{Color: colors(w), Width: width, Lang: env.lang()})
	}
	if f.output == "" {
		return fill(env.stdout)
	}
	return writeWhole(f.output, fill)
}
