package catalog

import "testing"

func TestCUDAFor(t *testing.T) {
	c := MustLoad()
	for _, row := range []struct{ compute, first, last string }{
		{"12.0", "12.8", ""}, {"8.9", "11.0", ""}, {"7.0", "9.0", "12.9"}, {"7.5", "10.0", ""}, {"6.1", "8.0", "12.9"},
	} {
		if a, ok := c.CUDAFor(row.compute); !ok || a.First != row.first || a.Last != row.last {
			t.Errorf("%s: %+v", row.compute, a)
		}
	}
	if _, ok := c.CUDAFor("3.0"); ok {
		t.Error("3.0 has no row")
	}
	for _, g := range c.GPUs {
		if _, ok := c.CUDAFor(g.Compute); !ok && g.Compute >= "5" && g.Compute != "" {
			t.Errorf("%s: no toolkit for %s", g.Slug, g.Compute)
		}
	}
}
