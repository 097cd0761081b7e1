package inventory

import "github.com/zclconf/go-cty/cty"

func catalogBlock() *block {
	return &block{name: "catalog", many: true, doc: "Hardware that the built-in catalogue lacks.", blocks: []*block{
		{name: "gpu", label: "slug", many: true, doc: "One model. A slug of the built-in catalogue replaces that row.", attrs: []attr{
			{name: "name", kind: cty.String, required: true, ok: filled, doc: "As nvidia-smi prints it."},
			{name: "pci_device_id", kind: cty.String, required: true, ok: pciID, doc: "Vendor and device, `10de:2684`."},
			{name: "memory_mib", kind: cty.Number, required: true, ok: whole(1, 16<<20), doc: "As nvidia-smi prints it, MiB."},
			{name: "tdp_w", kind: cty.Number, required: true, ok: between(1, 5000), doc: "Default power limit, W."},
			{name: "source", kind: cty.String, required: true, ok: filled, doc: "Where these figures come from."},
			{name: "architecture", kind: cty.String, ok: filled, doc: "`ampere`, `ada`, `blackwell` …"},
			{name: "compute_capability", kind: cty.String, ok: filled, doc: "`8.9`."},
			{name: "power_limit_min_w", kind: cty.Number, ok: between(1, 5000), doc: "Lowest power limit, W."},
			{name: "power_limit_max_w", kind: cty.Number, ok: between(1, 5000), doc: "Highest power limit, W."},
			{name: "pcie_gen", kind: cty.Number, ok: whole(1, 7), doc: "Generation of the card itself. Default: 4."},
			{name: "pcie_width", kind: cty.Number, ok: laneWidth, doc: "Lanes of the card itself. Default: 16."},
			{name: "rebar_supported", kind: cty.String, oneOf: []string{"yes", "no", "vbios-update", "always-large"}, doc: "Whether BAR1 can cover the memory."},
			{name: "bar1_without_rebar_mib", kind: cty.Number, ok: whole(1, 16<<20), doc: "BAR1 without Resizable BAR, MiB."},
			{name: "bar1_with_rebar_mib", kind: cty.Number, ok: whole(1, 16<<20), doc: "BAR1 with it, MiB."},
			{name: "nvlink", kind: cty.String, oneOf: []string{"no", "bridge", "yes"}, doc: "Whether and how cards are joined by NVLink."},
			{name: "nvlink_total_gb_s", kind: cty.Number, ok: above(0), doc: "All links, both directions, GB/s."},
			{name: "p2p_over_pcie", kind: cty.String, oneOf: []string{"yes", "driver-disabled"}, doc: "Whether the stock driver allows it."},
			{name: "fp16_dense_tflops", kind: cty.Number, ok: above(0), doc: "FP16 with FP32 accumulation, without sparsity."},
			{name: "memory_bandwidth_gb_s", kind: cty.Number, ok: above(0), doc: "GB/s."},
			{name: "typical_slot_width", kind: cty.Number, ok: between(0.5, 8), doc: "Thickness in slots."},
			{name: "form", kind: cty.String, oneOf: []string{"pcie", "sxm"}, doc: "Default: `pcie`."},
			{name: "ecc", kind: cty.String, oneOf: []string{"yes", "no"}, doc: "Whether the memory can correct errors."},
			{name: "power_connector", kind: cty.String, ok: filled, doc: "`12VHPWR`, `2x8-pin` …"},
			{name: "notes", kind: cty.String, doc: "For people."},
		}},
		{name: "cpu", label: "family", many: true, doc: "Processors, found by the name that the kernel prints. They go before the built-in rows.", attrs: []attr{
			{name: "match", kind: cty.String, required: true, ok: filled, doc: "Regular expression (RE2) for `model name` of /proc/cpuinfo."},
			{name: "lanes", kind: cty.Number, required: true, ok: whole(1, 1024), doc: "PCIe lanes of one socket that reach slots and M.2, without the link to the chipset."},
			{name: "source", kind: cty.String, required: true, ok: filled, doc: "Where these figures come from."},
			{name: "memory_channels", kind: cty.Number, ok: whole(1, 64), doc: "Memory channels of one socket."},
			{name: "pcie_gen", kind: cty.Number, ok: whole(1, 7), doc: "PCIe generation. Default: 4."},
			{name: "tdp_w", kind: cty.Number, ok: between(1, 5000), doc: "TDP of one socket, W."},
			{name: "max_w", kind: cty.Number, ok: between(1, 5000), doc: "PPT or PL2 of one socket, W."},
		}},
	}}
}
