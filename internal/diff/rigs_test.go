package diff_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/collect"
	"preflight/internal/diff"
	"preflight/internal/facts"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// hasty does not wait long for a nvidia-smi that hangs.
type hasty struct{ collect.Shell }

func (s hasty) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	script = bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 2 "), 1)
	script = bytes.ReplaceAll(script, []byte("    sleep 1\n    nvidia-smi"), []byte("    nvidia-smi"))
	return s.Shell.Run(ctx, script, stdout)
}

// state judges a snapshot as check does.
func state(cat *catalog.Catalog, s *facts.Snapshot, cards int) diff.State {
	h := facts.FromSnapshot(s)
	rig := &inventory.Rig{Name: "rig", Cards: &cards}
	return diff.State{Name: "rig", Facts: diff.Normal(facts.Tree(h)), Findings: checks.Run(rig, h, checks.PolicyFor(nil, cards), cat)}
}

// simulated are the states of a rig with each fault that can be planted, and of the same rig as its snapshot tells it after
// it was saved and loaded.
func simulated(t *testing.T, specs []rigsim.Spec) (live, replayed []diff.State) {
	t.Helper()
	cat, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	live, replayed = make([]diff.State, len(specs)), make([]diff.State, len(specs))
	dir := t.TempDir()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(6)
	for i, spec := range specs {
		g.Go(func() error {
			root := fmt.Sprintf("%s/%d", dir, i)
			if err := rigsim.Build(root, spec); err != nil {
				return err
			}
			snap, err := collect.Collect(ctx, hasty{collect.Shell{Env: rigsim.Env(root, "root")}}, collect.Request{})
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
			live[i], replayed[i] = state(cat, snap, spec.Cards), state(cat, saved, spec.Cards)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return live, replayed
}

// TestSimulatedRigs holds for every fault that can be planted: nothing changes between a rig and itself, or its saved
// snapshot; and what gets worse one way gets better the other way.
func TestSimulatedRigs(t *testing.T) {
	specs := []rigsim.Spec{rigsim.Healthy("rig", 2)}
	for _, f := range rigsim.Faults() {
		s := rigsim.Healthy("rig", 2)
		s.Faults = []rigsim.Kind{f.Kind}
		if !f.Probe { // no probe is run here
			specs = append(specs, s)
		}
	}
	live, replayed := simulated(t, specs)
	one := func(a, b diff.State) diff.Result { return diff.Compare([]diff.State{a}, []diff.State{b}, nil) }
	for i := range specs {
		name := fmt.Sprint(specs[i].Faults)
		for _, other := range []diff.State{live[i], replayed[i]} {
			if d := one(live[i], other); !d.Empty() {
				t.Errorf("%s differs from itself: %+v", name, d.Rigs)
			}
		}
		opposites(t, name, one(live[0], live[i]), one(live[i], live[0]))
		opposites(t, name+" to the next", one(live[i], live[(i+1)%len(live)]), one(live[(i+1)%len(live)], live[i]))
	}
}

// opposites holds that two comparisons of the same states, one in each direction, tell the same.
func opposites(t *testing.T, name string, there, back diff.Result) {
	t.Helper()
	effects := map[diff.Effect][]diff.Effect{
		diff.Worse: {diff.Better}, diff.Better: {diff.Worse}, diff.Gone: {diff.Added}, diff.Added: {diff.Gone, diff.Changed},
		diff.Unseen: {diff.Seen}, diff.Seen: {diff.Unseen}, diff.Moved: {diff.Moved}, diff.Changed: {diff.Changed, diff.Added},
	}
	a, b := there.Rigs[0], back.Rigs[0]
	if len(a.Facts) != len(b.Facts) {
		t.Errorf("%s: %d changes there, %d back", name, len(a.Facts), len(b.Facts))
	}
	for _, c := range a.Facts {
		if !slices.ContainsFunc(b.Facts, func(o diff.Change) bool {
			return o.What == c.What && o.Before == c.After && o.After == c.Before && slices.Contains(effects[c.Effect], o.Effect)
		}) {
			t.Errorf("%s: %+v has no opposite", name, c)
		}
	}
	turns := map[diff.Turn][]diff.Turn{
		diff.New: {diff.Fixed, diff.Lost}, diff.Fixed: {diff.New}, diff.Risen: {diff.Fallen}, diff.Fallen: {diff.Risen},
		diff.Lost: {diff.Known, diff.New}, diff.Known: {diff.Lost}, diff.Unchanged: {diff.Unchanged},
	}
	for _, v := range a.Findings {
		check, _, _ := strings.Cut(v.ID, "@")
		if !slices.ContainsFunc(b.Findings, func(o diff.Verdict) bool {
			return strings.HasPrefix(o.ID, check+"@") && slices.Contains(turns[v.Turn], o.Turn)
		}) {
			t.Errorf("%s: %+v has no opposite", name, v)
		}
	}
}
