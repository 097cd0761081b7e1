package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"preflight/checks"
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// TestAcrossSnapshots reads three rigs of a group, one with another driver, saves them, and judges the archives
// together, as `check --from a,b,c -i rigs.hcl` does.
func TestAcrossSnapshots(t *testing.T) {
	results := make([]Result, 3)
	var g errgroup.Group
	for i := range results {
		spec := rigsim.Healthy(fmt.Sprint("node-", i), 2)
		if i == 1 {
			spec.Driver = "550.90.07"
		}
		dir := t.TempDir()
		g.Go(func() error {
			if err := rigsim.Build(dir, spec); err != nil {
				return err
			}
			snap, err := collect.Collect(t.Context(), collect.Shell{Env: rigsim.Env(dir, "root")}, collect.Request{Rig: spec.Name})
			if err != nil {
				return err
			}
			var archive bytes.Buffer
			if err := facts.Save(&archive, snap); err != nil {
				return err
			}
			saved, err := facts.Load(&archive)
			if err != nil {
				return err
			}
			results[i] = Judge(&inventory.Rig{Name: spec.Name, Group: "lab"}, saved, nil, nil)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	before := len(checks.IDs())
	Across(results)
	for i, r := range results {
		var found []checks.Finding
		seen := map[string]bool{}
		for _, f := range r.Findings {
			seen[f.Check] = true
			if f.Check == "cluster.consistency" {
				found = append(found, f)
			}
		}
		if len(seen) != before {
			t.Errorf("%s: %d checks speak, %d are there", r.Rig.Name, len(seen), before)
		}
		want := checks.Pass
		if i == 1 {
			want = checks.Warn
		}
		if len(found) != 1 || found[0].Verdict != want {
			t.Errorf("%s: want one %s: %+v", r.Rig.Name, want, found)
		} else if i == 1 && (found[0].ID != "cluster.consistency@driver" || !strings.Contains(found[0].Summary, "570.158.01 on 2 of 3 rigs")) {
			t.Errorf("%s: %s: %s", r.Rig.Name, found[0].ID, found[0].Summary)
		}
	}
}

// TestAcrossLeavesTheRestAlone: unreachable rigs and rigs without a group keep what they have.
func TestAcrossLeavesTheRestAlone(t *testing.T) {
	alone := Judge(&inventory.Rig{Name: "alone"}, &facts.Snapshot{}, nil, nil)
	results := []Result{{Rig: &inventory.Rig{Name: "dead", Group: "lab"}}, alone}
	Across(results)
	if results[0].Findings != nil || len(results[1].Findings) != len(alone.Findings) {
		t.Errorf("%+v", results)
	}
}
