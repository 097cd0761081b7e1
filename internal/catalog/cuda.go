package catalog

import "strings"

// CUDAArch says which CUDA toolkits make code for a compute capability.
type CUDAArch struct {
	Compute   string // "12", or "7.0" where a minor version has a row of its own
	First     string // first toolkit, "12.8"
	Last      string // last toolkit; "" still made
	Notes     string
	Confirmed bool // a recalled figure never decides a fail alone
	Source    string
}

func addCUDAArchs(c *Catalog, rows []map[string]string) error {
	c.toolkits = map[string]CUDAArch{}
	for _, r := range rows {
		c.toolkits[r["compute"]] = CUDAArch{
			Compute: r["compute"], First: r["first_cuda"], Last: r["last_cuda"], Notes: r["notes"], Confirmed: r["confidence"] == "confirmed", Source: r["source"],
		}
	}
	return nil
}

// CUDAFor finds the toolkits for a compute capability ("8.9"): its own row, else that of its major version.
func (c *Catalog) CUDAFor(compute string) (CUDAArch, bool) {
	if a, ok := c.toolkits[compute]; ok {
		return a, true
	}
	major, _, _ := strings.Cut(compute, ".")
	a, ok := c.toolkits[major]
	return a, ok
}
