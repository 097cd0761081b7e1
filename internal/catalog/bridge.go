package catalog

// Bridge is a PCIe switch or port by vendor and device id.
type Bridge struct {
	ID     string // "10b5:8796"
	Vendor string
	Name   string
	Kind   string // switch, chipset-port, pch-root-port, cpu-root-port, nvswitch, switch-management, cpu-internal-…
	Lanes  int
	Gen    int
	Source string
}

func addBridges(c *Catalog, rows []map[string]string) error {
	c.Bridges = make(map[string]Bridge, len(rows))
	for _, r := range rows {
		c.Bridges[r["vendor_device"]] = Bridge{
			ID: r["vendor_device"], Vendor: r["vendor"], Name: r["name"], Kind: r["kind"],
			Lanes: integer(r["lanes"]), Gen: integer(r["pcie_gen"]), Source: r["source"],
		}
	}
	return nil
}

// Bridge finds a switch or port by its ids, four hex digits each.
func (c *Catalog) Bridge(vendor, device string) (Bridge, bool) {
	b, ok := c.Bridges[vendor+":"+device]
	return b, ok
}
