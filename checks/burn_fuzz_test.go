package checks

import (
	"encoding/json"
	"testing"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// Whatever a saved burn-in or scaling test says, the checks and the figures take it without a panic, and every check still has
// a finding.
func FuzzSavedLoad(f *testing.F) {
	rig, h := goodRig(2), goodHost(2)
	burn(120, event("xid", "0000:21:00.0", 31))(rig, h)
	trained(104, 192, 106, nil)(rig, h)
	for _, v := range []any{h.BurnIn, h.DDP} {
		raw, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, s := range []string{
		`{"begin":10,"end":5,"ended":"done"}`, `{"begin":-1,"end":1e300,"ended":"too-hot","text":":::"}`, `{"ended":"","cards":[{}]}`,
		`{"begin":0,"end":9,"ended":"done","series":{"schema":"preflight/samples/v1","start":"2026-12-01T10:00:00Z","cards":[{"bdf":"0000:01:00.0","steps_ms":[],"tenths":{}}],"events":[{"at_ms":-5,"kind":"xid","text":""}]}}`,
		`{"ended":"done","stages":[{"cards":[],"step_ms":0}]}`, `{"ended":"done","stages":[{"cards":["a","a"],"step_ms":-1}],"observed":{"command":"","seconds":-1}}`,
		`{"ended":"done","stages":[{"cards":["0000:01:00.0"],"step_ms":1e308},{"cards":["0000:01:00.0","0000:21:00.0"],"step_ms":5e-324}]}`,
	} {
		f.Add([]byte(s))
	}
	cat := catalog.MustLoad()
	f.Fuzz(func(t *testing.T, raw []byte) {
		rig, h := goodRig(2), goodHost(2)
		read := facts.FromSnapshot(&facts.Snapshot{Files: map[string][]byte{facts.ProbeBurnInPath: raw, facts.ProbeDDPPath: raw}})
		h.BurnIn, h.DDP = read.BurnIn, read.DDP
		seen := map[string]bool{}
		for _, x := range Run(rig, h, PolicyFor(nil, 2), cat) {
			seen[x.Check] = true
			if x.Summary == "" {
				t.Errorf("%s says nothing", x.ID)
			}
		}
		for _, id := range IDs() {
			if !seen[id] {
				t.Errorf("%s has no finding", id)
			}
		}
		figures := FiguresOf(rig, h, PolicyFor(nil, 2), cat)
		if _, err := json.Marshal(figures); err != nil {
			t.Error(err)
		}
	})
}
