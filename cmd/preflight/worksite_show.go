package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/report"
	"preflight/playbooks"
)

// showPlans writes what would change on each rig.
func (w *worksite) showPlans() {
	for i, s := range w.sites {
		if i > 0 {
			w.print("")
		}
		if s.err != nil {
			w.print("%s: %s", report.Safe(s.rig.Name), shown(s.err))
			continue
		}
		if len(s.plans) == 0 {
			w.print("%s: nothing that a playbook mends", report.Safe(s.rig.Name))
			continue
		}
		_, _ = fmt.Fprintln(w.env.stdout, report.Safe(s.rig.Name)) // a name stays a name
		for _, p := range s.plans {
			w.showPlan(p)
		}
	}
}

func (w *worksite) showPlan(p playbooks.Plan) {
	if p.Skipped != "" {
		w.print("  %s: left out, %s", p.Playbook, p.Skipped)
		return
	}
	switch {
	case p.Changes() == 0 && p.Reboot():
		w.print("  %s: in place, takes effect at the next boot", p.Playbook)
		return
	case p.Changes() == 0:
		w.print("  %s: as it should be", p.Playbook)
		return
	}
	if p.Reboot() {
		w.print("  %s: %d changes, takes effect at the next boot", p.Playbook, p.Changes())
	} else {
		w.print("  %s: %d changes", p.Playbook, p.Changes())
	}
	for _, t := range p.Tasks {
		for _, c := range t.Changes {
			w.print("    %s: %s", t.Task, report.Safe(c.What))
			for _, d := range c.Do {
				w.print("      %s", w.env.lang().Say(report.Safe(d)))
			}
			for l := range strings.Lines(c.Diff) {
				_, _ = fmt.Fprintln(w.env.stdout, "      "+report.Safe(strings.TrimRight(l, "\n"))) // of the host: as it is
			}
		}
	}
	for _, n := range p.Notes {
		w.print("    note: %s", n)
	}
}

// print writes a line in the language of the run; what a host or a playbook said stays as it is.
func (w *worksite) print(format string, args ...any) {
	_, _ = fmt.Fprintln(w.env.stdout, w.env.lang().Sayf(format, args...))
}

// showResults tells what was changed, and what turned by it.
func (w *worksite) showResults() {
	w.print("")
	for _, s := range w.sites {
		name := report.Safe(s.rig.Name)
		switch {
		case s.err != nil && s.changed > 0:
			w.print("%s: %d changes were made, then: %s", name, s.changed, shown(s.err))
			w.print("  run again to go on, or take them back: preflight provision%s --undo %s %s", w.inventoryFlag(), w.run, name)
		case s.err != nil:
			w.print("%s: %s", name, shown(s.err))
		case s.changed == 0 && s.after.Host == nil:
			w.print("%s: nothing to change", name)
		default:
			w.print("%s: %d changes made and verified (run %s)", name, s.changed, w.run)
			w.turns(s)
			if s.reboot {
				w.print("  some take effect at the next boot: reboot it, or run with --allow-reboot")
			}
		}
	}
}

func (w *worksite) inventoryFlag() string {
	if w.flags.target.inventory != "" {
		return " -i " + w.flags.target.inventory
	}
	return " --local"
}

// turns shows before → after for the checks whose verdict changed.
func (w *worksite) turns(s *site) {
	d := diff.Compare([]diff.State{stateOf(s.before)}, []diff.State{stateOf(s.after)}, nil)
	said := false
	for _, v := range d.Rigs[0].Findings {
		if v.Turn != diff.Unchanged {
			said = true
			w.print("  %s: %s → %s  %s", v.ID, w.env.lang().Say(orNone(v.Before)), w.env.lang().Say(orNone(v.After)), report.Safe(w.env.lang().Say(v.Summary)))
		}
	}
	if !said {
		w.print("  no verdict changed")
	}
}

func orNone(v checks.Verdict) string {
	if v == "" {
		return "not there"
	}
	return string(v)
}

// code is the exit code: 4 when a rig could not be worked on, 3 when a rig that was to be mended is not.
func (w *worksite) code(applied bool) error {
	if w.failures() == 0 {
		return nil
	}
	if applied && slices.ContainsFunc(w.sites, func(s *site) bool { return s.err != nil && s.changed > 0 }) {
		return exit{code: checks.ExitFail}
	}
	return exit{code: checks.ExitUnknown}
}

// runUndo takes back what a run changed on rigs.
func runUndo(ctx context.Context, env *environment, f *changeFlags, globs []string) error {
	if !plainRun(f.undo) {
		return usage("--undo %s: that is no id of a run, such as 20261201T090000Z-a1b2c3", f.undo)
	}
	t, err := f.target.resolve(env, globs, "")
	if err != nil {
		return err
	}
	defer t.close()
	w := &worksite{env: env, flags: f, target: t, run: f.undo}
	for _, r := range t.rigs {
		w.sites = append(w.sites, &site{rig: r})
	}
	defer w.leave()
	w.each(ctx, f.batch, w.sites, func(s *site) error {
		var err error
		if s.host, err = w.open(ctx, s.rig); err != nil {
			return err
		}
		undone, left, err := playbooks.Undo(ctx, rootRunner{s.host}, f.undo, who(), f.breakLock)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.print("%s: %d taken back", report.Safe(s.rig.Name), len(undone))
		for _, u := range undone {
			w.print("  %s", report.Safe(u))
		}
		for _, l := range left {
			w.print("  left: %s", report.Safe(l))
		}
		return err
	})
	for _, s := range w.sites {
		if s.err != nil {
			_, _ = fmt.Fprintf(env.stderr, "preflight: %s: %s\n", s.rig.Name, shown(s.err))
		}
	}
	if w.failures() > 0 {
		return exit{checks.ExitUnknown, errors.New("not everything was taken back")}
	}
	return nil
}

// plainRun says whether a text can be the id of a run: it goes into paths on hosts.
func plainRun(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
	})
}
