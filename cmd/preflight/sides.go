package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"preflight/internal/accept"
	"preflight/internal/catalog"
	"preflight/internal/diff"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/report"
	"preflight/inventory"
)

// whatCompares ends the message about something that cannot be compared.
const whatCompares = "what can be compared: a run of check --save, an acceptance bundle, a JSON report, a snapshot, or anything else that check --from reads"

// side is one of the two that are compared.
type side struct {
	name   string
	states []diff.State
}

// loadSide reads what diff and --since take. Snapshots are judged by today's rules: a run and a bundle against the inventory
// in them, others against the rigs that are given, if any.
func loadSide(env *environment, path string, rigs []*inventory.Rig, cat *catalog.Catalog) (side, error) {
	s := side{name: path}
	if accept.Looks(path) {
		return bundleSide(path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		switch _, err := os.Stat(filepath.Join(path, accept.RunName)); {
		case err == nil:
			return runSide(path)
		case !errors.Is(err, fs.ErrNotExist):
			return s, err
		}
		if runs, err := runsIn(path); err == nil && len(runs) > 0 { // a folder of --save=DIR: its newest run
			return runSide(runs[0])
		}
	}
	if states, is, err := reportSide(path); is {
		s.states = states
		return s, err
	}
	in := &inputs{loose: saved{dumps: facts.NewDumps()}}
	if err := in.path(env, path); err != nil {
		return s, fmt.Errorf("%w\n%s", err, whatCompares)
	}
	machines, err := in.result()
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", path, err, whatCompares)
	}
	var results []fleet.Result
	for _, m := range machines {
		snap := m.dumps.Snapshot()
		rig := &inventory.Rig{Name: inputName(m.name, snap)}
		if declared := named(rigs, rig.Name); declared != nil {
			rig = declared[0]
		} else if len(rigs) == 1 && len(machines) == 1 {
			rig = rigs[0]
		}
		results = append(results, fleet.Judge(rig, snap, nil, cat))
	}
	fleet.Across(results)
	for _, r := range results {
		s.states = append(s.states, stateOf(r))
	}
	return s, nil
}

// stateOf is a judged rig as a comparison takes it.
func stateOf(r fleet.Result) diff.State {
	s := diff.State{Name: r.Rig.Name, Findings: r.Findings, Lost: r.Host == nil, Tool: version}
	if r.Host != nil {
		s.Facts = diff.Normal(facts.Tree(r.Host))
		s.Declared = declaredAs(r.Rig)
	}
	return s
}

// declaredAs stands for what findings depend on beside the rig itself, its declaration and its profile, wherever in an
// inventory they are written.
func declaredAs(r *inventory.Rig) string {
	type rule struct{ Name, Message string }
	var d struct {
		Cards   *int
		GPU     string
		PSUs    []inventory.PSU
		Mains   inventory.Mains
		Chassis inventory.Chassis
		Profile inventory.Profile
		Rules   []rule
	}
	d.Cards, d.GPU, d.PSUs = r.Cards, r.GPU, slices.Clone(r.PSUs)
	for i := range d.PSUs {
		d.PSUs[i].Range = hcl.Range{}
	}
	if r.Mains != nil {
		d.Mains = *r.Mains
		d.Mains.Range = hcl.Range{}
	}
	if r.Chassis != nil {
		d.Chassis = *r.Chassis
		d.Chassis.Range, d.Chassis.Slots = hcl.Range{}, slices.Clone(r.Chassis.Slots)
		for i := range d.Chassis.Slots {
			d.Chassis.Slots[i].Range = hcl.Range{}
		}
	}
	if r.Profile != nil {
		for _, x := range r.Profile.Rules {
			d.Rules = append(d.Rules, rule{x.Name, x.Message})
		}
		d.Profile = *r.Profile
		d.Profile.Rules, d.Profile.Range = nil, hcl.Range{}
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	return string(raw)
}

// bundleSide reads an acceptance bundle, which must be as it was signed.
func bundleSide(path string) (side, error) {
	files, closer, err := accept.Open(path)
	if err != nil {
		return side{}, err
	}
	defer closer()
	b, err := intact(files)
	var changed *changedError
	if errors.As(err, &changed) {
		return side{}, fmt.Errorf("%s is not as it was signed: %w", path, err)
	}
	if err != nil {
		return side{}, fmt.Errorf("%s: %w", path, err)
	}
	return keptSide(path, b)
}

func runSide(path string) (side, error) {
	b, err := kept(os.DirFS(path))
	if err != nil {
		return side{}, fmt.Errorf("%s: %w", path, err)
	}
	return keptSide(path, b)
}

// keptSide judges the snapshots of a run or a bundle again; rigs that were not reached then are lost.
func keptSide(path string, b opened) (side, error) {
	s := side{name: fmt.Sprintf("%s (%s)", path, b.record.At.Format("2006-01-02 15:04 UTC"))}
	results, err := bundled(b)
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	for _, g := range b.report.Rigs {
		if r, ok := results[g.Name]; ok {
			s.states = append(s.states, stateOf(r))
		} else {
			s.states = append(s.states, diff.State{Name: g.Name, Lost: true})
		}
	}
	return s, nil
}

// reportSide reads a JSON report, whole or as a stream of lines; is says whether the file is one.
func reportSide(path string) (states []diff.State, is bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, nil //nolint:nilerr // told by who reads it next
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false, nil //nolint:nilerr // a pipe can be read once
	}
	first := make([]byte, 512)
	n, _ := io.ReadFull(f, first)
	if !strings.Contains(string(first[:n]), `"schema"`) || !strings.HasPrefix(strings.TrimSpace(string(first[:n])), "{") {
		return nil, false, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, true, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, inputLimit+1))
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", path, err)
	}
	if len(raw) > inputLimit {
		return nil, true, fmt.Errorf("%s is larger than %d MiB", path, inputLimit>>20)
	}
	r, err := report.Read(raw)
	if err != nil {
		return nil, true, fmt.Errorf("%s %w\n%s", path, err, whatCompares)
	}
	for _, g := range r.Rigs {
		states = append(states, g.State(r.Tool.Version))
	}
	return states, true, nil
}
