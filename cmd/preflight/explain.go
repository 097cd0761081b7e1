package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/docs"
	"preflight/internal/lang"
	"preflight/remediation"
)

func newExplain(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CHECK]",
		Short: "Print a check's rule, its evidence and its remedies",
		Example: `  preflight explain
  preflight explain pcie.width
  preflight explain pcie.width --lang zh`,
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
		if _, err := fmt.Fprintf(env.stdout, "%-24s %s\n", c.ID, env.lang().Say(c.Title)); err != nil {
			return err
		}
	}
	return nil
}

// remediesHeading begins the part of a page that the program replaces by the remedies themselves.
var remediesHeading = map[lang.Language]string{lang.En: "## Remedies\n", lang.Zh: "## 修复\n"}

func explain(env *environment, id string) error {
	l := env.lang()
	page, err := docs.Check(string(l), id)
	if err != nil {
		return usage("no check is called %q; there are %s", id, strings.Join(checks.IDs(), ", "))
	}
	cat, err := remediation.Load()
	if err != nil {
		return failed(err)
	}
	text, _, _ := strings.Cut(page, remediesHeading[l])
	var b strings.Builder
	b.WriteString(text + remediesHeading[l])
	for _, code := range cat.Codes() {
		if !strings.HasPrefix(code, id+"/") {
			continue
		}
		if fix, ok := cat.ForIn(l, checks.Finding{Check: id, Remedy: code}, remediation.Board{}); ok {
			writeFix(&b, l, fix)
		}
	}
	_, err = env.stdout.Write([]byte(b.String()))
	return err
}

func writeFix(b *strings.Builder, l lang.Language, fix remediation.Fix) {
	fmt.Fprintf(b, "\n%s: %s\n", fix.Code, fix.Title)
	for i, s := range fix.Steps {
		fmt.Fprintf(b, "  %d. %s\n", i+1, s.Text)
		if s.Menu != "" {
			fmt.Fprintf(b, "     %s %s\n", l.Say("BIOS, usually under"), s.Menu)
		}
		for _, line := range strings.Split(strings.TrimRight(s.Command, "\n"), "\n") {
			if line != "" {
				fmt.Fprintf(b, "       $ %s\n", line)
			}
		}
	}
	fmt.Fprintf(b, "  %s\n  %s\n", l.Sayf("reboot: %s", fix.Reboot), l.Sayf("verify: %s", fix.Verify))
}
