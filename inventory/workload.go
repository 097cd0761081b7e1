package inventory

import (
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
			Name: label, Method: n.text("method"), Sequence: int(n.float("sequence")), Batch: int(n.float("batch")),
			Strategy: "auto", Extra: n.textMap("extra"), Range: n.header,
		}
		if n.has("strategy") {
			w.Strategy = n.text("strategy")
		}
		w.Parameters, _ = parameterCount(n.text("parameters")) // the schema has refused what is none
		b.inv.Workloads = append(b.inv.Workloads, w)
	})
}
