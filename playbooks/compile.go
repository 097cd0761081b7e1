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

	"preflight/inventory"
)

// fields are the attributes of each kind; those with a star are needed.
var fields = map[string][]string{
	"file":     {"path*", "content", "absent", "mode", "owner", "after", "secret"},
	"line":     {"path*", "match*", "line*", "mode", "after"},
	"ini":      {"path*", "section", "key*", "value*", "after"},
	"json":     {"path*", "key*", "value*", "after"},
	"package":  {"apt*", "dnf*", "absent", "hold"},
	"unit":     {"name*", "enabled", "running", "content"},
	"kernel":   {"args*"},
	"modprobe": {"name*", "content*", "initramfs"},
	"sysctl":   {"name*", "values*"},
	"limits":   {"name*", "content*"},
	"shell":    {"words*", "check*", "apply*", "undo"},
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

// Scope is what the expressions of a playbook see: the host's facts, the parameters, the declared rig, and the values of the
// finding that called for it.
type Scope struct {
	Host    cty.Value
	Params  map[string]cty.Value
	Rig     *inventory.Rig
	Finding map[string]string
	Debian  bool // update-grub and update-initramfs; else grubby and dracut
}

func (s Scope) context() *hcl.EvalContext {
	params := map[string]cty.Value{}
	maps.Copy(params, s.Params)
	finding := map[string]cty.Value{}
	for k, v := range s.Finding {
		finding[k] = cty.StringVal(v)
	}
	rig := map[string]cty.Value{"name": cty.StringVal(""), "group": cty.StringVal(""), "nic": cty.StringVal(""), "cards": cty.NullVal(cty.Number)}
	if s.Rig != nil {
		rig["name"], rig["group"], rig["nic"] = cty.StringVal(s.Rig.Name), cty.StringVal(s.Rig.Group), cty.StringVal(s.Rig.NIC)
		if s.Rig.Cards != nil {
			rig["cards"] = cty.NumberIntVal(int64(*s.Rig.Cards))
		}
	}
	return &hcl.EvalContext{
		Functions: inventory.Functions(),
		Variables: map[string]cty.Value{"system": cty.ObjectVal(map[string]cty.Value{"debian": cty.BoolVal(s.Debian)}), "host": s.Host, "param": cty.ObjectVal(params), "rig": cty.ObjectVal(rig), "finding": objectOf(finding)},
	}
}

func objectOf(m map[string]cty.Value) cty.Value {
	if len(m) == 0 {
		return cty.EmptyObjectVal
	}
	return cty.ObjectVal(m)
}

// holds evaluates a condition. A fact that was not read makes it unknown: then known is false.
func (s Scope) holds(e hcl.Expression) (yes, known bool, err error) {
	if e == nil {
		return true, true, nil
	}
	v, diags := e.Value(s.context())
	if diags.HasErrors() {
		return false, false, diags
	}
	v, err = convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() {
		return false, false, fmt.Errorf("%s: a condition must be true or false", e.Range())
	}
	if !v.IsKnown() {
		return false, false, nil
	}
	return v.True(), true, nil
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
	"json":     compileJSON,
	"package":  compilePackage,
	"unit":     compileUnit,
	"kernel":   compileKernel,
	"modprobe": compileModprobe,
	"sysctl":   compileSysctl,
	"limits": func(c *compiler) []Resource {
		return []Resource{{File: &File{Path: "/etc/security/limits.d/" + c.text("name") + ".conf", Edit: Whole(c.text("content"))}}}
	},
	"shell": func(c *compiler) []Resource {
		return []Resource{{Command: &Command{Words: c.text("words"), Check: c.text("check"), Apply: c.text("apply"), Undo: c.text("undo")}}}
	},
}
