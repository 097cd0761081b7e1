package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"preflight/internal/accept"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/inventory"
)

// stateFolder is the value of --save without a folder; the help shows it, and nobody calls a folder so.
const stateFolder = "the state folder"

// runsDir is where runs are kept: the folder given, else that of the XDG Base Directory Specification for state.
func runsDir(save string) (string, error) {
	if save != "" && save != stateFolder {
		return filepath.Abs(save)
	}
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the specification: a relative one is ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("nowhere to keep runs: %w; name a folder with --save=DIR", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "preflight", "runs"), nil
}

// keepable finds out before any host is touched whether a run can be kept.
func keepable(save string) error {
	if save == "" {
		return nil
	}
	dir, err := runsDir(save)
	if err != nil {
		return failed(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed(fmt.Errorf("--save: %w", err))
	}
	f, err := os.CreateTemp(dir, ".try.*")
	if err != nil {
		return failed(fmt.Errorf("--save: %w", err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// keep writes a run into a folder of its own and gives its path.
func (f *checkFlags) keep(run judgement) (string, error) {
	dir, err := runsDir(f.save)
	if err != nil {
		return "", err
	}
	var tail [3]byte
	_, _ = rand.Read(tail[:])
	path := filepath.Join(dir, run.start.UTC().Format("20060102T150405Z")+"-"+hex.EncodeToString(tail[:]))
	record := accept.Record{
		Tool: version, At: run.start.UTC().Truncate(time.Second), Exit: run.code,
		Vars: variables(f.target.vars, os.Environ()), Profile: f.profile, Serials: f.target.serials,
	}
	var files []accept.File
	if from := f.target.inventory; from != "" && from != "-" {
		if files, record.Inventory, err = inventoryFiles(from); err != nil {
			return "", err
		}
		if record.From, err = filepath.Abs(from); err != nil {
			return "", err
		}
	}
	for _, r := range run.results {
		record.Rigs = append(record.Rigs, r.Rig.Name)
		if r.Snapshot != nil {
			files = append(files, snapshotFile(r))
		}
	}
	english, err := run.report(lang.En)
	if err != nil {
		return "", err
	}
	files = append(files, accept.File{Name: accept.RunName, Fill: record.Marshal},
		accept.File{Name: accept.ReportName, Fill: func(w io.Writer) error { return report.WriteJSON(w, english) }})
	return path, accept.Store(path, files)
}

// lastRun is the newest run that was kept of these rigs: of the same inventory, or without one of rigs of the same names.
// A run in which all of them were reached goes before newer ones in which some were not: those hold nothing to compare with.
func lastRun(dir, inv string, rigs []*inventory.Rig) (string, error) {
	runs, err := runsIn(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	from := ""
	if inv != "" && inv != "-" {
		if from, err = filepath.Abs(inv); err != nil {
			return "", err
		}
	}
	newest, other := "", ""
	for _, path := range runs {
		record, err := accept.ReadRecord(os.DirFS(path), accept.RunName)
		if err != nil || slices.ContainsFunc(rigs, func(r *inventory.Rig) bool { return !slices.Contains(record.Rigs, r.Name) }) {
			continue
		}
		switch {
		case record.From != from && other == "":
			other = path
		case record.From != from:
		case !slices.ContainsFunc(rigs, func(r *inventory.Rig) bool { return !holds(path, r.Name) }):
			return path, nil
		case newest == "":
			newest = path
		}
	}
	switch {
	case newest != "":
		return newest, nil
	case other != "":
		return "", fmt.Errorf("no run of these rigs and this inventory is kept in %s; %s is of rigs of the same names, but of another inventory: if it is them, name it", dir, other)
	}
	return "", fmt.Errorf("no run of these rigs is kept in %s: keep one with check --save, before what you are about to change, or name where it is: --since PATH", dir)
}

// runsIn are the runs that are kept in a folder, the newest first: their names begin with the time.
func runsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(path, accept.RunName)); err == nil && e.Name()[0] != '.' {
			out = append(out, path)
		}
	}
	return out, nil
}

// holds says whether a run has the snapshot of a rig.
func holds(run, rig string) bool {
	info, err := os.Stat(filepath.Join(run, accept.SnapshotDir, rig+".tar.gz"))
	return err == nil && info.Mode().IsRegular()
}
