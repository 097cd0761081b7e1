package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"preflight/internal/facts"
	"preflight/inventory"
)

func host(cards ...string) *facts.Host {
	h := &facts.Host{}
	for i := 0; i+1 < len(cards); i += 2 {
		h.Cards = append(h.Cards, facts.Card{Device: facts.Device{BDF: cards[i]}, ID: facts.Of(cards[i+1], "t")})
	}
	return h
}

func rigAt(cards ...string) *inventory.Rig {
	r := &inventory.Rig{Name: "node-a", Chassis: &inventory.Chassis{}}
	for i, c := range cards {
		r.Chassis.Slots = append(r.Chassis.Slots, inventory.Slot{Position: 1 + 4*i, Card: c})
	}
	return r
}

func TestMoved(t *testing.T) {
	rig := rigAt("0000:41:00.0", "0000:81:00.0")
	for name, tc := range map[string]struct {
		before, now *facts.Host
		want        map[string]string
		refused     bool
	}{
		"two cards traded places, by identity": {host("0000:41:00.0", "aa", "0000:81:00.0", "bb"), host("0000:41:00.0", "bb", "0000:81:00.0", "aa"), map[string]string{"0000:41:00.0": "0000:81:00.0", "0000:81:00.0": "0000:41:00.0"}, false},
		"shifted by one bus, by order":         {nil, host("0000:42:00.0", "aa", "0000:82:00.0", "bb"), map[string]string{"0000:41:00.0": "0000:42:00.0", "0000:81:00.0": "0000:82:00.0"}, false},
		"nothing moved":                        {nil, host("0000:41:00.0", "aa", "0000:81:00.0", "bb"), map[string]string{}, false},
		"a card is missing, no baseline":       {nil, host("0000:42:00.0", "aa"), nil, true},
	} {
		got, _, err := Moved(rig, tc.before, tc.now)
		if (err != nil) != tc.refused || (err == nil && !cmp.Equal(got, tc.want)) {
			t.Errorf("%s: got %v %v, want %v", name, got, err, tc.want)
		}
	}
}
