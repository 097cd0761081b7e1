package inventory

import (
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"preflight/internal/catalog"
)

// confirmedFields maps attributes to the words by which the catalogue calls a figure confirmed. An owner who gives a
// figure with its source vouches for it.
var confirmedFields = map[string]string{
	"pci_device_id": "id", "memory_mib": "memory", "tdp_w": "tdp", "power_limit_max_w": "power_limits",
	"bar1_with_rebar_mib": "bar1", "memory_bandwidth_gb_s": "bandwidth", "p2p_over_pcie": "p2p",
}

func (b *builder) catalog() {
	first := map[string]hcl.Range{}
	b.each("catalog", func(schema *block, syntax *hclsyntax.Block, _ string) {
		n := b.decode(schema, syntax.Body, "", syntax.DefRange(), b.ctx)
		for _, g := range n.blocks["gpu"] {
			if problem := nameProblem(g.label); problem != "" {
				b.fault(g.header, "Invalid name", "%s.", problem)
				continue
			}
			if at, dup := first[g.label]; dup {
				b.fault(g.header, "Duplicate gpu", "gpu %q is declared at %s already.", g.label, Position(at))
				continue
			}
			first[g.label] = g.header
			if lo, hi := g.float("power_limit_min_w"), g.float("power_limit_max_w"); hi > 0 && lo > hi {
				b.fault(g.where("power_limit_min_w"), "Invalid value", "power_limit_min_w (%s) is above power_limit_max_w (%s).", shown(lo), shown(hi))
			}
			b.inv.Catalog.GPUs = append(b.inv.Catalog.GPUs, declaredGPU(g))
		}
		for _, c := range n.blocks["cpu"] {
			re, err := regexp.Compile(c.text("match"))
			if err != nil {
				b.fault(c.where("match"), "Invalid pattern", "%v.", err)
				continue
			}
			b.inv.Catalog.CPUs = append(b.inv.Catalog.CPUs, declaredCPU(c, re))
		}
	})
}

func declaredGPU(n *node) catalog.GPU {
	_, device, _ := strings.Cut(strings.ToLower(n.text("pci_device_id")), ":")
	g := catalog.GPU{
		ID: device, Name: n.text("name"), Slug: n.label, Arch: n.text("architecture"), Compute: n.text("compute_capability"),
		MemoryMiB: int64(n.float("memory_mib")), TDPWatts: n.float("tdp_w"), LimitMin: n.float("power_limit_min_w"), LimitMax: n.float("power_limit_max_w"),
		Gen: int(n.floatOr("pcie_gen", 4)), Width: int(n.floatOr("pcie_width", 16)), ReBAR: n.text("rebar_supported"),
		BAR1Small: int64(n.float("bar1_without_rebar_mib")), BAR1Large: int64(n.float("bar1_with_rebar_mib")),
		NVLink: n.text("nvlink"), NVLinkGBs: n.float("nvlink_total_gb_s"), P2P: n.text("p2p_over_pcie"), Thickness: n.float("typical_slot_width"),
		Form: n.text("form"), Confidence: "declared", Confirmed: map[string]bool{}, Notes: n.text("notes"), Source: n.text("source"),
		FP16TFLOPS: n.float("fp16_dense_tflops"), MemoryGBs: n.float("memory_bandwidth_gb_s"), HasECC: n.text("ecc"), Connector: n.text("power_connector"),
	}
	if g.Form == "" {
		g.Form = "pcie"
	}
	for attribute, word := range confirmedFields {
		if n.has(attribute) {
			g.Confirmed[word] = true
		}
	}
	return g
}

func declaredCPU(n *node, match *regexp.Regexp) catalog.CPU {
	return catalog.CPU{
		Match: match, Family: n.label, Gen: int(n.floatOr("pcie_gen", 4)),
		Lanes: int(n.float("lanes")), Usable: int(n.float("lanes")), Channels: int(n.float("memory_channels")),
		TDPWatts: n.float("tdp_w"), PeakWatts: n.float("max_w"), Source: n.text("source"),
		Confirmed: map[string]bool{"lanes": true, "channels": n.has("memory_channels"), "tdp": n.has("tdp_w")},
	}
}
