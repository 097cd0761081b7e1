package catalog

import "strings"

// Floor is what one generation of cards, or of CUDA, asks of the NVIDIA driver.
type Floor struct {
	Key       string // "ada"; "12" of CUDA 12.x
	From      string // first driver version; "" unknown
	Until     string // last branch that still supports it; "" none
	Notes     string
	Confirmed bool // a recalled figure informs, and never decides a fail alone
	Source    string
}

func addDrivers(c *Catalog, rows []map[string]string) error {
	c.floors = map[string]Floor{}
	for _, r := range rows {
		c.floors[r["kind"]+" "+r["key"]] = Floor{
			Key: r["key"], From: r["from"], Until: r["until"], Notes: r["notes"], Confirmed: r["confidence"] == "confirmed", Source: r["source"],
		}
	}
	return nil
}

// DriverForArch is what an architecture ("ada") asks of the driver.
func (c *Catalog) DriverForArch(arch string) (Floor, bool) {
	f, ok := c.floors["arch "+strings.ToLower(arch)]
	return f, ok
}

// DriverForCUDA is the driver from which every program of a major CUDA version ("12") loads.
func (c *Catalog) DriverForCUDA(major string) (Floor, bool) {
	f, ok := c.floors["cuda "+major]
	return f, ok
}

// NeedsOpenModule says whether only the open kernel module drives an architecture.
func (c *Catalog) NeedsOpenModule(arch string) bool {
	_, ok := c.floors["open "+strings.ToLower(arch)]
	return ok
}

// VBIOSFamilies are the first parts ("95") that VBIOS versions of an architecture begin with; nil when not known.
func (c *Catalog) VBIOSFamilies(arch string) []string {
	return strings.Fields(c.floors["vbios "+strings.ToLower(arch)].From)
}

func addLaptops(c *Catalog, rows []map[string]string) error {
	c.laptops = make(map[string]string, len(rows))
	for _, r := range rows {
		c.laptops[r["device"]] = r["name"]
	}
	return nil
}

// LaptopGPU names the laptop model of a device id, four lower-case hex digits. Its rows say how far each is confirmed; a
// warning is all that may rest on them.
func (c *Catalog) LaptopGPU(device string) (name string, ok bool) {
	name, ok = c.laptops[device]
	return name, ok
}
