package playbooks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Values are a playbook's parameters: those that are given, the defaults for the rest. A list is given with commas. All
// mistakes come at once.
func (p Playbook) Values(given map[string]string) (map[string]cty.Value, error) {
	var known []string
	out := map[string]cty.Value{}
	for _, x := range p.Params {
		known = append(known, x.Name)
		out[x.Name] = x.Default
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		x, ok := p.Param(name)
		if !ok {
			hint := fmt.Sprintf("; it has %s", strings.Join(known, ", "))
			if m := strings.TrimSuffix(strings.TrimPrefix(meant(name, known), " Did you mean "), "?"); m != "" {
				hint = " (did you mean " + m + "?)"
			}
			errs = append(errs, fmt.Errorf("playbook %s has no parameter %q%s", p.Name, name, hint))
			continue
		}
		v, err := x.value(given[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("playbook %s, %s = %q: %w", p.Name, name, given[name], err))
			continue
		}
		out[name] = v
	}
	return out, errors.Join(errs...)
}

// value reads what a user gave, as the default's type.
func (x Param) value(text string) (cty.Value, error) {
	if len(x.OneOf) > 0 && !slices.Contains(x.OneOf, text) {
		return cty.NilVal, fmt.Errorf("it takes %s", strings.Join(x.OneOf, ", "))
	}
	t := x.Default.Type()
	switch {
	case t.IsTupleType() || t.IsListType():
		var list []cty.Value
		for _, s := range strings.Split(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				list = append(list, cty.StringVal(s))
			}
		}
		return cty.TupleVal(list), nil
	case t == cty.Bool:
		v, err := convert.Convert(cty.StringVal(text), cty.Bool)
		if err != nil {
			return v, errors.New("it takes true or false")
		}
		return v, nil
	case t == cty.Number:
		v, err := convert.Convert(cty.StringVal(text), cty.Number)
		if err != nil {
			return v, errors.New("it takes a number")
		}
		return v, nil
	}
	return cty.StringVal(text), nil
}
