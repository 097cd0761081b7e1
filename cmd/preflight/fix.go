package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/probe"
	"preflight/internal/report"
	"preflight/playbooks"
)

func newFix(env *environment) *cobra.Command {
	f, m := &changeFlags{}, &checkFlags{failOn: "fail"}
	c := &cobra.Command{
		Use:   "fix [RIG...]",
		Short: "Mend what software can mend: the playbooks that the faults of each rig call for",
		Long: `fix judges rigs, finds the playbooks that mend their faults, cause first, and plans them as provision
does. Nothing is touched without --apply. What only hands can mend, or a BIOS, is listed.

It measures as check does, before and after: copies between host and cards and the all-reduce, on cards
that are free. --no-probe leaves that out, and with it what only shows under load.`,
		Example: `  preflight fix -i rigs.hcl
  preflight fix -i rigs.hcl node-a --apply
  preflight fix --local --apply --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return runFix(cmd.Context(), env, f, m, args) },
	}
	f.add(c.Flags())
	c.Flags().StringVar(&m.engine, "engine", "auto", "what measures: "+strings.Join(probe.Engines(), ", "))
	c.Flags().BoolVar(&m.noProbe, "no-probe", false, "measure nothing: faults that show only under load are not seen")
	c.Flags().DurationVar(&m.probeLimit, "probe-timeout", probe.DefaultLimit, "deadline of one all-reduce on a rig")
	return c
}

func runFix(ctx context.Context, env *environment, f *changeFlags, m *checkFlags, args []string) error {
	m.force = f.force
	if err := errors.Join(f.validate(), m.validate(checks.Selection{})); err != nil {
		return err
	}
	lib, err := f.library(env)
	if err != nil {
		return err
	}
	if f.undo != "" {
		return runUndo(ctx, env, f, args)
	}
	t, err := f.target.resolve(env, args, "")
	if err != nil {
		return err
	}
	defer t.close()
	w := &worksite{env: env, flags: f, target: t, lib: lib, measure: m.options(checks.Selection{})}
	err = w.work(ctx, func(s *site) []wanted { return mending(lib, s.before.Findings) })
	w.byHand(lib)
	return err
}

// mending are the playbooks that the root causes of a rig call for, in the order of the findings: causes come first there.
func mending(lib playbooks.Library, findings []checks.Finding) []wanted {
	var out []wanted
	for _, f := range faults(findings) {
		for _, name := range lib.Names() {
			p := lib.Playbooks[name]
			if !slices.Contains(p.Clears, f.Remedy) || slices.ContainsFunc(out, func(w wanted) bool { return w.playbook.Name == name }) {
				continue
			}
			params, err := p.Values(nil)
			if err != nil {
				continue // the defaults of a playbook are its own
			}
			out = append(out, wanted{playbook: p, params: params, finding: f.Args})
		}
	}
	return out
}

// faults are the findings that somebody must mend, without what others explain.
func faults(findings []checks.Finding) []checks.Finding {
	var out []checks.Finding
	for _, f := range findings {
		if (f.Verdict == checks.Fail || f.Verdict == checks.Warn) && f.Cause == nil && f.Remedy != "" {
			out = append(out, f)
		}
	}
	return out
}

// byHand lists what no playbook mends.
func (w *worksite) byHand(lib playbooks.Library) {
	for _, s := range w.sites {
		if s.before.Host == nil {
			continue
		}
		findings := s.before.Findings
		if s.after.Host != nil {
			findings = s.after.Findings
		}
		said := false
		for _, f := range faults(findings) {
			if slices.ContainsFunc(lib.Names(), func(n string) bool { return slices.Contains(lib.Playbooks[n].Clears, f.Remedy) }) {
				continue
			}
			if !said {
				w.print("")
				w.print("%s: only hands or a BIOS can mend", report.Safe(s.rig.Name))
				said = true
			}
			w.print("  %s: %s (preflight check tells how)", f.Check, report.Safe(w.env.lang().Say(f.Summary)))
		}
	}
}
