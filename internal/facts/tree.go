package facts

import (
	"reflect"
	"strings"
)

// leafer is what every Fact is, whatever its type.
type leafer interface {
	leaf() (value any, source string)
}

// Tree is the host as JSON shows it: nested maps and lists whose leaves are {value, unit, source, at}. An absent
// leaf is missing.
func Tree(h *Host) map[string]any {
	t := treer{at: h.At.UTC().Format("2006-01-02T15:04:05Z")}
	if h.At.IsZero() {
		t.at = ""
	}
	m, _ := t.value(reflect.ValueOf(*h), "").(map[string]any)
	return m
}

type treer struct{ at string }

func (t treer) value(v reflect.Value, unit string) any {
	if l, ok := v.Interface().(leafer); ok {
		return t.leaf(l, unit)
	}
	switch v.Kind() {
	case reflect.Struct:
		return t.object(v)
	case reflect.Slice:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, t.value(v.Index(i), unit))
		}
		return list
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return t.value(v.Elem(), unit)
	}
	return v.Interface()
}

func (t treer) leaf(l leafer, unit string) any {
	value, source := l.leaf()
	if source == "" {
		return nil
	}
	m := map[string]any{"value": value, "source": source}
	if unit != "" {
		m["unit"] = unit
	}
	if t.at != "" {
		m["at"] = t.at
	}
	return m
}

// object walks a struct's fields; an embedded struct's fields belong to its holder.
func (t treer) object(v reflect.Value) map[string]any {
	m := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if inner, ok := t.value(v.Field(i), "").(map[string]any); ok {
				for k, x := range inner {
					m[k] = x
				}
			}
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		if strings.Contains(opts, "omit") && v.Field(i).IsZero() {
			continue
		}
		if x := t.value(v.Field(i), f.Tag.Get("unit")); x != nil {
			m[name] = x
		}
	}
	return m
}
