package playbooks

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"preflight/inventory"
)

//go:embed data/*.hcl
var shipped embed.FS

// Library is every playbook, by name.
type Library struct {
	Playbooks map[string]Playbook
	Files     map[string]*hcl.File // for snippets
}

// Load reads the playbooks that come with preflight, and those of a folder of the user, which add to them or take their
// place; "" is no folder. All mistakes come at once.
func Load(folder string) (Library, hcl.Diagnostics) {
	l := Library{Playbooks: map[string]Playbook{}, Files: map[string]*hcl.File{}}
	diags := l.folder(shipped, "data", "")
	if folder != "" {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return l, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No folder of playbooks", Detail: folder + " is no folder that can be read."})
		}
		diags = append(diags, l.folder(os.DirFS(folder), ".", folder)...)
	}
	return l, diags
}

// Names lists the playbooks.
func (l Library) Names() []string {
	var out []string
	for n := range l.Playbooks {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// largestPlaybook bounds a file, bytes.
const largestPlaybook = 1 << 20

func (l Library) folder(files fs.FS, dir, shown string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	names, _ := fs.Glob(files, dir+"/*.hcl")
	if dir == "." {
		names, _ = fs.Glob(files, "*.hcl")
	}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		path := filepath.Join(shown, name)
		if err != nil || len(raw) > largestPlaybook {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unreadable playbook", Detail: fmt.Sprintf("%s: %v", path, err)})
			continue
		}
		found, file, d := Parse(path, raw)
		l.Files[path] = file
		diags = append(diags, d...)
		for _, p := range found {
			l.Playbooks[p.Name] = p
		}
	}
	return diags
}

// kinds are the blocks that a task may have.
var kinds = []string{"file", "line", "ini", "json", "package", "unit", "kernel", "modprobe", "sysctl", "limits", "repository", "shell"}

var rootSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "playbook", LabelNames: []string{"name"}}}}

var playbookSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{
		{Name: "title", Required: true},
		{Name: "title_zh"},
		{Name: "doc", Required: true},
		{Name: "clears"},
		{Name: "when"},
		{Name: "why_not"},
		{Name: "notes"},
	},
	Blocks: []hcl.BlockHeaderSchema{{Type: "param", LabelNames: []string{"name"}}, {Type: "locals"}, {Type: "task", LabelNames: []string{"name"}}},
}

var paramSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "default", Required: true}, {Name: "doc", Required: true}, {Name: "one_of"}}}

// Parse reads the playbooks of one file.
func Parse(path string, raw []byte) ([]Playbook, *hcl.File, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(raw, path, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, file, diags
	}
	root, diags := file.Body.Content(rootSchema)
	var out []Playbook
	for _, b := range root.Blocks {
		p, d := parsePlaybook(b)
		diags = append(diags, d...)
		p.Source = path
		out = append(out, p)
	}
	return out, file, diags
}

func parsePlaybook(b *hcl.Block) (Playbook, hcl.Diagnostics) {
	p := Playbook{Name: b.Labels[0]}
	content, diags := b.Body.Content(playbookSchema)
	text := func(name string) string {
		a := content.Attributes[name]
		if a == nil {
			return ""
		}
		v, d := a.Expr.Value(nil)
		diags = append(diags, d...)
		if d.HasErrors() || v.IsNull() || v.Type() != cty.String {
			return ""
		}
		return strings.TrimSpace(v.AsString())
	}
	list := func(name string) []string {
		a := content.Attributes[name]
		if a == nil {
			return nil
		}
		v, d := a.Expr.Value(nil)
		diags = append(diags, d...)
		return texts(v)
	}
	p.Title, p.TitleZh, p.Doc, p.Why = text("title"), text("title_zh"), text("doc"), text("why_not")
	p.Clears, p.Notes = list("clears"), list("notes")
	if a := content.Attributes["when"]; a != nil {
		p.When = a.Expr
	}
	for _, c := range content.Blocks {
		switch c.Type {
		case "param":
			x, d := parseParam(c)
			diags = append(diags, d...)
			p.Params = append(p.Params, x)
		case "locals":
			names, d := c.Body.JustAttributes()
			diags = append(diags, d...)
			for _, a := range names {
				p.Locals = append(p.Locals, a)
			}
			slices.SortFunc(p.Locals, func(a, b *hcl.Attribute) int { return cmp.Compare(a.Name, b.Name) })
		case "task":
			t, d := parseTask(c)
			diags = append(diags, d...)
			p.Tasks = append(p.Tasks, t)
		}
	}
	return p, diags
}

func parseParam(b *hcl.Block) (Param, hcl.Diagnostics) {
	p := Param{Name: b.Labels[0]}
	content, diags := b.Body.Content(paramSchema)
	if a := content.Attributes["default"]; a != nil {
		v, d := a.Expr.Value(nil)
		diags = append(diags, d...)
		p.Default = v
	}
	if a := content.Attributes["doc"]; a != nil {
		v, d := a.Expr.Value(nil)
		diags = append(diags, d...)
		if v.Type() == cty.String && v.IsKnown() {
			p.Doc = v.AsString()
		}
	}
	if a := content.Attributes["one_of"]; a != nil {
		v, d := a.Expr.Value(nil)
		diags = append(diags, d...)
		p.OneOf = texts(v)
	}
	return p, diags
}

func parseTask(b *hcl.Block) (Task, hcl.Diagnostics) {
	t := Task{Name: b.Labels[0], Range: b.DefRange}
	body, ok := b.Body.(*hclsyntax.Body)
	if !ok {
		return t, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Unreadable task", Subject: &b.DefRange}}
	}
	var diags hcl.Diagnostics
	for name, a := range body.Attributes {
		switch name {
		case "when":
			t.When = a.Expr
		case "verify":
			t.Verify = a.Expr
		case "reboot":
			yes, d := rebootAfter(a)
			diags = append(diags, d...)
			t.Reboot = yes
		default:
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsupported attribute", Detail: fmt.Sprintf("%q is not known in a task.%s", name, meant(name, []string{"when", "reboot", "verify"})), Subject: a.NameRange.Ptr()})
		}
	}
	for _, c := range body.Blocks {
		switch {
		case !slices.Contains(kinds, c.Type):
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsupported block", Detail: fmt.Sprintf("%q is no kind of task; there are %s.%s", c.Type, strings.Join(kinds, ", "), meant(c.Type, kinds)), Subject: c.TypeRange.Ptr()})
		case t.Body != nil:
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Two kinds in a task", Detail: "A task does one thing; make a task of its own of the second.", Subject: c.TypeRange.Ptr()})
		default:
			t.Kind, t.Body = c.Type, c.Body
			diags = append(diags, checkKind(c)...)
		}
	}
	if t.Body == nil && !diags.HasErrors() {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Empty task", Detail: "A task needs one block: " + strings.Join(kinds, ", ") + ".", Subject: &b.DefRange})
	}
	return t, diags
}

// rebootAfter reads when a task asks for a reboot: "never" or "if-changed".
func rebootAfter(a *hclsyntax.Attribute) (bool, hcl.Diagnostics) {
	v, diags := a.Expr.Value(nil)
	if !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		switch v.AsString() {
		case "if-changed":
			return true, nil
		case "never":
			return false, nil
		}
	}
	return false, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unknown value", Detail: `reboot takes "never" or "if-changed".`, Subject: a.Expr.Range().Ptr()})
}

func meant(name string, known []string) string {
	if n := inventory.Nearest(name, known); n != "" {
		return fmt.Sprintf(" Did you mean %q?", n)
	}
	return ""
}

// texts is a list of strings; anything else is none.
func texts(v cty.Value) []string {
	if v.IsNull() || !v.IsWhollyKnown() || !v.CanIterateElements() {
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if e.Type() == cty.String && !e.IsNull() {
			out = append(out, e.AsString())
		}
	}
	return out
}
