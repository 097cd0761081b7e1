//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/collect"
	"preflight/internal/fleet"
	"preflight/internal/rigsim"
)

// TestCutAnywhere cuts what a real sshd sent at many places and judges what is left: a healthy rig must not get a
// fault from it, a faulty one must not lose its faults to a pass, and neither may pass as a whole.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		spec rigsim.Spec
	}{
		{"healthy", rigsim.Healthy("healthy", 2)},
		{"bars of 256 MiB", rigsim.Spec{Name: "bars", Cards: 2, Faults: []rigsim.Kind{rigsim.ReBAROff}}},
		{"a narrow slot", rigsim.Spec{Name: "narrow", Cards: 2, Faults: []rigsim.Kind{rigsim.NarrowSlot}}},
		{"the driver of another version", rigsim.Spec{Name: "driver", Cards: 2, Faults: []rigsim.Kind{rigsim.DriverMismatch}}},
		{"faults of software", rigsim.Spec{Name: "software", Cards: 2, Faults: []rigsim.Kind{
			rigsim.NoToolkit, rigsim.TorchForeignNCCL, rigsim.LowMemlock, rigsim.PortBusy, rigsim.FewChannels,
		}}},
		{"a cramped container", rigsim.Spec{Name: "container", Cards: 2, Faults: []rigsim.Kind{rigsim.SmallShm, rigsim.TorchHidden, rigsim.PortEphemeral}}},
		{"faults of cards and links", rigsim.Spec{Name: "cards", Cards: 2, Faults: []rigsim.Kind{
			rigsim.RowRemap, rigsim.HotCard, rigsim.LowPowerLimit, rigsim.IOMMUFaults, rigsim.LinkErrors, rigsim.LegacyBoot, rigsim.PersistenceOff, rigsim.StaleCDI,
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, rig, dir := simulated(t, c.spec)
			s := StartSSHD(t, Options{Rig: dir})
			cl := newClient(t, s)
			sent := &logBuffer{}
			cl.edit, cl.tee = hasty, sent
			whole := cl.check(t, 30*time.Second, fleet.Options{}, cl.declared(rig, s, "root"))[0]
			must(t, whole.Err)
			stream := []byte(sent.String())
			nonce := string(bytes.Fields(stream[bytes.Index(stream, []byte("@@preflight ")):])[1])
			for _, at := range places(stream) {
				snap, err := collect.Parse(bytes.NewReader(stream[:at]), collect.Request{Nonce: nonce})
				if err != nil {
					continue // nothing to judge
				}
				if snap.Manifest.Cut == "" {
					t.Errorf("cut at byte %d of %d, and not marked", at, len(stream))
				}
				half := fleet.Judge(rig, snap, nil, nil)
				for _, d := range worseThanUnknown(whole.Findings, half.Findings) {
					t.Errorf("cut at byte %d of %d (%s): %s", at, len(stream), snap.Manifest.Cut, d)
				}
				if v := half.Judged().Verdict(); v == checks.Pass {
					t.Errorf("cut at byte %d of %d, and the rig passed", at, len(stream))
				}
			}
		})
	}
}

// places are the middle and the end of every frame, and some more by chance of size.
func places(stream []byte) []int {
	var out []int
	marker := []byte("\n@@preflight ")
	for at := 0; ; {
		i := bytes.Index(stream[at+1:], marker)
		if i < 0 {
			break
		}
		next := at + 1 + i
		out = append(out, at+(next-at)/2, next)
		at = next
	}
	for at := 1000; at < len(stream); at += len(stream) / 15 {
		out = append(out, at)
	}
	return out
}

// worseThanUnknown are verdicts of checks that a cut stream has and the whole one does not. Less may be known, never
// something else.
func worseThanUnknown(whole, half []checks.Finding) []string {
	verdict := func(list []checks.Finding, id string) checks.Verdict {
		var all []checks.Verdict
		for _, f := range list {
			if f.Check == id {
				all = append(all, f.Verdict)
			}
		}
		return checks.Worst(all...)
	}
	var out []string
	for _, id := range checks.IDs() {
		a, b := verdict(whole, id), verdict(half, id)
		if b == a || b == checks.Unknown {
			continue
		}
		for _, f := range half {
			if f.Check == id {
				out = append(out, fmt.Sprintf("%s is %s, of the whole stream %s: %s (%s)", id, b, a, f.Summary, f.Note))
				break
			}
		}
	}
	return out
}
