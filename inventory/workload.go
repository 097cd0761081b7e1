package inventory

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func (b *builder) workloads() {
	first := map[string]hcl.Range{}
	b.each("workload", func(schema *block, syntax *hclsyntax.Block, label string) {
		n := b.decode(schema, syntax.Body, label, syntax.DefRange(), b.ctx)
		if !b.named(syntax, label, first) {
			return
		}
		w := &Workload{
			Name: label, Model: n.text("model"), Method: n.text("method"), Precision: n.text("precision"), Optimizer: n.text("optimizer"),
			Sequence: int(n.float("sequence")), Batch: int(n.float("batch")), GlobalBatch: int(n.float("global_batch")), Checkpointing: n.text("checkpointing"),
			Attention: n.text("attention"), Strategy: "auto", Requests: int(n.float("requests")), LoRARank: int(n.float("lora_rank")), Extra: n.textMap("extra"), Range: n.header,
		}
		if n.has("strategy") {
			w.Strategy = n.text("strategy")
		}
		w.Parameters, _ = ParameterCount(n.text("parameters")) // the schema has refused what is none
		w.Tokens, _ = ParameterCount(n.text("tokens"))
		if w.Config = n.text("config"); w.Config != "" && !filepath.IsAbs(w.Config) {
			w.Config = filepath.Join(filepath.Dir(n.header.Filename), w.Config)
		}
		_, size := n.exprs["parameters"]
		_, named := n.exprs["model"]
		_, config := n.exprs["config"]
		switch {
		case !size && !named && !config:
			b.fault(n.header, "Missing attribute", "workload %q needs its model: parameters (\"7B\"), model (\"llama-3-8b\") or config (a path).", label)
		case named && config:
			b.fault(n.where("config"), "Invalid value", "model and config exclude each other: both give the shape.")
		}
		b.inv.Workloads = append(b.inv.Workloads, w)
	})
}
