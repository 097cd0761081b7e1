package catalog

import "testing"

// The lines that are read for one processor are all that could be its own: each row of the table is found by its name,
// and by no other's.
func TestEveryProcessorOfTheTableIsFound(t *testing.T) {
	rows, err := table("cpu_models.csv", cpuModelsCSV)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]map[string]string{}
	for _, r := range rows {
		last[modelKey(r["name"])] = r
	}
	c := &Catalog{}
	const step = 7 // each takes half a millisecond
	for i := 0; i < len(rows); i += step {
		want := last[modelKey(rows[i]["name"])]
		got, ok := c.CPUModel(rows[i]["name"])
		if !ok || got.Name != want["name"] || got.Lanes != integer(want["pcie_lanes"]) || got.TDPWatts != number(want["tdp_w"]) {
			t.Errorf("%q: %v %+v", rows[i]["name"], ok, got)
		}
	}
	for _, none := range []string{"", "AMD", "Intel(R) Xeon(R) CPU", "AMD EPYC 99999", "\"\n,\""} {
		if got, ok := c.CPUModel(none); ok {
			t.Errorf("%q is %+v", none, got)
		}
	}
	if got, ok := c.CPUModel("Intel(R) Core(TM) i9-10900X CPU @ 3.70GHz"); !ok || got.Lanes != 48 {
		t.Errorf("%v %+v", ok, got)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := load(); err != nil {
			b.Fatal(err)
		}
	}
}
