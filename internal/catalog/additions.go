package catalog

// Additions are rows that a user declares.
type Additions struct {
	GPUs []GPU
	CPUs []CPU
}

// With returns a catalogue in which the given rows stand before the embedded ones: a user's card wins for its device
// id and takes the place of rows of the same slug, a user's processor wins for every name that it matches.
func (c *Catalog) With(a Additions) *Catalog {
	if len(a.GPUs) == 0 && len(a.CPUs) == 0 {
		return c
	}
	out := *c
	replaced := map[string]bool{}
	for _, g := range a.GPUs {
		replaced[g.Slug] = true
	}
	out.GPUs = append([]GPU{}, a.GPUs...)
	for _, g := range c.GPUs {
		if !replaced[g.Slug] {
			out.GPUs = append(out.GPUs, g)
		}
	}
	out.CPUs = append(append([]CPU{}, a.CPUs...), c.CPUs...)
	return &out
}
