package facts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"preflight/internal/sample"
)

// A burn-in comes back from its snapshot with every sample; what is no burn-in is a gap with its reason.
func TestBurnInFromSnapshot(t *testing.T) {
	v := sample.NoValues()
	v[sample.Power] = 431.2
	var series sample.Series
	series.Add(sample.Item{Card: &sample.Card{At: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), BDF: "0000:01:00.0", Index: -1, Values: v}})
	raw, err := json.Marshal(BurnIn{Asked: 60, Begin: 10, End: 70, Ended: BurnDone, Cards: []BurnInCard{{BDF: "0000:01:00.0", Rounds: 3, First: 4096}}, Series: &series})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file []byte
		gap  string
	}{
		"whole":  {raw, ""},
		"broken": {[]byte(`{"series":{"schema":"x"}}`), "could not be read"},
		"none":   {nil, "no burn-in was run"},
		"cut":    {raw[:len(raw)/2], "could not be read"},
		"empty":  {[]byte(`{}`), `does not end as ""`},
		"no end": {[]byte(`{"ended":"well","end":20}`), `does not end as "well"`},
		"eons":   {[]byte(`{"ended":"done","begin":5,"end":1e300}`), "is not possible"},
		"before": {[]byte(`{"ended":"done","begin":-5,"end":20}`), "is not possible"},
		"twice":  {[]byte(`{"ended":"done","end":20,"cards":[{"bdf":"0000:01:00.0"},{"bdf":"0000:01:00.0"}]}`), "is there twice"},
		"less":   {[]byte(`{"ended":"done","end":20,"cards":[{"bdf":"0000:01:00.0","wrong":-7}]}`), "counts below zero"},
	} {
		s := &Snapshot{Files: map[string][]byte{}}
		if test.file != nil {
			s.Files[ProbeBurnInPath] = test.file
		}
		h := FromSnapshot(s)
		if test.gap != "" {
			if h.BurnIn != nil || !strings.Contains(h.Gaps[KindBurnIn], test.gap) {
				t.Errorf("%s: %+v, gap %q", name, h.BurnIn, h.Gaps[KindBurnIn])
			}
			continue
		}
		b := h.BurnIn
		if b == nil || !b.Ran() || b.Cards[0].First != 4096 || b.Source != "file:"+ProbeBurnInPath {
			t.Fatalf("%s: %+v", name, b)
		}
		if w, ok := b.Series.Cards[0].Values[0].Get(sample.Power); !ok || w != 431.2 {
			t.Errorf("%s: the sample is lost: %v", name, w)
		}
	}
}
