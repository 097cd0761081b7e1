package playbooks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// Scope is what the expressions of a playbook see: the host's facts, the parameters, the declared rig, and the values of the
// finding that called for it.
type Scope struct {
	Host    cty.Value
	Params  map[string]cty.Value
	Rig     *inventory.Rig
	Finding map[string]string
	Debian  bool // update-grub and update-initramfs; else grubby and dracut
	System  System
	Group   Group
	locals  map[string]cty.Value
}

// System is what a playbook may ask of a host beyond its facts.
type System struct {
	Distro        string   // "ubuntu", "debian", "rhel", "fedora" …: ID of os-release
	Version       string   // "24.04": VERSION_ID
	Machine       string   // "x86_64", "aarch64"
	Architectures []string // of the cards, as the catalogue names them: "ada"; nil when one of them is not in it
}

// Group is what a playbook may ask of the rigs that train together with this one.
type Group struct {
	Addresses []string // of the others, as declared
	Driver    string   // version that most of them run; "" when none runs one
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
	architectures := cty.UnknownVal(cty.List(cty.String))
	if s.System.Architectures != nil {
		architectures = list(s.System.Architectures)
	}
	system := map[string]cty.Value{
		"debian": cty.BoolVal(s.Debian), "distro": cty.StringVal(s.System.Distro), "version": cty.StringVal(s.System.Version),
		"machine": cty.StringVal(s.System.Machine), "architectures": architectures,
	}
	group := map[string]cty.Value{"addresses": list(s.Group.Addresses), "driver": cty.StringVal(s.Group.Driver)}
	return &hcl.EvalContext{
		Functions: inventory.Functions(),
		Variables: map[string]cty.Value{
			"host": s.Host, "rig": cty.ObjectVal(rig), "group": cty.ObjectVal(group), "system": cty.ObjectVal(system),
			"param": cty.ObjectVal(params), "finding": objectOf(finding), "local": objectOf(s.locals),
		},
	}
}

func list(words []string) cty.Value {
	if len(words) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(words))
	for i, w := range words {
		out[i] = cty.StringVal(w)
	}
	return cty.ListVal(out)
}

// with works out a playbook's locals, each after those that it names.
func (s Scope) with(p Playbook) (Scope, error) {
	s.locals = map[string]cty.Value{}
	left := slices.Clone(p.Locals)
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(a *hcl.Attribute) bool { return !names(a.Expr, left) })
		if i < 0 {
			return s, fmt.Errorf("%s: local.%s is made of itself", left[0].Range, left[0].Name)
		}
		v, diags := left[i].Expr.Value(s.context())
		if diags.HasErrors() {
			return s, diags
		}
		s.locals[left[i].Name] = v
		left = slices.Delete(left, i, i+1)
	}
	return s, nil
}

// names says whether an expression names one of these locals.
func names(e hcl.Expression, locals []*hcl.Attribute) bool {
	return slices.ContainsFunc(e.Variables(), func(t hcl.Traversal) bool {
		if t.RootName() != "local" || len(t) < 2 {
			return false
		}
		step, ok := t[1].(hcl.TraverseAttr)
		return ok && slices.ContainsFunc(locals, func(a *hcl.Attribute) bool { return a.Name == step.Name })
	})
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

// SystemOf reads the names of distribution and release from what os-release calls itself, and the cards' architectures from
// the catalogue.
func SystemOf(h *facts.Host, cat *catalog.Catalog) System {
	pretty := strings.ToLower(h.OS.Distro.Value)
	s := System{Machine: h.OS.Arch.Value, Version: release.FindString(pretty)}
	for _, d := range []struct{ begins, id string }{
		{"ubuntu", "ubuntu"}, {"debian", "debian"}, {"fedora", "fedora"}, {"red hat", "rhel"}, {"rocky", "rhel"}, {"almalinux", "rhel"}, {"centos", "rhel"}, {"oracle", "rhel"},
	} {
		if strings.HasPrefix(pretty, d.begins) {
			s.Distro = d.id
		}
	}
	for _, c := range h.Cards {
		g, ok := cat.GPU(c.Product, c.MemoryMiB.Value)
		if !ok {
			s.Architectures = nil
			break
		}
		s.Architectures = append(s.Architectures, g.Arch)
	}
	return s
}

// release is a version within a distribution's name.
var release = regexp.MustCompile(`\d+(\.\d+)*`)
