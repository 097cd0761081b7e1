package fleet

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"preflight/checks"
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/probe"
	"preflight/internal/remote"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// overSSH reaches simulated rigs as the program does.
type overSSH struct{ *remote.Host }

func (h overSSH) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	a, err := h.Host.Run(ctx, script, stdout)
	return collect.Access{Root: a.Root, Why: a.Why}, err
}

// TestReplayGivesTheSameFindings runs rigs live over SSH, saves what was read, and judges the archives again.
func TestReplayGivesTheSameFindings(t *testing.T) {
	four, user := rigsim.Healthy("four", 4), rigsim.Healthy("user", 2)
	four.Faults = []rigsim.Kind{rigsim.NarrowSlot, rigsim.NCCLWrong}
	user.User = true
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), rigsim.Healthy("two", 2), four, user)
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	inv, diags := inventory.Load(rigs.InventoryPath, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	d := remote.New(remote.Options{Home: t.TempDir(), ConfigFiles: []string{}})
	defer d.Close()
	open := func(ctx context.Context, rig *inventory.Rig) (Host, error) {
		h, err := d.Dial(ctx, rig)
		if err != nil {
			return nil, err
		}
		return overSSH{h}, nil
	}
	archives := map[string]*bytes.Buffer{}
	for _, r := range inv.Rigs {
		archives[r.Name] = &bytes.Buffer{}
	}
	results := Run(t.Context(), inv.Rigs, open, Options{
		Probe: true, ProbeOpt: probe.Options{Engine: "nccl-tests", Limit: 20 * time.Second}, Tool: "test",
		Save: func(rig *inventory.Rig, s *facts.Snapshot) error { return facts.Save(archives[rig.Name], s) },
	})
	for _, live := range results {
		if live.Err != nil {
			t.Errorf("%s: %v", live.Rig.Name, live.Err)
			continue
		}
		snap, err := facts.Load(archives[live.Rig.Name])
		if err != nil {
			t.Fatal(err)
		}
		again := Judge(live.Rig, snap, nil, nil)
		if diff := cmp.Diff(live.Findings, again.Findings); diff != "" {
			t.Errorf("%s: the archive is judged differently:\n%s", live.Rig.Name, diff)
		}
		if len(live.Host.NCCL) == 0 || len(live.Host.Load) == 0 {
			t.Errorf("%s: the probe left nothing: %+v", live.Rig.Name, live.Host.Gaps)
		}
	}
}

// TestADeadRigDoesNotStopTheOthers and an interrupted run keeps what it has.
func TestADeadRigDoesNotStopTheOthers(t *testing.T) {
	rigs := []*inventory.Rig{{Name: "dead"}, {Name: "late"}}
	open := func(ctx context.Context, rig *inventory.Rig) (Host, error) {
		if rig.Name == "dead" {
			return nil, &remote.Error{Rig: rig.Name, Phase: remote.PhaseConnect, Summary: "refused"}
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for _, r := range Run(ctx, rigs, open, Options{Parallel: 2}) {
		if r.Err == nil || r.Host != nil || !r.Judged().Unreachable {
			t.Errorf("%s: %+v", r.Rig.Name, r)
		}
	}
}

// cutting is a host on which the user presses Ctrl-C as soon as a probe begins.
type cutting struct {
	collect.Shell
	cancel context.CancelFunc
}

func (c cutting) Close() error { return nil }

func (c cutting) Talk(ctx context.Context, _ []byte, _ func(io.WriteCloser, io.Reader) error) error {
	c.cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A measurement that the user cut short says nothing about the rig: it must not become a hang.
func TestInterruptedProbeIsNoFault(t *testing.T) {
	dir := t.TempDir()
	if err := rigsim.Build(dir, rigsim.Healthy("two", 2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	open := func(context.Context, *inventory.Rig) (Host, error) {
		return cutting{collect.Shell{Env: rigsim.Env(dir, "root")}, cancel}, nil
	}
	cards := 2
	r := Run(ctx, []*inventory.Rig{{Name: "two", Cards: &cards}}, open, Options{Probe: true, ProbeOpt: probe.Options{AllReduce: true, Links: true}})[0]
	if r.Err == nil || len(r.Findings) == 0 {
		t.Fatalf("%v, %d findings", r.Err, len(r.Findings))
	}
	for _, f := range r.Findings {
		if (f.Check == "nccl.all-reduce" || f.Check == "link.bandwidth") && f.Verdict != checks.Unknown {
			t.Errorf("%s %s: %s", f.Verdict, f.ID, f.Summary)
		}
	}
}

// Progress says of a rig what the report will: only what the run looks at counts.
func TestProgressTellsWhatTheRunLooksAt(t *testing.T) {
	dir := t.TempDir()
	spec := rigsim.Healthy("two", 2)
	spec.Faults = []rigsim.Kind{rigsim.ReBAROff}
	if err := rigsim.Build(dir, spec); err != nil {
		t.Fatal(err)
	}
	open := func(context.Context, *inventory.Rig) (Host, error) {
		return cutting{collect.Shell{Env: rigsim.Env(dir, "root")}, func() {}}, nil // nothing is measured: it is not cut
	}
	cards := 2
	for only, want := range map[string]checks.Verdict{"firmware": checks.Fail, "pcie.width": checks.Pass} {
		var told checks.Verdict
		Run(t.Context(), []*inventory.Rig{{Name: "two", Cards: &cards}}, open, Options{
			Select: checks.Selection{Only: []string{only}},
			Events: func(e Event) {
				if e.Phase == Done {
					told = e.Verdict
				}
			},
		})
		if told != want {
			t.Errorf("only %s: %s, want %s", only, told, want)
		}
	}
}
