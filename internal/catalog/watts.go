package catalog

// Watts is the draw of a component at its output side.
type Watts struct {
	Key                  string
	Min, Typical, Max    float64
	Notes, Source, Trust string
}

func addWatts(c *Catalog, rows []map[string]string) error {
	c.Watts = map[string]Watts{}
	for _, r := range rows {
		if r["category"] != "component" {
			continue
		}
		c.Watts[r["key"]] = Watts{
			Key: r["key"], Min: number(r["min"]), Typical: number(r["typical"]), Max: number(r["max"]),
			Notes: r["notes"], Source: r["source"], Trust: r["confidence"],
		}
	}
	return nil
}
