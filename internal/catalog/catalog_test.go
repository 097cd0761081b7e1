package catalog

import "testing"

func TestTablesLoadAndEveryRowHasASource(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range c.GPUs {
		if g.ID == "" || g.Slug == "" || g.Source == "" || g.Width == 0 || g.Gen == 0 {
			t.Errorf("gpu row %q (%s): id, slug, source, width and generation are required", g.Name, g.ID)
		}
	}
	for _, p := range c.CPUs {
		if p.Source == "" || p.Family == "" {
			t.Errorf("cpu row %s: no source or family", p.Match)
		}
	}
	if len(c.GPUs) < 140 || len(c.CPUs) < 70 || len(c.Bridges) < 400 {
		t.Errorf("tables shrank: %d cards, %d cpu families, %d bridges", len(c.GPUs), len(c.CPUs), len(c.Bridges))
	}
}

func TestGPU(t *testing.T) {
	c := MustLoad()
	for _, tc := range []struct {
		name, device string
		mib          int64
		want         string
	}{
		{"factory 4090", "2684", 24564, "rtx-4090"},
		{"upper case id", "2B85", 32607, "rtx-5090"},
		{"48 GB conversion", "2684", 49140, "rtx-4090-48gb-mod"},
		{"older driver's figure", "2204", 24268, "rtx-3090"},
		{"memory unknown: the factory row", "2684", 0, "rtx-4090"},
	} {
		g, ok := c.GPU(tc.device, tc.mib)
		if !ok || g.Slug != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, g.Slug, tc.want)
		}
	}
	if _, ok := c.GPU("ffff", 1); ok {
		t.Error("an unknown id must not be found")
	}
}

func TestCPU(t *testing.T) {
	c := MustLoad()
	for _, tc := range []struct {
		model  string
		usable int
	}{
		{"AMD EPYC 7542 32-Core Processor", 128},
		{"AMD Ryzen Threadripper PRO 5955WX 16-Cores", 120},
		{"AMD Ryzen 9 7950X 16-Core Processor", 16},
		{"13th Gen Intel(R) Core(TM) i9-13900K", 16},
		{"Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz", 48},
	} {
		cpu, ok := c.CPU(tc.model)
		if !ok || cpu.Usable != tc.usable {
			t.Errorf("%s: got %d usable lanes, want %d", tc.model, cpu.Usable, tc.usable)
		}
	}
	if _, ok := c.CPU("Some future CPU"); ok {
		t.Error("an unknown processor must not match a family")
	}
	if m, ok := c.CPUModel("Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz"); !ok || m.TDPWatts != 85 {
		t.Errorf("exact model: %+v %v", m, ok)
	}
}
