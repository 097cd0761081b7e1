package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/docs"
	"preflight/remediation"
)

func newExplain(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CHECK]",
		Short: "Print a check's rule, its evidence and its remedies",
		Example: `  preflight explain
  preflight explain pcie.width`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: checks.IDs(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listChecks(env)
			}
			return explain(env, args[0])
		},
	}
}

func listChecks(env *environment) error {
	for _, c := range checks.All() {
		if _, err := fmt.Fprintf(env.stdout, "%-24s %s\n", c.ID, c.Title); err != nil {
			return err
		}
	}
	return nil
}

func explain(env *environment, id string) error {
	page, err := docs.Check(id)
	if err != nil {
		return usage("no check is called %q; there are %s", id, strings.Join(checks.IDs(), ", "))
	}
	cat, err := remediation.Load()
	if err != nil {
		return failed(err)
	}
	text, _, _ := strings.Cut(page, "## Remedies")
	var b strings.Builder
	b.WriteString(text + "## Remedies\n")
	var codes []string
	for _, code := range cat.Codes() {
		if strings.HasPrefix(code, id+"/") {
			codes = append(codes, code)
		}
	}
	sort.Strings(codes)
	for _, code := range codes {
		fix, ok := cat.For(checks.Finding{Check: id, Remedy: code}, remediation.Board{})
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n", code, fix.Title)
		for i, s := range fix.Steps {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, s.Text)
			if s.Menu != "" {
				fmt.Fprintf(&b, "     BIOS, usually under %s\n", s.Menu)
			}
			for _, line := range strings.Split(strings.TrimRight(s.Command, "\n"), "\n") {
				if line != "" {
					fmt.Fprintf(&b, "       $ %s\n", line)
				}
			}
		}
		fmt.Fprintf(&b, "  reboot: %s\n  verify: %s\n", fix.Reboot, fix.Verify)
	}
	_, err = env.stdout.Write([]byte(b.String()))
	return err
}
