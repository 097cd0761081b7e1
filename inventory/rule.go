package inventory

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Eval computes the rule against one host's facts. The result is a bool: true, false, or unknown when the rule
// rests on a fact that was not read. Diagnostics say why it could not be computed at all.
func (r SiteRule) Eval(host cty.Value) (cty.Value, hcl.Diagnostics) {
	ctx := r.scope
	if ctx == nil {
		ctx = &hcl.EvalContext{Functions: functions()}
	}
	child := ctx.NewChild()
	child.Variables = (&meter{left: ruleBudget}).with(map[string]cty.Value{"host": host})
	v, diags := r.Assert.Value(child)
	if diags.HasErrors() {
		return cty.UnknownVal(cty.Bool), diags
	}
	v, _ = v.Unmark()
	b, err := convert.Convert(v, cty.Bool)
	if err != nil {
		return cty.UnknownVal(cty.Bool), append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Rule is not a condition", Subject: r.Assert.Range().Ptr(),
			Detail: fmt.Sprintf("The assert of check %q gives %s; it must give true or false.", r.Name, v.Type().FriendlyName()),
		})
	}
	return b, diags
}

// verify type-checks a rule before any host is seen. It is computed twice: with a host of which nothing but the type
// is known, and with one whose every list holds one entry, since only the second looks inside `for` expressions.
func (r SiteRule) verify(host cty.Type) hcl.Diagnostics {
	if host == cty.NilType {
		return nil
	}
	v, diags := r.Eval(cty.UnknownVal(host))
	_, inside := r.Eval(skeleton(host, 0))
	for _, d := range inside {
		// What depends on values and not on types may well hold on a real host.
		if d.Summary == "Unsupported attribute" || d.Summary == "Call to unknown function" || d.Summary == "Unknown variable" {
			diags = append(diags, d)
		}
	}
	if diags.HasErrors() {
		return diags
	}
	if raw, _ := r.rawType(host); raw != cty.DynamicPseudoType && raw != cty.Bool {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Rule is not a condition", Subject: r.Assert.Range().Ptr(),
			Detail: fmt.Sprintf("The assert of check %q gives %s; it must give true or false.", r.Name, raw.FriendlyName()),
		}}
	}
	if v.IsKnown() {
		return hcl.Diagnostics{{
			Severity: hcl.DiagWarning, Summary: "Rule does not depend on the host", Subject: r.Assert.Range().Ptr(),
			Detail: fmt.Sprintf("Check %q gives the same answer for every rig; name a fact as host.….", r.Name),
		}}
	}
	return nil
}

// rawType is the type of the expression before it is converted to bool.
func (r SiteRule) rawType(host cty.Type) (cty.Type, hcl.Diagnostics) {
	child := r.scope.NewChild()
	child.Variables = (&meter{left: ruleBudget}).with(map[string]cty.Value{"host": cty.UnknownVal(host)})
	v, diags := r.Assert.Value(child)
	return v.Type(), diags
}

// skeleton is a value of a type in which structure is known and every leaf is not; lists hold one entry.
func skeleton(t cty.Type, depth int) cty.Value {
	switch {
	case depth > 16:
		return cty.UnknownVal(t)
	case t.IsObjectType():
		attrs := map[string]cty.Value{}
		for name, at := range t.AttributeTypes() {
			attrs[name] = skeleton(at, depth+1)
		}
		return cty.ObjectVal(attrs)
	case t.IsListType():
		return cty.ListVal([]cty.Value{skeleton(t.ElementType(), depth+1)})
	}
	return cty.UnknownVal(t)
}
