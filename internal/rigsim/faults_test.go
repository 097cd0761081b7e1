package rigsim_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/probe"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// shell runs scripts on a built rig without SSH, with short deadlines where only the passing of time is waited for.
type shell struct{ collect.Shell }

func (s shell) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	script = bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 2 "), 1)
	script = bytes.ReplaceAll(script, []byte("    sleep 1\n    nvidia-smi"), []byte("    nvidia-smi"))
	return s.Shell.Run(ctx, script, stdout)
}

func (s shell) RunScript(ctx context.Context, script []byte, stdout io.Writer) error {
	_, err := s.Shell.Run(ctx, script, stdout)
	return err
}

// judge collects, probes and checks one rig.
func judge(ctx context.Context, rig rigsim.Rig, declared *inventory.Rig) ([]checks.Finding, error) {
	host := shell{collect.Shell{Env: rigsim.Env(rig.Root, rig.User)}}
	snap, err := collect.Collect(ctx, host, collect.Request{})
	if err != nil || snap.Manifest.Cut != "" {
		return nil, fmt.Errorf("collect: %v, cut %v", err, snap)
	}
	if err := probe.Run(ctx, host, facts.FromSnapshot(snap), snap, probe.Options{Engine: "nccl-tests", Limit: 6 * time.Second}); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	cat, err := catalog.Load()
	if err != nil {
		return nil, err
	}
	return checks.Run(declared, facts.FromSnapshot(snap), checks.PolicyFor(declared.Profile, *declared.Cards), cat), nil
}

// judgeAll judges several rigs at a time: most of the time of each is waiting.
func judgeAll(ctx context.Context, rigs []rigsim.Rig, inv *inventory.Inventory) ([][]checks.Finding, error) {
	out := make([][]checks.Finding, len(rigs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(6)
	for i, rig := range rigs {
		g.Go(func() error {
			findings, err := judge(ctx, rig, inv.Rigs[i])
			out[i] = findings
			if err != nil {
				return fmt.Errorf("%s: %w", rig.Name, err)
			}
			return nil
		})
	}
	return out, g.Wait()
}

// roots are the checks whose findings are wrong and are no consequence of another.
func roots(t *testing.T, findings []checks.Finding) []string {
	t.Helper()
	var out []string
	for _, f := range findings {
		if f.Verdict == checks.Pass || f.Verdict == checks.Skip {
			continue
		}
		cause := ""
		if f.Cause != nil {
			cause = " because of " + *f.Cause
		}
		t.Logf("%s %s: %s (%s)%s", f.Verdict, f.ID, f.Summary, f.Note, cause)
		if f.Cause == nil && f.Verdict != checks.Unknown && !slices.Contains(out, f.Check) {
			out = append(out, f.Check)
		}
	}
	return out
}

// memoryNeeded is what the rigs of a whole crossing take, bytes; about 0.7 GB as measured.
const memoryNeeded = 2 << 30

// memoryDir is a directory of the test's own, in memory where there is enough: a rig is thousands of small files.
func memoryDir(t *testing.T) string {
	t.Helper()
	var free syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &free); err != nil || uint64(free.Bavail)*uint64(free.Bsize) < memoryNeeded {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "rigsim-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestFaultsAreFound crosses every kind of fault with 2, 4 and 8 cards: the check that it is meant for finds it, and
// no other check finds a fault of its own. A healthy rig gives no finding at all.
func TestFaultsAreFound(t *testing.T) {
	counts := []int{2, 4, 8}
	if testing.Short() {
		counts = []int{4}
	}
	faults := append([]rigsim.Fault{{Kind: "healthy"}}, rigsim.Faults()...)
	var specs []rigsim.Spec
	for _, n := range counts {
		for _, f := range faults {
			s := rigsim.Healthy(fmt.Sprintf("%s-%d", f.Kind, n), n)
			if f.Checks != nil {
				s.Faults = []rigsim.Kind{f.Kind}
			}
			specs = append(specs, s)
		}
	}
	fleet, err := rigsim.Serve(t.Context(), memoryDir(t), specs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fleet.Close)
	inv, diags := inventory.Load(fleet.InventoryPath, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all, err := judgeAll(t.Context(), fleet.Rigs, inv)
	if err != nil {
		t.Fatal(err)
	}
	for i, rig := range fleet.Rigs {
		want, traces := faults[i%len(faults)].Checks, faults[i%len(faults)].Traces
		t.Run(rig.Name, func(t *testing.T) {
			findings := all[i]
			got := roots(t, findings)
			for _, id := range want {
				if !slices.Contains(got, id) {
					t.Errorf("%s did not find it", id)
				}
			}
			for _, id := range got {
				if !slices.Contains(want, id) && !slices.Contains(traces, id) {
					t.Errorf("%s found a fault that was not planted", id)
				}
			}
			for _, f := range findings {
				// Only the native helper measures copies, the rigs of this test have nccl-tests; and nobody asked for load.
				if want == nil && f.Verdict != checks.Pass && f.Verdict != checks.Skip && !slices.Contains([]string{"link.bandwidth", "burn-in.thermal", "burn-in.power", "burn-in.memory", "ddp.scaling"}, f.Check) {
					t.Errorf("%s %s on a healthy rig: %s", f.Verdict, f.ID, f.Summary)
				}
			}
		})
	}
}
