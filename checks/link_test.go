package checks

import (
	"strings"
	"testing"
)

// An effect names a cause only where one follows from the other: not the fault of another card, and not a limit of the
// card itself.
func TestLink(t *testing.T) {
	made := func(v Verdict, code, subject string) Finding {
		check, _, _ := strings.Cut(code, "/")
		return Finding{ID: check + "@" + subject, Check: check, Subject: subject, Verdict: v, Remedy: code}
	}
	for _, row := range []struct {
		name          string
		cause, effect Finding
		want          bool
	}{
		{"a small BAR1 while Above 4G is off", made(Fail, "firmware.above-4g/off", "rig"), made(Fail, "firmware.resizable-bar/enable", "a"), true},
		{"a small BAR1 while another card got no address", made(Fail, "firmware.above-4g/unassigned", "b"), made(Fail, "firmware.resizable-bar/enable", "a"), true},
		{"a BAR1 that the VBIOS limits", made(Fail, "firmware.above-4g/off", "rig"), made(Fail, "firmware.resizable-bar/vbios", "a"), false},
		{"a BAR1 that the display mode limits", made(Fail, "firmware.above-4g/unassigned", "b"), made(Warn, "firmware.resizable-bar/display-mode", "a"), false},
		{"hot beside its neighbour", made(Fail, "chassis.slot-spacing/tight", "a+b"), made(Warn, "gpu.throttle/thermal", "b"), true},
		{"hot, and two others are tight", made(Fail, "chassis.slot-spacing/tight", "b+c"), made(Warn, "gpu.throttle/thermal", "a"), false},
		{"lost when its link broke", made(Fail, "pcie.errors/uncorrected", "a"), made(Fail, "gpu.health/off-bus", "a"), true},
		{"lost, and another link broke", made(Fail, "pcie.errors/uncorrected", "b"), made(Fail, "gpu.health/off-bus", "a"), false},
		{"lost, with three corrected errors", made(Warn, "pcie.errors/link", "a"), made(Fail, "gpu.health/off-bus", "a"), false},
		{"link errors of a slot that is at fault", made(Fail, "pcie.width/slot-fault", "a"), made(Warn, "pcie.errors/link", "a"), true},
		{"link errors beside another such slot", made(Fail, "pcie.width/slot-fault", "b"), made(Warn, "pcie.errors/link", "a"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			all := []Finding{row.cause, row.effect}
			link(all)
			if got := all[1].Cause != nil; got != row.want {
				t.Errorf("explained: %t, want %t", got, row.want)
			}
			if all[0].Cause != nil {
				t.Errorf("the cause is explained by %s", *all[0].Cause)
			}
		})
	}
}
