package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"preflight/checks"
	"preflight/internal/accept"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/report"
	"preflight/inventory"
)

// opened is a bundle whose files are as they were signed.
type opened struct {
	files  fs.FS
	key    ssh.PublicKey
	count  int // files of the manifest
	record accept.Record
	report report.Report
}

// intact reads a bundle, and only after everything in it was found as it was signed does it look into it.
func intact(files fs.FS) (opened, error) {
	b := opened{files: files}
	manifest, err := accept.ReadFile(files, accept.ManifestName, 4<<20)
	if err != nil {
		return b, err
	}
	signature, err := accept.ReadFile(files, accept.SignatureName, 64<<10)
	if err != nil {
		return b, &changedError{[]string{accept.SignatureName + ": " + err.Error()}}
	}
	if b.key, err = accept.VerifySignature(manifest, signature); err != nil {
		return b, &changedError{[]string{err.Error()}}
	}
	sums, err := accept.ParseSums(manifest)
	if err != nil {
		return b, err
	}
	b.count = len(sums)
	changes, err := accept.Compare(files, sums)
	if err != nil {
		return b, err
	}
	if len(changes) > 0 {
		var what []string
		for _, c := range changes {
			what = append(what, c.String())
		}
		return b, &changedError{what}
	}
	if b.record, err = accept.ReadRecord(files, accept.RecordName); err != nil {
		return b, err
	}
	b.report, err = readReport(files)
	return b, err
}

// kept reads a run that was kept with --save: the same as a bundle, without a signature.
func kept(files fs.FS) (opened, error) {
	b := opened{files: files}
	var err error
	if b.record, err = accept.ReadRecord(files, accept.RunName); err != nil {
		return b, err
	}
	b.report, err = readReport(files)
	return b, err
}

func readReport(files fs.FS) (report.Report, error) {
	var r report.Report
	raw, err := accept.ReadFile(files, accept.ReportName, inputLimit)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", accept.ReportName, err)
	}
	return r, nil
}

// bundled are the rigs of a bundle, judged by today's rules.
func bundled(b opened) (map[string]fleet.Result, error) {
	cat, err := catalog.Load()
	if err != nil {
		return nil, err
	}
	rigs, err := bundledRigs(b, &cat)
	if err != nil {
		return nil, err
	}
	var results []fleet.Result
	for _, rig := range rigs {
		raw, err := accept.ReadFile(b.files, accept.SnapshotDir+"/"+rig.Name+".tar.gz", inputLimit)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		snap, err := facts.Load(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rig.Name, err)
		}
		results = append(results, fleet.Judge(rig, snap, nil, cat))
	}
	fleet.Across(results)
	out := map[string]fleet.Result{}
	for _, r := range results {
		out[r.Rig.Name] = r
	}
	return out, nil
}

// bundledRigs are the rigs as they were declared; a run without an inventory has those of its report.
func bundledRigs(b opened, cat **catalog.Catalog) ([]*inventory.Rig, error) {
	if b.record.Inventory == "" {
		var rigs []*inventory.Rig
		for _, g := range b.report.Rigs {
			rigs = append(rigs, &inventory.Rig{Name: g.Name})
		}
		return rigs, nil
	}
	inv, err := bundledInventory(b, *cat)
	if err != nil {
		return nil, err
	}
	*cat = (*cat).With(inv.Catalog)
	if p := b.record.Profile; p != "" {
		profile, err := inv.Profile(p)
		if err != nil {
			return nil, err
		}
		for _, r := range inv.Rigs {
			r.Profile = profile
		}
	}
	return inv.Rigs, nil
}

// bundledInventory loads the inventory of a bundle from a copy, with the variables as they were.
func bundledInventory(b opened, cat *catalog.Catalog) (*inventory.Inventory, error) {
	dir, err := os.MkdirTemp("", "preflight-inventory-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sub, err := fs.Sub(b.files, accept.InventoryDir)
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, sub); err != nil {
		return nil, err
	}
	path := dir
	if b.record.Inventory != accept.InventoryDir {
		path = filepath.Join(dir, filepath.Base(b.record.Inventory))
	}
	var env []string
	for name, value := range b.record.Vars {
		env = append(env, inventory.EnvPrefix+name+"="+value)
	}
	inv, diags := inventory.Load(path, inventory.Options{HostType: checks.HostType(), GPUSlugs: cat.Slugs(), CheckIDs: checks.IDs(), Env: env})
	if diags.HasErrors() {
		return nil, fmt.Errorf("its inventory: %w", diags)
	}
	return inv, nil
}

// changedError is a bundle that is not as it was signed.
type changedError struct{ what []string }

func (e *changedError) Error() string { return strings.Join(e.what, "; ") }
