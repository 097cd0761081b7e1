package main

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/probe"
	"preflight/internal/rigsim"
	"preflight/internal/workload"
	"preflight/inventory"
)

// choices completes a word from a fixed list.
func choices(words func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// list completes the last word of a list that commas separate; the words before it stay.
func list(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		given := strings.Split(before, ",")
		var out []cobra.Completion
		for _, w := range words() {
			if !slices.Contains(given, w) {
				out = append(out, before+w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// flagChoices are the flags, of whatever command, whose values are known beforehand.
var flagChoices = map[string]cobra.CompletionFunc{
	"only":          list(checkNames),
	"skip":          list(checkNames),
	"engine":        choices(probe.Engines),
	"fail-on":       choices(func() []string { return []string{"fail", "warn", "unknown"} }),
	"lang":          choices(func() []string { return []string{"en", "zh"} }),
	"host-keys":     choices(func() []string { return []string{"strict", "accept-new"} }),
	"fault":         list(faultNames),
	"model":         choices(workload.ModelNames),
	"method":        choices(workload.Methods),
	"precision":     choices(workload.Precisions),
	"optimizer":     choices(workload.Optimizers),
	"checkpointing": choices(workload.Checkpointings),
	"attention":     choices(workload.Attentions),
	"strategy":      choices(workload.Strategies),
	"profile":       declaredNames(func(inv *inventory.Inventory) []string { return slices.Sorted(maps.Keys(inv.Profiles)) }),
}

// completions gives every command of the tree what a shell can offer for it.
func completions(root *cobra.Command) {
	for _, c := range root.Commands() {
		completions(c)
		if strings.Contains(c.Use, "[RIG...]") && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = declaredNames(rigNames)
		}
		for name, f := range flagChoices {
			if c.LocalNonPersistentFlags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, f)
			}
		}
		if fl := c.LocalNonPersistentFlags().Lookup("format"); fl != nil && fl.Value.String() == "text" && c.LocalNonPersistentFlags().Lookup("quiet") != nil {
			_ = c.RegisterFlagCompletionFunc("format", list(formatNames))
		}
	}
	if root.PersistentFlags().Lookup("lang") != nil {
		_ = root.RegisterFlagCompletionFunc("lang", flagChoices["lang"])
	}
}

// checkNames are the ids, and the first parts that stand for several.
func checkNames() []string {
	out := checks.IDs()
	for _, id := range checks.IDs() {
		if first, _, _ := strings.Cut(id, "."); !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}

func faultNames() []string {
	var out []string
	for _, f := range append(rigsim.Faults(), rigsim.BurnFaults()...) {
		out = append(out, string(f.Kind))
	}
	return out
}

// rigNames are the rigs, and their groups as they are selected.
func rigNames(inv *inventory.Inventory) []string {
	var out []string
	for _, r := range inv.Rigs {
		out = append(out, r.Name)
	}
	for _, r := range inv.Rigs {
		if g := "group:" + r.Group; r.Group != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// declaredNames completes from the inventory that -i names; one that cannot be read offers nothing, since a completion
// has no place to complain.
func declaredNames(names func(*inventory.Inventory) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, err := c.Flags().GetString("inventory")
		if err != nil || path == "" || path == "-" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cat, err := catalog.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		inv, _ := inventory.Load(path, inventory.Options{HostType: checks.HostType(), GPUSlugs: cat.Slugs(), CheckIDs: checks.IDs(), Env: os.Environ()})
		if inv == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, n := range names(inv) {
			if !slices.Contains(args, n) {
				out = append(out, n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
