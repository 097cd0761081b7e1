package catalog

import (
	"fmt"
	"sort"
	"strings"
)

// PCIIDs writes the catalogue's names in the format of the pci.ids database (vendor lines, indented device lines),
// for libraries that read names from there.
func (c *Catalog) PCIIDs() string {
	vendors := map[string]string{"10de": "NVIDIA Corporation"}
	devices := map[string]map[string]string{"10de": {}}
	for _, g := range c.GPUs {
		if devices["10de"][g.ID] == "" {
			devices["10de"][g.ID] = g.Name
		}
	}
	for id, b := range c.Bridges {
		v, d, _ := strings.Cut(id, ":")
		if len(v) != 4 || len(d) != 4 {
			continue
		}
		if devices[v] == nil {
			devices[v], vendors[v] = map[string]string{}, b.Vendor
		}
		devices[v][d] = strings.Join(strings.Fields(b.Name), " ")
	}
	var out strings.Builder
	for _, v := range sortedKeys(vendors) {
		fmt.Fprintf(&out, "%s  %s\n", v, vendors[v])
		for _, d := range sortedKeys(devices[v]) {
			fmt.Fprintf(&out, "\t%s  %s\n", d, devices[v][d])
		}
	}
	out.WriteString("C 03  Display controller\n\t00  VGA compatible controller\nC 06  Bridge\n\t04  PCI bridge\n")
	return out.String()
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
