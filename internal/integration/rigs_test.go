//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/probe"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// simulated builds a rig, serves it by the simulator's own SSH server, and gives how it is declared, and its directory
// for a chroot behind a real sshd.
func simulated(t *testing.T, spec rigsim.Spec) (*rigsim.Fleet, *inventory.Rig, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a host of its own needs root, for its chroot and namespaces")
	}
	f, err := rigsim.Serve(t.Context(), t.TempDir(), spec)
	must(t, err)
	t.Cleanup(f.Close)
	inv, diags := inventory.Load(f.InventoryPath, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	dir := f.Rigs[0].Root
	if spec.User { // the stubs keep their state in the rig's files, as root behind one server and as a user behind the other
		must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeSymlink != 0 {
				return err
			}
			info, err := d.Info()
			if err != nil || info.Mode().Perm() == 0 { // root's alone
				return err
			}
			return os.Chmod(path, info.Mode().Perm()|0o022)
		}))
	}
	return f, inv.Rigs[0], dir
}

// declared is the simulator's declaration of a rig, with the address of a real sshd.
func (c *client) declared(rig *inventory.Rig, s *server, user string) *inventory.Rig {
	r := *rig
	r.Address, r.SSH = c.rig(s, user).Address, c.rig(s, user).SSH
	return &r
}

// summary is what must not depend on the server: one line a finding.
func summary(findings []checks.Finding) []string {
	var out []string
	for _, f := range findings {
		cause := ""
		if f.Cause != nil {
			cause = *f.Cause
		}
		out = append(out, fmt.Sprintf("%s %s | %s | %s | %s", f.Verdict, f.ID, f.Summary, cause, f.Remedy))
	}
	slices.Sort(out)
	return out
}

// TestRigs runs the shipped collector and probe over a real sshd in a chroot with busybox, and wants the findings of
// the same rig behind the simulator's server.
func TestRigs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spec   rigsim.Spec
		faults []string // the checks that must fail or warn by themselves
	}{
		{"healthy 2 cards, root", rigsim.Healthy("two", 2), nil},
		{"faulty 4 cards, root", rigsim.Spec{Name: "four", Cards: 4, Faults: []rigsim.Kind{rigsim.ReBAROff, rigsim.LowRAM}}, []string{"firmware.resizable-bar", "ram.per-card"}},
		{"faulty 8 cards, root", rigsim.Spec{Name: "eight", Cards: 8, Faults: []rigsim.Kind{rigsim.NarrowSlot}}, []string{"pcie.width"}},
		{"healthy 4 cards, not root", rigsim.Spec{Name: "plain", Cards: 4, User: true}, nil},
		{"faulty 4 cards, not root", rigsim.Spec{Name: "plain-faulty", Cards: 4, User: true, Faults: []rigsim.Kind{rigsim.ReBAROff, rigsim.LowRAM}}, []string{"firmware.resizable-bar", "ram.per-card"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sim, rig, dir := simulated(t, c.spec)
			user := sim.Rigs[0].User
			s := StartSSHD(t, Options{Rig: dir})
			cl := newClient(t, s)
			o := fleet.Options{Probe: true, ProbeOpt: probe.Options{Engine: "nccl-tests", Limit: 15 * time.Second}}
			over := cl.check(t, 60*time.Second, o, cl.declared(rig, s, user))[0]
			must(t, over.Err)
			if cut := over.Snapshot.Manifest.Cut; cut != "" {
				t.Fatalf("cut: %s", cut)
			}
			here := cl.besides(t, sim, o, rig)
			must(t, here.Err)
			for _, d := range difference(summary(here.Findings), summary(over.Findings)) {
				t.Errorf("%s", d)
			}
			for _, f := range over.Findings {
				own := f.Cause == nil && (f.Verdict == checks.Fail || f.Verdict == checks.Warn)
				if own && !slices.Contains(c.faults, f.Check) && !slices.Contains(traces(c.spec.Faults), f.Check) {
					t.Errorf("nobody planted this: %s %s: %s", f.Verdict, f.ID, f.Summary)
				}
			}
			for _, id := range c.faults {
				if !slices.ContainsFunc(over.Findings, func(f checks.Finding) bool { return f.Check == id && f.Verdict == checks.Fail }) {
					t.Errorf("%s did not find its fault", id)
				}
			}
			if name := "cmd/dmesg.txt"; !bytes.Equal(over.Snapshot.Files[name], here.Snapshot.Files[name]) {
				t.Errorf("%s is not the rig's: %v", name, difference(strings.Split(string(here.Snapshot.Files[name]), "\n"), strings.Split(string(over.Snapshot.Files[name]), "\n")))
			}
			if left := s.leftovers(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if c.spec.User {
				saysWhatNeedsRoot(t, over)
			}
		})
	}
}

// besides checks the rig behind the simulator's server.
func (c *client) besides(t *testing.T, sim *rigsim.Fleet, o fleet.Options, rig *inventory.Rig) fleet.Result {
	t.Helper()
	aside := *c
	aside.o.KnownHosts, aside.simulator = sim.KnownHosts, true
	if _, port, err := net.SplitHostPort(sim.Rigs[0].Addr); err != nil || fmt.Sprint(rig.SSH.Port) != port {
		t.Fatalf("the simulator's inventory names port %d, not %s", rig.SSH.Port, sim.Rigs[0].Addr)
	}
	return aside.check(t, 60*time.Second, o, rig)[0]
}

// difference lists the lines that stand in one list only.
func difference(want, got []string) []string {
	var out []string
	for _, l := range want {
		if !slices.Contains(got, l) {
			out = append(out, "missing: "+l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			out = append(out, "surplus: "+l)
		}
	}
	return out
}

// saysWhatNeedsRoot: a user's run says why it had no root and what stays unseen without, and does not guess it.
func saysWhatNeedsRoot(t *testing.T, r fleet.Result) {
	t.Helper()
	m := r.Snapshot.Manifest
	if m.UID != 1000 || m.Root != "none" || !strings.Contains(m.RootWhy, "a password is required") {
		t.Errorf("uid %d, root %q because %q", m.UID, m.Root, m.RootWhy)
	}
	for _, name := range []string{"sys/firmware/dmi/tables/DMI", "cmd/dmesg.txt"} {
		if it, _ := r.Snapshot.Item(name); it.Status != facts.StatusDenied {
			t.Errorf("%s: %+v, want denied", name, it)
		}
	}
	for _, kind := range []facts.Kind{facts.KindConfig, facts.KindSMBIOS, facts.KindIOMem, facts.KindLog} {
		if gap := r.Host.Gaps[kind]; !strings.Contains(gap, "root") {
			t.Errorf("gap of %s: %q does not say that root is needed", kind, gap)
		}
	}
	undeclared := *r.Rig // then the slots would have to come from SMBIOS
	undeclared.Chassis = nil
	for _, f := range fleet.Judge(&undeclared, r.Snapshot, nil, nil).Findings {
		if f.Check == "chassis.slot-spacing" && f.Verdict != checks.Unknown {
			t.Errorf("slots that nobody could see: %s, want unknown: %s", f.Verdict, f.Summary)
		}
	}
}

// TestSavedSnapshot: what a real sshd gave is judged the same when it is read from the archive.
func TestSavedSnapshot(t *testing.T) {
	t.Parallel()
	sim, rig, dir := simulated(t, rigsim.Spec{Name: "kept", Cards: 2, Faults: []rigsim.Kind{rigsim.ReBAROff}})
	s := StartSSHD(t, Options{Rig: dir})
	cl := newClient(t, s)
	path := filepath.Join(t.TempDir(), "kept.tar.gz")
	save := func(_ *inventory.Rig, snap *facts.Snapshot) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return facts.Save(f, snap)
	}
	r := cl.declared(rig, s, sim.Rigs[0].User)
	live := cl.check(t, 40*time.Second, fleet.Options{Save: save}, r)[0]
	must(t, live.Err)
	f, err := os.Open(path)
	must(t, err)
	defer func() { _ = f.Close() }()
	snap, err := facts.Load(f)
	must(t, err)
	for _, d := range difference(summary(live.Findings), summary(fleet.Judge(r, snap, nil, nil).Findings)) {
		t.Error(d)
	}
}

// traces are the checks that planted faults touch beside those that they are meant for.
func traces(planted []rigsim.Kind) []string {
	var out []string
	for _, f := range rigsim.Faults() {
		if slices.Contains(planted, f.Kind) {
			out = append(out, f.Traces...)
		}
	}
	return out
}
