package inventory

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// WriteDiagnostics prints mistakes for a person: severity, message, file:line:column, and the lines themselves. A
// width of 0 does not wrap. The only errors are those of the writer.
func WriteDiagnostics(w io.Writer, files map[string]*hcl.File, diags hcl.Diagnostics, width uint, color bool) error {
	for _, d := range diags {
		var b bytes.Buffer
		if err := hcl.NewDiagnosticTextWriter(&b, files, width, color).WriteDiagnostic(d); err != nil {
			return err
		}
		text := b.String()
		if d.Subject != nil {
			// HCL prints no column; editors and terminals follow file:line:column.
			place := fmt.Sprintf("on %s line %d", d.Subject.Filename, d.Subject.Start.Line)
			text = strings.Replace(text, place, "on "+Position(*d.Subject), 1)
		}
		if _, err := io.WriteString(w, clipLines(text)); err != nil {
			return err
		}
	}
	return nil
}

// longestLine is how much of a source line is shown, bytes: a snippet is to be read, and a file need not be text.
const longestLine = 400

func clipLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > longestLine {
			lines[i] = strings.ToValidUTF8(l[:longestLine], "") + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// Position is "rigs.hcl:31:3", for messages that point into an inventory.
func Position(r hcl.Range) string {
	if r.Filename == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", r.Filename, r.Start.Line, r.Start.Column)
}

// tidy drops repetitions, which the copies of a for_each make, and sorts by place. Warnings never hide errors.
func tidy(diags hcl.Diagnostics) hcl.Diagnostics {
	seen := map[string]bool{}
	var out hcl.Diagnostics
	for _, d := range diags {
		key := fmt.Sprint(d.Severity, d.Subject, d.Summary, d.Detail)
		if !seen[key] {
			seen[key] = true
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return 0
		}
		if c := strings.Compare(a.Subject.Filename, b.Subject.Filename); c != 0 {
			return c
		}
		return a.Subject.Start.Byte - b.Subject.Start.Byte
	})
	if len(out) > mostDiagnostics {
		rest := len(out) - mostDiagnostics
		out = append(out[:mostDiagnostics:mostDiagnostics], &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Further mistakes", Detail: fmt.Sprintf("%d more are not shown.", rest),
		})
	}
	return out
}

var quoted = regexp.MustCompile(`named "([^"]+)"`)

// enrich adds suggestions to what HCL says about names, where it offers none itself. It also drops the evaluation
// context, whose values would be printed below each message.
func enrich(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if m := quoted.FindStringSubmatch(d.Detail); m != nil && !strings.Contains(d.Detail, "Did you mean") {
			switch d.Summary {
			case "Unsupported attribute":
				d.Detail += pathSuggestion(d, m[1])
			case "Call to unknown function":
				d.Detail += didYouMean(m[1], sortedKeys(functions()))
			}
		}
		d.Expression, d.EvalContext = nil, nil
	}
	return diags
}

// pathSuggestion is the attribute that was meant: one of the object that lacks it, else one of any object in sight
// (inside a splat the object itself is gone by now).
func pathSuggestion(d *hcl.Diagnostic, missing string) string {
	known := siblings(d)
	if known == nil {
		names := map[string]bool{}
		for ctx := d.EvalContext; ctx != nil; ctx = ctx.Parent() {
			for _, v := range ctx.Variables {
				attributeNames(v.Type(), names)
			}
		}
		return didYouMean(missing, sortedKeys(names))
	}
	if hint := didYouMean(missing, known); hint != "" {
		return hint
	}
	return fmt.Sprintf(" It has %s.", clip200(strings.Join(known, ", ")))
}

// siblings follows the path of the failing expression to the object that lacks the next step, and lists what it has.
func siblings(d *hcl.Diagnostic) []string {
	var at cty.Value
	var path hcl.Traversal
	switch e := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		at, path = rootValue(d.EvalContext, e.Traversal), e.Traversal[1:]
	case *hclsyntax.RelativeTraversalExpr:
		at, _ = e.Source.Value(d.EvalContext)
		path = e.Traversal
	}
	for _, step := range path {
		if at == cty.NilVal {
			return nil
		}
		if a, ok := step.(hcl.TraverseAttr); ok && at.Type().IsObjectType() && !at.Type().HasAttribute(a.Name) {
			return sortedKeys(at.Type().AttributeTypes())
		}
		next, diags := step.TraversalStep(at)
		if diags.HasErrors() {
			return nil
		}
		at = next
	}
	return nil
}

// attributeNames collects the attributes of every object within a type.
func attributeNames(t cty.Type, into map[string]bool) {
	switch {
	case t.IsObjectType():
		for name, at := range t.AttributeTypes() {
			into[name] = true
			attributeNames(at, into)
		}
	case t.IsCollectionType():
		attributeNames(t.ElementType(), into)
	}
}

func rootValue(ctx *hcl.EvalContext, t hcl.Traversal) cty.Value {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[t.RootName()]; ok {
			return v
		}
	}
	return cty.NilVal
}

func clip200(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
