package inventory

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Bounds that keep a small file from costing much. They are far above what a fleet of thousands needs.
const (
	largestFile     = 4 << 20 // bytes
	deepestNesting  = 100     // brackets; the parser and the evaluator recurse
	longestChain    = 5_000   // operators and brackets in one statement, for the same reason
	budget          = 300_000 // turns of loops, elements of values and 32-byte pieces of text, in one load
	ruleBudget      = 50_000  // the same, in one evaluation of a site's rule
	largestExponent = 1024    // of two, as in a float64
	mostRigs        = 20_000  // of one for_each
	mostLocals      = 2_000
	mostDiagnostics = 200
)

// meter counts what expressions produce; it belongs to one load.
type meter struct{ left int }

// spend charges a value by its size and says whether the budget still holds.
func (m *meter) spend(v cty.Value) bool {
	m.charge(v)
	return m.left >= 0
}

func (m *meter) charge(v cty.Value) {
	if m.left < 0 {
		return
	}
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() {
		return
	}
	switch v.Type() {
	case cty.String:
		m.left -= len(v.AsString()) / 32
		return
	case cty.Number:
		// 1e9999999 is short to write and takes half a minute to print.
		if e := v.AsBigFloat().MantExp(nil); e > largestExponent || e < -largestExponent {
			m.left = -1
		}
		return
	}
	if !v.CanIterateElements() {
		return
	}
	for it := v.ElementIterator(); it.Next() && m.left >= 0; {
		_, e := it.Element()
		m.left--
		m.charge(e)
	}
}

func tooMuch(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Expressions produce too much", Subject: at.Ptr(),
		Detail: fmt.Sprintf("The expressions of this inventory produce more than is allowed (%d values in all); an inventory needs far fewer.", budget),
	}
}

// meterName is where an evaluation finds its meter: no HCL identifier can be this.
const meterName = "\x00\x00\x00\x00 budget \x00\x00\x00\x00"

var meterType = cty.Capsule("meter", reflect.TypeFor[meter]())

// with returns the variables with the meter among them. It travels in the context and not in the syntax tree,
// because a rule is later evaluated for many hosts at the same time, each with a budget of its own.
func (m *meter) with(variables map[string]cty.Value) map[string]cty.Value {
	out := maps.Clone(variables)
	if out == nil {
		out = map[string]cty.Value{}
	}
	out[meterName] = cty.CapsuleVal(meterType, m)
	return out
}

func meterOf(ctx *hcl.EvalContext) *meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[meterName]; ok {
			return v.EncapsulatedValue().(*meter)
		}
	}
	return nil
}

// metered is the body of a `for` or splat expression: each turn is charged. Once the budget is spent the body is no
// longer evaluated, so that nested loops end soon.
type metered struct{ hclsyntax.Expression }

// Value evaluates one turn of the loop.
func (e metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := meterOf(ctx)
	if m == nil {
		return e.Expression.Value(ctx)
	}
	if m.left < 0 {
		return cty.DynamicVal, nil
	}
	m.left--
	v, diags := e.Expression.Value(ctx)
	if !m.spend(v) {
		return cty.DynamicVal, append(diags, tooMuch(e.Range()))
	}
	return v, diags
}

// meterLoops makes every loop of a body charge its turns.
func meterLoops(body *hclsyntax.Body) {
	// The callback never fails, so the walk gives no diagnostics.
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		switch e := n.(type) {
		case *hclsyntax.ForExpr:
			e.ValExpr = metered{e.ValExpr}
		case *hclsyntax.SplatExpr:
			e.Each = metered{e.Each}
		}
		return nil
	})
}

// hugeNumber is a number with three or more digits of exponent.
var hugeNumber = regexp.MustCompile(`^[0-9.]+[eE][+-]?[0-9]{3,}$`)

// tooDeep refuses a source that would drive the recursive parser or evaluator too deep.
func tooDeep(name string, src []byte) hcl.Diagnostics {
	refuse := func(at hcl.Range, format string, args ...any) hcl.Diagnostics {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Too complex", Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()}}
	}
	if len(src) > largestFile {
		return refuse(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}, "The file has %d bytes; at most %d are read.", len(src), largestFile)
	}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos) // its diagnostics come again from the parser
	// One counter for each open bracket: commas and, outside of parentheses, line ends start a new expression.
	type level struct {
		chain    int
		newlines bool // end an expression here
	}
	stack := []level{{newlines: true}}
	for _, t := range tokens {
		top := &stack[len(stack)-1]
		if (t.Type == hclsyntax.TokenNumberLit || t.Type == hclsyntax.TokenQuotedLit) && hugeNumber.Match(t.Bytes) {
			return refuse(t.Range, "The number %s is too large.", clip(string(t.Bytes)))
		}
		switch t.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			top.chain++
			stack = append(stack, level{})
		case hclsyntax.TokenOBrace:
			stack = append(stack, level{newlines: true})
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd:
			stack = stack[:max(len(stack)-1, 1)]
		case hclsyntax.TokenComma:
			top.chain = 0
		case hclsyntax.TokenNewline:
			if top.newlines {
				top.chain = 0
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenOQuote, hclsyntax.TokenCQuote, hclsyntax.TokenComment:
		default:
			top.chain++
		}
		if len(stack) > deepestNesting {
			return refuse(t.Range, "Brackets are nested more than %d deep.", deepestNesting)
		}
		if top.chain > longestChain {
			return refuse(t.Range, "One expression has more than %d operators.", longestChain)
		}
	}
	return nil
}
