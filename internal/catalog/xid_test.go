package catalog

import (
	"strings"
	"testing"
)

func TestXids(t *testing.T) {
	c := MustLoad()
	for _, x := range c.Xids() {
		if x.Name == "" || x.Cause == "" || x.Action == "" || x.Part == "" || x.Source == "" || (x.Trust != "confirmed" && x.Trust != "recalled") {
			t.Errorf("Xid %d: name, part, cause, action, confidence and source are required", x.Number)
		}
	}
	for _, row := range []struct {
		name     string
		number   int
		severity string
		after    int
		echo     bool
	}{
		{"fallen off the bus", 79, "fail", 62, false},
		{"a channel removed after an NVLink error", 45, "app", 149, true},
		{"a channel removed again", 45, "app", 45, false},
		{"firmware that cannot answer from off the bus", 119, "reset", 79, true},
		{"firmware after a page fault", 119, "reset", 31, false},
		{"the recovery action", 154, "text", 62, true},
	} {
		x, ok := c.Xid(row.number)
		if !ok || x.Severity != row.severity || x.Echoes(row.after) != row.echo {
			t.Errorf("%s: %+v, echo of %d: %v", row.name, x, row.after, x.Echoes(row.after))
		}
	}
	if _, ok := c.Xid(9999); ok {
		t.Error("9999 is no Xid")
	}
	if err := addXids(&Catalog{}, []map[string]string{{"xid": "1", "severity": "dire"}}); err == nil || !strings.Contains(err.Error(), "dire") {
		t.Errorf("an unknown severity was taken: %v", err)
	}
}

func TestDriverFloors(t *testing.T) {
	c := MustLoad()
	if f, ok := c.DriverForCUDA("12"); !ok || f.From != "525.60.13" || !f.Confirmed {
		t.Errorf("CUDA 12: %+v", f)
	}
	if f, ok := c.DriverForArch("Ada"); !ok || f.Confirmed || f.From == "" {
		t.Errorf("Ada: %+v", f)
	}
	if !c.NeedsOpenModule("blackwell") || c.NeedsOpenModule("ada") {
		t.Error("only Blackwell needs the open module")
	}
	for _, g := range c.GPUs {
		if _, ok := c.DriverForArch(g.Arch); !ok {
			t.Errorf("%s: no driver floor for %q", g.Slug, g.Arch)
		}
		if len(c.VBIOSFamilies(g.Arch)) == 0 {
			t.Errorf("%s: no VBIOS family for %q", g.Slug, g.Arch)
		}
	}
	for key, f := range c.floors {
		if f.Source == "" {
			t.Errorf("%s has no source", key)
		}
	}
}

func TestLaptopGPUs(t *testing.T) {
	c := MustLoad()
	if name, ok := c.LaptopGPU("2757"); !ok || name != "GeForce RTX 4090 Laptop GPU" {
		t.Errorf("2757: %q", name)
	}
	for _, g := range c.GPUs {
		if name, ok := c.LaptopGPU(g.ID); ok && g.Form != "mobile" {
			t.Errorf("%s is a desktop card and %s", g.Slug, name)
		}
	}
}
