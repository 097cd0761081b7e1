package inventory

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// node is a block after decoding: known attributes converted to the type that the schema wants.
type node struct {
	label  string
	header hcl.Range
	values map[string]cty.Value
	exprs  map[string]hcl.Expression
	ranges map[string]hcl.Range // of attributes
	blocks map[string][]*node
}

func (n *node) has(name string) bool { _, ok := n.values[name]; return ok }

func (n *node) text(name string) string { return textOf(n.values[name]) }

func (n *node) float(name string) float64 {
	if v, ok := n.values[name]; ok {
		return figure(v)
	}
	return 0
}

func (n *node) floatOr(name string, other float64) float64 {
	if n.has(name) {
		return n.float(name)
	}
	return other
}

func (n *node) floatPtr(name string) *float64 {
	if !n.has(name) {
		return nil
	}
	f := n.float(name)
	return &f
}

func (n *node) intPtr(name string) *int {
	if !n.has(name) {
		return nil
	}
	i := int(n.float(name))
	return &i
}

func (n *node) boolPtr(name string) *bool {
	v, ok := n.values[name]
	if !ok {
		return nil
	}
	b := v.True()
	return &b
}

func (n *node) texts(name string) []string {
	v, ok := n.values[name]
	if !ok {
		return nil
	}
	out := []string{}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		out = append(out, e.AsString())
	}
	return out
}

func (n *node) textMap(name string) map[string]string {
	v, ok := n.values[name]
	if !ok {
		return nil
	}
	out := map[string]string{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		out[k.AsString()] = e.AsString()
	}
	return out
}

// one is the only block of a name, or nil.
func (n *node) one(name string) *node {
	if list := n.blocks[name]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// where is the range of an attribute, else of the block's header.
func (n *node) where(name string) hcl.Range {
	if r, ok := n.ranges[name]; ok {
		return r
	}
	return n.header
}

// decoder gathers mistakes instead of stopping at the first.
type decoder struct {
	diags hcl.Diagnostics
	meter *meter
}

func (d *decoder) fault(at hcl.Range, summary, format string, args ...any) {
	d.diags = append(d.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
}

// decode reads a body by its schema. Names that the schema lacks are reported with what was probably meant.
func (d *decoder) decode(b *block, body *hclsyntax.Body, label string, header hcl.Range, ctx *hcl.EvalContext) *node {
	n := &node{
		label: label, header: header, values: map[string]cty.Value{}, exprs: map[string]hcl.Expression{},
		ranges: map[string]hcl.Range{}, blocks: map[string][]*node{},
	}
	for _, name := range sortedKeys(body.Attributes) {
		a := body.Attributes[name]
		schema := b.attr(name)
		if schema == nil {
			d.unknownAttribute(b, a)
			continue
		}
		n.ranges[name] = a.SrcRange
		n.exprs[name] = a.Expr
		if schema.kind != cty.NilType {
			if v, ok := d.value(schema, a.Expr, ctx); ok {
				n.values[name] = v
			}
		}
	}
	for _, a := range b.attrs {
		if _, given := body.Attributes[a.name]; a.required && !given {
			d.fault(header, "Missing attribute", "%s needs %q: %s", title(b, label), a.name, a.doc)
		}
	}
	for _, child := range body.Blocks {
		d.decodeChild(b, n, child, ctx)
	}
	return n
}

func (d *decoder) decodeChild(b *block, n *node, child *hclsyntax.Block, ctx *hcl.EvalContext) {
	schema := b.child(child.Type)
	if schema == nil {
		d.unknownBlock(b, child)
		return
	}
	label, ok := d.label(schema, child)
	if !ok {
		return
	}
	if before := n.blocks[child.Type]; len(before) > 0 && !schema.many {
		d.fault(child.DefRange(), "Duplicate block", "Only one %q block is allowed here; the first is at %s.", child.Type, before[0].header)
		return
	}
	n.blocks[child.Type] = append(n.blocks[child.Type], d.decode(schema, child.Body, label, child.DefRange(), ctx))
}

// label checks the labels of a block and returns the only one, or "".
func (d *decoder) label(schema *block, b *hclsyntax.Block) (string, bool) {
	switch {
	case schema.label == "" && len(b.Labels) > 0:
		d.fault(b.LabelRanges[0], "Unexpected label", "A %q block has no label; write %s { … }.", b.Type, b.Type)
		return "", false
	case schema.label == "":
		return "", true
	case len(b.Labels) == 0:
		d.fault(b.DefRange(), "Missing label", "A %q block needs a label (%s): %s \"…\" { … }.", b.Type, schema.label, b.Type)
		return "", false
	case len(b.Labels) > 1:
		d.fault(b.LabelRanges[1], "Unexpected label", "A %q block has one label (%s).", b.Type, schema.label)
		return "", false
	}
	return b.Labels[0], true
}

func title(b *block, label string) string {
	if label != "" {
		return fmt.Sprintf("%s %q", b.name, label)
	}
	return b.name
}

func (d *decoder) unknownAttribute(b *block, a *hclsyntax.Attribute) {
	if b.child(a.Name) != nil {
		d.fault(a.NameRange, "Unsupported attribute", "%q is a block: write %s { … } without the equals sign.", a.Name, a.Name)
		return
	}
	place := "here"
	if b.name != "" {
		place = "in a " + b.name + " block"
	}
	d.fault(a.NameRange, "Unsupported attribute", "%q is not known %s.%s", clip(a.Name), place, didYouMean(a.Name, b.names()))
}

func (d *decoder) unknownBlock(b *block, child *hclsyntax.Block) {
	if b.attr(child.Type) != nil {
		d.fault(child.TypeRange, "Unsupported block", "%q is an attribute: write %s = ….", child.Type, child.Type)
		return
	}
	place := "here"
	if b.name != "" {
		place = "in a " + b.name + " block"
	}
	d.fault(child.TypeRange, "Unsupported block", "A block %q is not known %s.%s", clip(child.Type), place, didYouMean(child.Type, b.names()))
}

// value evaluates one attribute and holds it to its schema; null counts as left out, as in Terraform.
func (d *decoder) value(schema *attr, expr hclsyntax.Expression, ctx *hcl.EvalContext) (cty.Value, bool) {
	v, ok := d.eval(expr, ctx)
	if !ok || !v.IsKnown() {
		return cty.NilVal, false
	}
	if v.IsNull() {
		if schema.required {
			d.fault(expr.Range(), "Missing value", "%q must not be null.", schema.name)
		}
		return cty.NilVal, false
	}
	v, err := convert.Convert(v, schema.kind)
	if err != nil || !v.IsWhollyKnown() {
		d.fault(expr.Range(), "Wrong type", "%q takes %s: %v.", schema.name, kindName(schema.kind), err)
		return cty.NilVal, false
	}
	if v.CanIterateElements() {
		for it := v.ElementIterator(); it.Next(); {
			if _, e := it.Element(); e.IsNull() {
				d.fault(expr.Range(), "Wrong type", "%q must not hold a null.", schema.name)
				return cty.NilVal, false
			}
		}
	}
	if schema.ok != nil {
		if problem := schema.ok(v); problem != "" {
			d.fault(expr.Range(), "Invalid value", "%s: %s.", schema.name, problem)
			return cty.NilVal, false
		}
	}
	if schema.oneOf != nil && !contains(schema.oneOf, v.AsString()) {
		d.fault(expr.Range(), "Invalid value", "%s: %q is not known; it must be %s.%s", schema.name, clip(v.AsString()), orList(schema.oneOf), didYouMean(v.AsString(), schema.oneOf))
		return cty.NilVal, false
	}
	return v, true
}

// eval evaluates an expression within the budget of this load.
func (d *decoder) eval(expr hcl.Expression, ctx *hcl.EvalContext) (v cty.Value, ok bool) {
	v, diags := expr.Value(ctx)
	d.diags = append(d.diags, enrich(diags)...)
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	v, _ = v.UnmarkDeep()
	if !d.meter.spend(v) {
		d.diags = append(d.diags, tooMuch(expr.Range()))
		return cty.DynamicVal, false
	}
	return v, true
}

func kindName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsListType():
		return "a list of texts"
	}
	return "a map of texts"
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
