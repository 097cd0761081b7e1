package checks

import (
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

// A card that was lost has no model; the others' are not "different" from it, nor does it pass as one of them.
func TestModelOfALostCard(t *testing.T) {
	known := func(bdf, id string) facts.Card {
		return facts.Card{Device: facts.Device{BDF: bdf, Product: id}, Slug: facts.Of("m"+id, "t")}
	}
	named := func(bdf, name string) facts.Card {
		return facts.Card{Device: facts.Device{BDF: bdf}, Name: facts.Of(name, "t")}
	}
	for name, row := range map[string]struct {
		cards []facts.Card
		want  Verdict
	}{
		"alike":                   {[]facts.Card{known("a", "2684"), known("b", "2684")}, Pass},
		"one lost":                {[]facts.Card{known("a", "2684"), {Device: facts.Device{BDF: "b"}}}, Unknown},
		"two models and one lost": {[]facts.Card{known("a", "2684"), known("c", "2204"), {Device: facts.Device{BDF: "b"}}}, Warn},
		"alike by name":           {[]facts.Card{named("a", "X1"), named("b", "X1")}, Pass},
		"different by name":       {[]facts.Card{named("a", "X1"), named("b", "X2")}, Warn},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideGPUModel(Subject{Rig: &inventory.Rig{}, Host: &facts.Host{}, Cards: row.cards})
			if len(got) != 1 || got[0].Verdict != row.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAddressOfALostHandle(t *testing.T) {
	for text, want := range map[string]string{
		"Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error":       "0000:0b:00.0",
		"Unable to determine the device handle for GPU2: 0000:81:00.0: Unknown Error":    "0000:81:00.0",
		"Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.":       "0000:0b:00.0",
		"Unable to determine the device handle for GPU00000000:0B:00.0: Unknown Error":   "0000:0b:00.0",
		"Unable to determine the device handle for gpu: Unknown Error, or anything else": "the card",
	} {
		if got := handleBDF(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
