package catalog

import (
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T, name string) Page {
	t.Helper()
	all, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no table %s", name)
	return Page{}
}

func TestFind(t *testing.T) {
	for _, row := range []struct {
		name, table, query, want string // want: the first key of every row, joined
	}{
		{"slug", "gpu", "rtx-4090", "rtx-4090"},
		{"device id finds every memory variant", "gpu", "10de:2684", "rtx-4090 rtx-4090-48gb-mod"},
		{"device id alone", "gpu", "2B85", "rtx-5090"},
		{"words of a name", "gpu", "4090 d", "rtx-4090-d"},
		{"a processor as the kernel prints it", "cpu", "AMD EPYC 7542 32-Core Processor", "EPYC 7002"},
		{"a switch by its ids", "switch", "10b5:8796", "10b5:8796"},
		{"an Xid", "xid", "79", "79"},
		{"nothing of the kind", "gpu", "voodoo 2", ""},
		{"nothing asked", "gpu", " ", ""},
	} {
		p := page(t, row.table)
		var got []string
		for _, r := range p.Find(row.query) {
			got = append(got, r[p.Keys[0]])
		}
		if s := strings.Join(got, " "); s != row.want && !strings.HasPrefix(s, row.want+" ") || (s == "") != (row.want == "") {
			t.Errorf("%s: %q, want %q", row.name, s, row.want)
		}
	}
}

// Whoever adds a row to a table must say where it comes from, and how far it can be trusted.
func TestEveryRowHasASource(t *testing.T) {
	all, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for i, r := range p.Rows {
			if r["source"] == "" || r["confidence"] == "" {
				t.Errorf("%s, line %d (%s): source and confidence are required", p.Name, i+2, r[p.Keys[0]])
			}
		}
	}
}

// A new line in gpus.csv or cpus.csv is all that a new card or processor needs.
func TestALineIsEnough(t *testing.T) {
	head := strings.SplitN(string(gpusCSV), "\n", 2)[0]
	columns := strings.Split(head, ",")
	cells := map[string]string{"pci_device_id": "10de:fffe", "name": "GeForce RTX 9090", "slug": "rtx-9090", "memory_mib": "98304", "tdp_w": "700", "pcie_gen": "6", "pcie_width": "16", "confidence": "recalled", "source": "test"}
	var line []string
	for _, c := range columns {
		line = append(line, cells[c])
	}
	rows, err := table("gpus.csv", []byte(head+"\n"+strings.Join(line, ",")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := &Catalog{}
	if err := addGPUs(c, rows); err != nil {
		t.Fatal(err)
	}
	if g, ok := c.GPU("fffe", 98304); !ok || g.Slug != "rtx-9090" || g.Gen != 6 || g.Confirmed["tdp"] {
		t.Errorf("%+v", g)
	}
}

func TestDeclaredRowsWin(t *testing.T) {
	a := Additions{
		GPUs: []GPU{{Slug: "rtx-4090", ID: "2684", Name: "GeForce RTX 4090", MemoryMiB: 24564, TDPWatts: 400, Source: "measured"}, {Slug: "mine", ID: "fffd", Source: "measured"}},
		CPUs: []CPU{{Family: "Engineering sample", Match: regexp.MustCompile(`AMD Eng Sample`), Usable: 96, Source: "board manual"}},
	}
	c := MustLoad().With(a)
	if g, _ := c.GPU("2684", 24564); g.TDPWatts != 400 {
		t.Errorf("the declared 4090 has %g W", g.TDPWatts)
	}
	if g, _ := c.GPU("2684", 49140); g.Slug != "rtx-4090-48gb-mod" {
		t.Errorf("another slug of the same id is gone: %s", g.Slug)
	}
	if cpu, ok := c.CPU("AMD Eng Sample: 100-000000314-04"); !ok || cpu.Usable != 96 {
		t.Errorf("%+v", cpu)
	}
	p := page(t, "gpu")
	before := len(p.Rows)
	p.Add(a, "rigs.hcl")
	if rows := p.Find("rtx-4090"); len(rows) != 1 || rows[0]["tdp_w"] != "400" || rows[0]["confidence"] != "declared in rigs.hcl" {
		t.Errorf("%v", rows)
	}
	if len(p.Rows) != before+1 {
		t.Errorf("%d rows of %d", len(p.Rows), before)
	}
	if q := page(t, "gpu"); len(q.Rows) != before {
		t.Error("the embedded table changed")
	}
}
