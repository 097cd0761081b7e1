package facts

import (
	"reflect"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Type is the type of a Host in expressions: the same paths as Tree, with plain values at the leaves.
func Type() cty.Type { return typeOf(reflect.TypeOf(Host{})) }

// Value is a Host in expressions; an absent fact is an unknown value of its type. A list whose kind of fact was not
// read is unknown too: an empty list would let "every card is …" hold with nothing seen.
func Value(h *Host) cty.Value {
	whole := valueOf(reflect.ValueOf(*h)).AsValueMap()
	for name, unread := range map[string]bool{
		"cards": len(h.Cards) == 0, "pci": len(h.PCI) == 0, "windows": len(h.Windows) == 0, "slots": h.Gaps[KindSMBIOS] != "",
		"psus": h.Gaps[KindSMBIOS] != "", "disks": h.Gaps[KindDisks] != "", "topo": h.Gaps[KindTopo] != "", "p2p": h.Gaps[KindP2P] != "",
		"load": len(h.Load) == 0, "nccl": len(h.NCCL) == 0,
	} {
		if unread {
			whole[name] = cty.UnknownVal(whole[name].Type())
		}
	}
	return cty.ObjectVal(whole)
}

var leafType = reflect.TypeOf((*leafer)(nil)).Elem()

func typeOf(t reflect.Type) cty.Type {
	if t.Implements(leafType) {
		return typeOf(t.Field(0).Type)
	}
	switch t.Kind() {
	case reflect.String:
		return cty.String
	case reflect.Bool:
		return cty.Bool
	case reflect.Slice:
		return cty.List(typeOf(t.Elem()))
	case reflect.Map:
		return cty.Map(typeOf(t.Elem()))
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.Struct:
		attrs := map[string]cty.Type{}
		eachField(t, func(name string, f reflect.StructField, _ []int) { attrs[name] = typeOf(f.Type) })
		return cty.Object(attrs)
	}
	return cty.Number
}

// eachField calls fn for every field that has a JSON name; an embedded struct's fields count as its holder's.
func eachField(t reflect.Type, fn func(name string, f reflect.StructField, index []int)) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fn(name, f, f.Index)
		}
	}
}

func valueOf(v reflect.Value) cty.Value {
	t := typeOf(v.Type())
	if v.Type().Implements(leafType) {
		if _, source := v.Interface().(leafer).leaf(); source == "" {
			return cty.UnknownVal(t)
		}
		return valueOf(v.Field(0))
	}
	switch v.Kind() {
	case reflect.String:
		return cty.StringVal(strings.ToValidUTF8(v.String(), "\uFFFD"))
	case reflect.Bool:
		return cty.BoolVal(v.Bool())
	case reflect.Int, reflect.Int64:
		return cty.NumberIntVal(v.Int())
	case reflect.Uint64:
		return cty.NumberUIntVal(v.Uint())
	case reflect.Float64:
		return cty.NumberFloatVal(v.Float())
	case reflect.Slice:
		return listOf(v, t)
	case reflect.Map:
		return mapOf(v, t)
	case reflect.Pointer:
		if v.IsNil() {
			return cty.UnknownVal(t)
		}
		return valueOf(v.Elem())
	case reflect.Struct:
		attrs := map[string]cty.Value{}
		eachField(v.Type(), func(name string, _ reflect.StructField, index []int) { attrs[name] = valueOf(v.FieldByIndex(index)) })
		return cty.ObjectVal(attrs)
	}
	return cty.UnknownVal(t)
}

func listOf(v reflect.Value, t cty.Type) cty.Value {
	if v.Len() == 0 {
		return cty.ListValEmpty(t.ElementType())
	}
	out := make([]cty.Value, v.Len())
	for i := range out {
		out[i] = valueOf(v.Index(i))
	}
	return cty.ListVal(out)
}

func mapOf(v reflect.Value, t cty.Type) cty.Value {
	if v.Len() == 0 {
		return cty.MapValEmpty(t.ElementType())
	}
	out := map[string]cty.Value{}
	for _, k := range v.MapKeys() {
		out[k.String()] = valueOf(v.MapIndex(k))
	}
	return cty.MapVal(out)
}
