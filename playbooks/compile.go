package playbooks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// fields are the attributes of each kind; those with a star are needed.
var fields = map[string][]string{
	"file":       {"path*", "content", "absent", "mode", "owner", "after", "secret"},
	"line":       {"path*", "match*", "line*", "mode", "after"},
	"ini":        {"path*", "section", "key*", "value*", "after"},
	"json":       {"path*", "key*", "value*", "after"},
	"package":    {"apt*", "dnf*", "absent", "hold", "version"},
	"unit":       {"name*", "enabled", "running", "content"},
	"kernel":     {"args*"},
	"modprobe":   {"name*", "content*", "initramfs"},
	"sysctl":     {"name*", "values*"},
	"limits":     {"name*", "content*"},
	"shell":      {"words*", "check*", "apply*", "undo"},
	"repository": {"name*", "key*", "fingerprint*", "apt*", "dnf*"},
}

// checkKind finds unknown and missing attributes when a playbook is loaded.
func checkKind(b *hclsyntax.Block) hcl.Diagnostics {
	var diags hcl.Diagnostics
	var known []string
	for _, f := range fields[b.Type] {
		name, needed := strings.CutSuffix(f, "*")
		known = append(known, name)
		if needed && b.Body.Attributes[name] == nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Missing attribute", Detail: fmt.Sprintf("%s needs %s.", b.Type, name), Subject: b.TypeRange.Ptr()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Body.Attributes)) {
		if !slices.Contains(known, name) {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsupported attribute", Detail: fmt.Sprintf("%q is not known in %s.%s", name, b.Type, meant(name, known)), Subject: b.Body.Attributes[name].NameRange.Ptr()})
		}
	}
	return diags
}

// compiler reads one task's block in a scope.
type compiler struct {
	scope Scope
	task  Task
	err   error
}

func (c *compiler) value(name string) cty.Value {
	a := c.task.Body.Attributes[name]
	if a == nil {
		return cty.NilVal
	}
	v, diags := a.Expr.Value(c.scope.context())
	switch {
	case c.err != nil:
	case diags.HasErrors():
		c.err = diags
	case !v.IsWhollyKnown():
		c.err = fmt.Errorf("%s: %s rests on a fact that was not read", a.SrcRange, name)
	}
	return v
}

func (c *compiler) text(name string) string {
	v := c.value(name)
	if v == cty.NilVal || c.err != nil || v.IsNull() {
		return ""
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil {
		c.err = fmt.Errorf("%s: %s must be text", c.task.Range, name)
		return ""
	}
	return s.AsString()
}

func (c *compiler) flag(name string) *bool {
	v := c.value(name)
	if v == cty.NilVal || c.err != nil || v.IsNull() {
		return nil
	}
	b, err := convert.Convert(v, cty.Bool)
	if err != nil {
		c.err = fmt.Errorf("%s: %s must be true or false", c.task.Range, name)
		return nil
	}
	yes := b.True()
	return &yes
}

func (c *compiler) is(name string) bool { b := c.flag(name); return b != nil && *b }

func (c *compiler) list(name string) []string {
	v := c.value(name)
	if v == cty.NilVal || c.err != nil {
		return nil
	}
	return texts(v)
}

// after are the commands that a change makes necessary; each is its own words.
func (c *compiler) after() []After {
	var out []After
	for _, s := range c.list("after") {
		out = append(out, After{Shell: s, Words: "run: " + s})
	}
	return out
}

// path refuses what is not an absolute, clean path.
func (c *compiler) path() string {
	p := c.text("path")
	if c.err == nil && (!strings.HasPrefix(p, "/") || strings.Contains(p, "..") || strings.ContainsAny(p, "\n\x00")) {
		c.err = fmt.Errorf("%s: %q is no absolute path", c.task.Range, p)
	}
	return p
}

// compile makes resources of a task.
func compile(s Scope, t Task) ([]Resource, error) {
	c := &compiler{scope: s, task: t}
	out := compilers[t.Kind](c)
	if c.err != nil {
		return nil, c.err
	}
	for i := range out {
		out[i].Task, out[i].Reboot = t.Name, out[i].Reboot || t.Reboot
	}
	if t.Verify != nil && len(out) > 0 {
		v, diags := t.Verify.Value(s.context())
		text, err := convert.Convert(v, cty.String)
		if diags.HasErrors() || err != nil || !text.IsKnown() || text.IsNull() {
			return nil, fmt.Errorf("%s: verify must be a script, made of facts that were read", t.Verify.Range())
		}
		out[len(out)-1].Verify = text.AsString()
	}
	return out, nil
}

// compilers are the kinds.
var compilers = map[string]func(*compiler) []Resource{
	"file": func(c *compiler) []Resource {
		return []Resource{{File: &File{Path: c.path(), Edit: Whole(c.text("content")), Absent: c.is("absent"), Mode: c.text("mode"), Owner: c.text("owner"), After: c.after(), Secret: c.is("secret")}}}
	},
	"line": func(c *compiler) []Resource {
		match, err := regexp.Compile(c.text("match"))
		if err != nil {
			c.err = err
			return nil
		}
		return []Resource{{File: &File{Path: c.path(), Edit: Line(match, c.text("line")), Mode: c.text("mode"), After: c.after()}}}
	},
	"ini": func(c *compiler) []Resource {
		return []Resource{{File: &File{Path: c.path(), Edit: INI(c.text("section"), c.text("key"), c.text("value")), After: c.after()}}}
	},
	"json":       compileJSON,
	"package":    compilePackage,
	"unit":       compileUnit,
	"kernel":     compileKernel,
	"repository": compileRepository,
	"modprobe":   compileModprobe,
	"sysctl":     compileSysctl,
	"limits": func(c *compiler) []Resource {
		return []Resource{{File: &File{Path: "/etc/security/limits.d/" + c.text("name") + ".conf", Edit: Whole(c.text("content"))}}}
	},
	"shell": func(c *compiler) []Resource {
		return []Resource{{Command: &Command{Words: c.text("words"), Check: c.text("check"), Apply: c.text("apply"), Undo: c.text("undo")}}}
	},
}
