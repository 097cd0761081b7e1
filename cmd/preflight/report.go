package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/lang"
	"preflight/internal/remote"
	"preflight/internal/report"
	"preflight/remediation"
)

// buildReport joins findings with remedies into the model that every format shows.
func buildReport(t *target, results []fleet.Result, start time.Time, code int, l lang.Language) (*report.Report, error) {
	codes := []string{}
	for _, r := range results {
		for _, f := range r.Findings {
			if f.Remedy != "" && f.Cause == nil {
				codes = append(codes, f.Remedy)
			}
		}
	}
	cat, err := remediation.LoadFor(codes)
	if err != nil {
		return nil, err
	}
	rep := &report.Report{
		Schema: report.Schema, Tool: report.Tool{Name: "preflight", Version: version},
		Run: report.Run{At: start.UTC().Truncate(time.Second), Source: t.source, Seconds: time.Since(start).Seconds(), Exit: code, Interrupted: code == checks.ExitInterrupted},
	}
	for i, r := range results {
		rep.Rigs = append(rep.Rigs, t.reportRig(cat, i, r, l))
	}
	rep.Finish()
	return rep, nil
}

// reportRig is the i-th rig of the target as the report tells it.
func (t *target) reportRig(cat *remediation.Catalog, i int, r fleet.Result, l lang.Language) report.Rig {
	g := reportRig(cat, r, l)
	if r.Host != nil {
		figures := checks.FiguresOf(r.Rig, r.Host, r.Policy, t.catalogue())
		g.Figures = &figures
	}
	for j := range g.Fixes {
		g.Fixes[j].Verify = verifyWith(g.Fixes[j].Verify, g.Name, t.flags)
	}
	if t.notes != nil {
		g.Notes = append(g.Notes, t.notes[i]...)
	}
	return g
}

func reportRig(cat *remediation.Catalog, r fleet.Result, l lang.Language) report.Rig {
	g := report.Rig{
		Name: r.Rig.Name, Address: r.Rig.Address, Verdict: r.Judged().Verdict(), Findings: r.Findings, Host: r.Host,
		Fixes: []report.Fix{}, Facts: map[string]any{}, Required: required(r), Declared: places(r),
	}
	if r.Rig.Range.Filename != "" {
		g.Line = fmt.Sprintf("%s:%d", filepath.Base(r.Rig.Range.Filename), r.Rig.Range.Start.Line)
	}
	if g.Findings == nil {
		g.Findings = []checks.Finding{}
	}
	if r.Host == nil {
		g.Error = failureOf(r.Err)
		return g
	}
	g.Facts = facts.Tree(r.Host)
	g.Fixes = fixes(cat, r, l)
	m := r.Snapshot.Manifest
	if m.Cut != "" {
		g.Notes = append(g.Notes, "the collection ended early: "+m.Cut)
	}
	if m.Root == "none" && r.Snapshot.Manifest.Tool != "dumps" && m.UID > 0 {
		note := "read without root: capabilities, SMBIOS and address windows are missing; allow sudo -n or use --ask-become-pass"
		if m.RootWhy != "" {
			note = fmt.Sprintf("read without root (%s): capabilities, SMBIOS and address windows are missing; allow sudo -n or use --ask-become-pass", m.RootWhy)
		}
		g.Notes = append(g.Notes, note)
	}
	if r.Err != nil {
		g.Notes = append(g.Notes, r.Err.Error())
	}
	return g
}

// required are the checks whose unknown counts against the rig.
func required(r fleet.Result) []string {
	out := []string{}
	for _, f := range r.Findings {
		if !slices.Contains(out, f.Check) && r.Policy.Required(r.Rig, f.Check) {
			out = append(out, f.Check)
		}
	}
	return out
}

// declarations are where the inventory declares what a check judges: the first path that is there (inventory.Rig.Ranges).
var declarations = map[string][]string{
	"gpu.count":            {"cards"},
	"gpu.model":            {"gpu"},
	"power.psu":            {"psu[0].watts", "psu[0]"},
	"power.mains":          {"mains"},
	"chassis.slot-spacing": {"chassis"},
	"runtime.torch":        {"python"},
}

// places says where in the inventory each check's declaration stands.
func places(r fleet.Result) map[string]report.Place {
	if r.Rig.Range.Filename == "" {
		return nil
	}
	out := map[string]report.Place{"": placeOf(r.Rig.Range)}
	for check, paths := range declarations {
		for _, p := range paths {
			if at, ok := r.Rig.Ranges[p]; ok {
				out[check] = placeOf(at)
				break
			}
		}
	}
	if r.Rig.Profile != nil {
		for _, rule := range r.Rig.Profile.Rules {
			out["site."+rule.Name] = placeOf(rule.Range)
		}
	}
	return out
}

func placeOf(r hcl.Range) report.Place {
	return report.Place{File: r.Filename, StartLine: r.Start.Line, StartColumn: r.Start.Column, EndLine: r.End.Line, EndColumn: r.End.Column}
}

// failureOf turns a connection's error into what the report says of a rig without facts.
func failureOf(err error) *report.Failure {
	var e *remote.Error
	if errors.As(err, &e) {
		return &report.Failure{Phase: string(e.Phase), Summary: e.Summary, Advice: e.Advice}
	}
	return &report.Failure{Phase: "collect", Summary: err.Error()}
}

// fixes collects the remedies of a rig's root causes: faults before warnings, the one that clears most findings first, else in
// the order of the findings. What a fault explains is mended with it, so a consequence gets no fix of its own; it is listed among
// what the fix clears.
func fixes(cat *remediation.Catalog, r fleet.Result, l lang.Language) []report.Fix {
	board := remediation.Board{Vendor: r.Host.Board.Vendor.Value, Name: r.Host.Board.Name.Value, BIOS: r.Host.BIOS.Version.Value}
	out := []report.Fix{}
	at := map[string]int{}
	for _, f := range r.Findings {
		if f.Remedy == "" || f.Cause != nil {
			continue
		}
		if i, ok := at[f.Remedy]; ok {
			out[i].Clears = append(out[i].Clears, f.ID)
			continue
		}
		filled := f
		filled.Args = argsOf(r, f.Remedy)
		if fix, ok := cat.ForIn(l, filled, board); ok {
			at[f.Remedy] = len(out)
			out = append(out, reportFix(fix, f.ID))
		}
	}
	for range r.Findings { // a chain of causes is as long as the list at most
		grown := false
		for _, f := range r.Findings {
			for i := range out {
				if f.Cause != nil && slices.Contains(out[i].Clears, *f.Cause) && !slices.Contains(out[i].Clears, f.ID) {
					out[i].Clears, grown = append(out[i].Clears, f.ID), true
				}
			}
		}
		if !grown {
			break
		}
	}
	failed := func(f report.Fix) bool {
		return slices.ContainsFunc(r.Findings, func(x checks.Finding) bool { return x.Verdict == checks.Fail && slices.Contains(f.Clears, x.ID) })
	}
	slices.SortStableFunc(out, func(a, b report.Fix) int {
		if fa, fb := failed(a), failed(b); fa != fb { // faults before warnings, however many
			if fa {
				return -1
			}
			return 1
		}
		return len(b.Clears) - len(a.Clears)
	})
	for i := range out {
		out[i].Number = i + 1
	}
	return out
}

// verifyWith puts what this run looked at into a command that looks again: the inventory by its name, this machine, or,
// where saved input had no inventory, the machine that it came from.
func verifyWith(command, rig string, flags *targetFlags) string {
	switch {
	case flags == nil:
		return command
	case flags.shown != "":
		return command
	case flags.inventory != "":
		return strings.Replace(command, "-i rigs.hcl", "-i "+flags.inventory, 1)
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.Replace(command, "-i rigs.hcl", "--local", 1), " "+rig))
}

// naming are the values of a finding that say what it is about. A fix for several names them all; in a command, which
// takes one at a time, they are then left to the reader.
var naming = []string{"bdf", "what", "card", "engine", "python", "node", "hop"}

// argsOf are the values for the one fix of all root causes with a remedy. What differs between them and is no name has
// no value: a figure of one card would be wrong for the next.
func argsOf(r fleet.Result, remedy string) map[string]string {
	seen := map[string][]string{}
	for _, f := range r.Findings {
		if f.Remedy != remedy || f.Cause != nil {
			continue
		}
		for k, v := range f.Args {
			if !slices.Contains(seen[k], v) {
				seen[k] = append(seen[k], v)
			}
		}
	}
	args := map[string]string{"rig": r.Rig.Name}
	for k, values := range seen {
		switch n := len(values); {
		case n == 1:
			args[k] = values[0]
		case !slices.Contains(naming, k):
		case n > 4:
			args[k] = strings.Join(values[:3], ", ") + fmt.Sprintf(", +%d", n-3)
		default:
			args[k] = strings.Join(values, ", ")
		}
	}
	return args
}

func reportFix(fix remediation.Fix, clears string) report.Fix {
	out := report.Fix{Code: fix.Code, Title: fix.Title, Reboot: fix.Reboot, Verify: fix.Verify, Clears: []string{clears}, Steps: []report.Step{}}
	for _, s := range fix.Steps {
		out.Steps = append(out.Steps, report.Step{Text: s.Text, Command: s.Command, Menu: s.Menu})
	}
	return out
}
