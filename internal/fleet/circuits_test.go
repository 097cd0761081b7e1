package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/inventory"
)

// rigOn is a rig of two cards that draws some 1,100 W at the wall.
func rigOn(circuit string, amps float64) (*inventory.Rig, *facts.Host) {
	h := &facts.Host{Gaps: map[facts.Kind]string{}}
	for _, bdf := range []string{"0000:01:00.0", "0000:41:00.0"} {
		h.Cards = append(h.Cards, facts.Card{Device: facts.Device{BDF: bdf}, Index: facts.Of(len(h.Cards), "x"), PowerLimit: facts.Of(350.0, "x")})
	}
	h.CPU.LimitWatts, h.CPU.Sockets = facts.Of(200.0, "x"), facts.Of(1, "x")
	return &inventory.Rig{Name: circuit, Mains: &inventory.Mains{Volts: 230, Amps: amps, Circuits: 1, Shared: circuit}}, h
}

// Rigs of one circuit are under load together only as far as it bears them; others do not wait.
func TestCircuits(t *testing.T) {
	enters := func(c *circuits, rig *inventory.Rig, h *facts.Host) (func(), bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		release, err := c.enter(ctx, rig, h, nil)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return release, err == nil
	}
	for name, test := range map[string]struct {
		circuit string
		amps    float64
		blind   bool // nothing is known of the draw
		fit     int  // of three rigs
	}{
		"one at a time":           {"A", 8, false, 1},
		"two":                     {"A", 16, false, 2},
		"all":                     {"A", 32, false, 3},
		"more than it bears":      {"A", 3, false, 1},
		"draw unknown":            {"A", 32, true, 1},
		"no circuit is shared":    {"", 3, false, 3},
		"nothing, nothing shared": {"", 3, true, 3},
	} {
		c := &circuits{}
		rig, h := rigOn(test.circuit, test.amps)
		if test.blind {
			h.CPU = facts.CPU{}
		}
		var release []func()
		for range 3 {
			if r, ok := enters(c, rig, h); ok {
				release = append(release, r)
			}
		}
		if len(release) != test.fit {
			t.Errorf("%s: %d of 3 rigs are under load together, want %d", name, len(release), test.fit)
		}
		for _, r := range release {
			r()
		}
		if _, ok := enters(c, rig, h); !ok {
			t.Errorf("%s: what was given back is not free", name)
		}
	}
}
