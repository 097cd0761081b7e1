package main

import (
	"slices"
	"testing"

	"preflight/internal/rigsim"
)

// A demo names the probe without which a planted fault does not show, once.
func TestDemoNamesTheProbe(t *testing.T) {
	check, burn, ddp := "check -i x", "probe burn-in -i x --duration quick", "probe ddp -i x"
	for _, test := range []struct {
		faults []rigsim.Kind
		want   []string
	}{
		{nil, []string{check}},
		{[]rigsim.Kind{rigsim.NarrowSlot}, []string{check}},
		{[]rigsim.Kind{"burn-hot", "burn-bits"}, []string{check, burn}},
		{[]rigsim.Kind{"ddp-slow", "burn-lost"}, []string{check, ddp, burn}},
	} {
		spec := rigsim.Healthy("rig", 2)
		spec.Faults = test.faults
		if got := toTry([]rigsim.Spec{spec}, "x"); !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, want %q", test.faults, got, test.want)
		}
	}
}
