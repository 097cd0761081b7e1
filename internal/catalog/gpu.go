package catalog

import (
	"sort"
	"strings"
)

// GPU is one model of card. A zero figure is unknown. Confirmed names the figures that were seen in a public
// source; any other figure is recalled and may inform a remark, never decide a fail alone.
type GPU struct {
	ID          string // PCI device id, four lower-case hex digits
	Name        string
	Slug        string
	Arch        string
	Compute     string
	MemoryMiB   int64 // as drivers since R510 print it
	MemoryOld   int64 // as older drivers print it
	TDPWatts    float64
	LimitMin    float64
	LimitMax    float64
	Gen         int    // highest PCIe generation of the card itself
	Width       int    // lanes of the card itself
	ReBAR       string // "yes", "no", "vbios", "always", …
	BAR1Small   int64  // MiB without Resizable BAR
	BAR1Large   int64  // MiB with it
	NVLink      string
	NVLinkGBs   float64
	P2P         string // over PCIe: "yes", "no", …
	Thickness   float64
	Form        string // pcie, sxm, mobile
	Confidence  string
	Confirmed   map[string]bool
	Notes       string
	Source      string
	FP16TFLOPS  float64
	MemoryGBs   float64
	HasECC      string
	Connector   string
	Fp16AccTFLO float64
}

func addGPUs(c *Catalog, rows []map[string]string) error {
	for _, r := range rows {
		_, dev, _ := strings.Cut(r["pci_device_id"], ":")
		c.GPUs = append(c.GPUs, GPU{
			ID: strings.ToLower(dev), Name: r["name"], Slug: r["slug"], Arch: r["architecture"], Compute: r["compute_capability"],
			MemoryMiB: int64(number(r["memory_mib"])), MemoryOld: int64(number(r["memory_mib_pre_r510"])),
			TDPWatts: number(r["tdp_w"]), LimitMin: number(r["power_limit_min_w"]), LimitMax: number(r["power_limit_max_w"]),
			Gen: integer(r["pcie_gen"]), Width: integer(r["pcie_width"]), ReBAR: r["rebar_supported"],
			BAR1Small: int64(number(r["bar1_without_rebar_mib"])), BAR1Large: int64(number(r["bar1_with_rebar_mib"])),
			NVLink: r["nvlink"], NVLinkGBs: number(r["nvlink_total_gb_s"]), P2P: r["p2p_over_pcie"],
			Thickness: number(r["typical_slot_width"]), Form: r["form"], Confidence: r["confidence"],
			Confirmed: fields(r["confirmed_fields"]), Notes: r["notes"], Source: r["source"],
			FP16TFLOPS: number(r["fp16_dense_tflops"]), Fp16AccTFLO: number(r["fp16acc_dense_tflops"]),
			MemoryGBs: number(r["memory_bandwidth_gb_s"]), HasECC: r["ecc"], Connector: r["power_connector"],
		})
	}
	return nil
}

// memoryTolerance covers ECC reservations and drivers that count differently.
const memoryTolerance = 256 // MiB

// GPU finds the model of a device id; among memory variants of one id the amount decides. Zero memory means
// unknown: then the first row of the id, its factory form, is taken.
func (c *Catalog) GPU(device string, memoryMiB int64) (GPU, bool) {
	device = strings.ToLower(device)
	var first *GPU
	for i := range c.GPUs {
		g := &c.GPUs[i]
		if g.ID != device {
			continue
		}
		if first == nil {
			first = g
		}
		if memoryMiB > 0 && (near(g.MemoryMiB, memoryMiB) || near(g.MemoryOld, memoryMiB)) {
			return *g, true
		}
	}
	if first == nil {
		return GPU{}, false
	}
	return *first, true
}

func near(a, b int64) bool {
	d := a - b
	return a > 0 && d <= memoryTolerance && d >= -memoryTolerance
}

// BySlug returns every row of a slug; one model can have several device ids.
func (c *Catalog) BySlug(slug string) []GPU {
	var out []GPU
	for _, g := range c.GPUs {
		if g.Slug == slug {
			out = append(out, g)
		}
	}
	return out
}

// Slugs lists every slug once, sorted.
func (c *Catalog) Slugs() []string {
	seen := map[string]bool{}
	var out []string
	for _, g := range c.GPUs {
		if !seen[g.Slug] {
			seen[g.Slug] = true
			out = append(out, g.Slug)
		}
	}
	sort.Strings(out)
	return out
}
