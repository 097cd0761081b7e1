package inventory

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// EnvPrefix is what the environment's names of variables start with.
const EnvPrefix = "PREFLIGHT_VAR_"

// scope resolves variables, then locals, and returns the context of every other expression.
func (d *decoder) scope(blocks []*hclsyntax.Block, opts Options) *hcl.EvalContext {
	ctx := &hcl.EvalContext{Functions: functions(), Variables: d.meter.with(nil)}
	ctx.Variables["var"] = d.variables(blocks, opts, ctx)
	ctx.Variables["local"] = d.locals(blocks, ctx)
	return ctx
}

// variables gives the object `var`.
func (d *decoder) variables(blocks []*hclsyntax.Block, opts Options, ctx *hcl.EvalContext) cty.Value {
	values := map[string]cty.Value{}
	declared := map[string]*hclsyntax.Block{}
	schema := variableBlock()
	for _, b := range blocks {
		if b.Type != "variable" {
			continue
		}
		label, ok := d.label(schema, b)
		if !ok {
			continue
		}
		if !hclsyntax.ValidIdentifier(label) {
			d.fault(b.LabelRanges[0], "Invalid name", "%q cannot be the name of a variable: letters, digits, '_' and '-', starting with a letter.", clip(label))
			continue
		}
		if first, dup := declared[label]; dup {
			d.fault(b.DefRange(), "Duplicate variable", "Variable %q is declared at %s already.", label, Position(first.DefRange()))
			continue
		}
		declared[label] = b
		values[label] = d.variable(label, b, opts, ctx)
	}
	for _, name := range sortedKeys(opts.Vars) {
		if declared[name] == nil {
			d.diags = append(d.diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Undeclared variable",
				Detail: "--var gives " + clip(name) + ", but no `variable` block declares it." + didYouMean(name, sortedKeys(declared)),
			})
		}
	}
	return cty.ObjectVal(values)
}

// variable is the value of one variable; when it is wrong or missing, an unknown of its type stands in for it, so
// that one mistake is not reported wherever the variable is used.
func (d *decoder) variable(label string, b *hclsyntax.Block, opts Options, ctx *hcl.EvalContext) cty.Value {
	n := d.decode(variableBlock(), b.Body, label, b.DefRange(), ctx)
	want, fallback := cty.DynamicPseudoType, cty.NilVal
	if e, ok := n.exprs["type"]; ok {
		t, diags := typeexpr.TypeConstraint(e)
		d.diags = append(d.diags, diags...)
		if diags.HasErrors() {
			return cty.DynamicVal
		}
		want = t
	}
	if e, ok := n.exprs["default"]; ok {
		v, ok := d.eval(e, ctx)
		if !ok {
			return cty.UnknownVal(want)
		}
		v, err := convert.Convert(v, want)
		if err != nil {
			d.fault(e.Range(), "Wrong type", "The default of variable %q does not fit its type: %v.", label, err)
			return cty.UnknownVal(want)
		}
		fallback = v
	}
	v := fallback
	if text, from, given := outside(label, opts); given {
		var err string
		if v, err = parseOutside(text, from, want); err == "" && !d.meter.spend(v) {
			err = "it is too large"
		}
		if err != "" {
			d.fault(b.DefRange(), "Wrong type", "%s does not fit variable %q: %s.", from, label, err)
			return cty.UnknownVal(want)
		}
	}
	if v == cty.NilVal {
		d.fault(b.DefRange(), "No value for a variable", "Variable %q has no default: give --var %s=… or %s%s.", label, label, EnvPrefix, label)
		return cty.UnknownVal(want)
	}
	if nullable := n.boolPtr("nullable"); v.IsNull() && nullable != nil && !*nullable {
		d.fault(b.DefRange(), "No value for a variable", "Variable %q must not be null.", label)
		return cty.UnknownVal(want)
	}
	return v
}

// outside finds what the command line, else the environment, gives for a variable.
func outside(label string, opts Options) (text, from string, given bool) {
	if v, ok := opts.Vars[label]; ok {
		return v, "--var " + label, true
	}
	for _, e := range opts.Env {
		if v, ok := strings.CutPrefix(e, EnvPrefix+label+"="); ok {
			return v, EnvPrefix + label, true
		}
	}
	return "", "", false
}

// parseOutside reads a value from outside: as it stands for plain types, as an HCL expression for others.
func parseOutside(text, from string, want cty.Type) (cty.Value, string) {
	v := cty.StringVal(text)
	if !want.IsPrimitiveType() && want != cty.DynamicPseudoType {
		if diags := tooDeep(from, []byte(text)); diags.HasErrors() {
			return cty.NilVal, diags[0].Detail
		}
		expr, diags := hclsyntax.ParseExpression([]byte(text), from, hcl.InitialPos)
		if !diags.HasErrors() {
			v, diags = expr.Value(nil)
		}
		if diags.HasErrors() {
			return cty.NilVal, "it is no HCL expression (" + diags[0].Detail + ")"
		}
	}
	out, err := convert.Convert(v, want)
	if err != nil {
		return cty.NilVal, err.Error()
	}
	return out, ""
}

// locals gives the object `local`. They may stand in any order; each is evaluated when what it uses has been.
func (d *decoder) locals(blocks []*hclsyntax.Block, ctx *hcl.EvalContext) cty.Value {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, b := range blocks {
		if b.Type != "locals" {
			continue
		}
		if _, ok := d.label(&block{name: "locals"}, b); !ok {
			continue
		}
		for _, child := range b.Body.Blocks {
			d.fault(child.TypeRange, "Unsupported block", "A locals block holds only attributes.")
		}
		for _, name := range sortedKeys(b.Body.Attributes) {
			a := b.Body.Attributes[name]
			if first, dup := attrs[name]; dup {
				d.fault(a.NameRange, "Duplicate local", "local.%s is given at %s already.", name, Position(first.NameRange))
				continue
			}
			attrs[name] = a
		}
	}
	if len(attrs) > mostLocals {
		d.fault(blocks[0].DefRange(), "Too many locals", "%d locals are given; at most %d are read.", len(attrs), mostLocals)
		return cty.DynamicVal
	}
	r := localResolver{d: d, attrs: attrs, ctx: ctx, values: map[string]cty.Value{}, open: map[string]bool{}}
	for _, name := range sortedKeys(attrs) {
		r.resolve(name)
	}
	return cty.ObjectVal(r.values)
}

type localResolver struct {
	d      *decoder
	attrs  map[string]*hclsyntax.Attribute
	ctx    *hcl.EvalContext
	values map[string]cty.Value
	open   map[string]bool // being resolved: meeting one again is a cycle
	path   []string
}

func (r *localResolver) resolve(name string) {
	if _, done := r.values[name]; done {
		return
	}
	a := r.attrs[name]
	if r.open[name] || len(r.path) > 1000 {
		r.d.fault(a.NameRange, "Locals in a circle", "local.%s rests on itself: %s → %s.", name, clip200(strings.Join(r.path, " → ")), name)
		r.values[name] = cty.DynamicVal
		return
	}
	r.open[name] = true
	r.path = append(r.path, name)
	defer func() { r.open[name] = false; r.path = r.path[:len(r.path)-1] }()

	for _, used := range a.Expr.Variables() {
		if used.RootName() != "local" || len(used) < 2 {
			continue
		}
		if step, ok := used[1].(hcl.TraverseAttr); ok && r.attrs[step.Name] != nil {
			r.resolve(step.Name)
		}
	}
	if _, done := r.values[name]; done {
		return // found to be part of a circle meanwhile
	}
	child := r.ctx.NewChild()
	child.Variables = map[string]cty.Value{"local": r.known()}
	v, ok := r.d.eval(a.Expr, child)
	if !ok {
		v = cty.DynamicVal
	}
	r.values[name] = v
}

// known is what `local` holds so far. Names that have not been computed are there, so that only a name that does
// not exist at all is an error.
func (r *localResolver) known() cty.Value {
	out := make(map[string]cty.Value, len(r.attrs))
	for name := range r.attrs {
		if v, ok := r.values[name]; ok {
			out[name] = v
		} else {
			out[name] = cty.DynamicVal
		}
	}
	return cty.ObjectVal(out)
}
