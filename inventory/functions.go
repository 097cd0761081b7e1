package inventory

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions are what an expression may call. None reads a file, the environment or the clock: an inventory means
// the same wherever it is loaded.
// Functions are what expressions may call, in an inventory and in playbooks.
func Functions() map[string]function.Function { return functions() }

func functions() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc, "sum": sumFunc,

		"chomp": stdlib.ChompFunc, "join": guarded(stdlib.JoinFunc, joinSize), "lower": stdlib.LowerFunc, "replace": guarded(stdlib.ReplaceFunc, replaceSize),
		"split": stdlib.SplitFunc, "startswith": textTest(strings.HasPrefix), "endswith": textTest(strings.HasSuffix), "substr": stdlib.SubstrFunc,
		"format": guarded(stdlib.FormatFunc, formatSize), "formatlist": guarded(stdlib.FormatListFunc, formatSize), "title": stdlib.TitleFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

		"alltrue": boolFold(true), "anytrue": boolFold(false), "coalesce": stdlib.CoalesceFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc,
		"keys": stdlib.KeysFunc, "length": lengthFunc, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
		"reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": guarded(stdlib.MakeToFunc(cty.Number), numberSize), "tostring": stdlib.MakeToFunc(cty.String),
		"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"can":   tryfunc.CanFunc, "try": tryfunc.TryFunc,

		"hostlist": hostlistFunc, "version_at_least": versionAtLeastFunc,
	}
}

// largestText bounds what one call may build, so that a small file cannot fill the memory.
const largestText = 1 << 20 // bytes

// guarded refuses a call whose result would be out of proportion; size estimates it from the arguments.
func guarded(f function.Function, size func([]cty.Value) int) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if n := size(args); n > largestText {
				return cty.DynamicPseudoType, fmt.Errorf("the result would be about %d bytes long; at most %d are allowed", n, largestText)
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// textOf is a known text, or "".
func textOf(v cty.Value) string {
	if v.IsMarked() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

func joinSize(args []cty.Value) int {
	n := 0
	for _, list := range args[1:] {
		if list.IsKnown() && !list.IsNull() && list.CanIterateElements() {
			n += list.LengthInt()
		}
	}
	return n * len(textOf(args[0]))
}

func replaceSize(args []cty.Value) int {
	text, old, repl := textOf(args[0]), textOf(args[1]), textOf(args[2])
	return len(text) + (strings.Count(text, old) * len(repl))
}

var wideFormat = regexp.MustCompile(`%[-+ #0\[\]\d]*?(\d{5,}|\*)|%[^a-zA-Z%]*\.\d{5,}`)

func formatSize(args []cty.Value) int {
	if wideFormat.MatchString(textOf(args[0])) {
		return largestText + 1
	}
	return 0
}

func numberSize(args []cty.Value) int {
	if hugeNumber.MatchString(textOf(args[0])) {
		return largestText + 1
	}
	return 0
}

func textTest(test func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// boolFold is alltrue (neutral true) or anytrue (neutral false). A decisive element decides even when others are
// unknown, as in three-valued logic.
func boolFold(neutral bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := cty.BoolVal(neutral)
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				switch {
				case !v.IsKnown():
					result = cty.UnknownVal(cty.Bool)
				case v.IsNull():
					if neutral {
						return cty.False, nil
					}
				case v.True() != neutral:
					return cty.BoolVal(!neutral), nil
				}
			}
			return result, nil
		},
	})
}

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		total := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, v := it.Element()
			if v.IsNull() {
				return cty.NilVal, fmt.Errorf("a null cannot be summed")
			}
			total = total.Add(v)
		}
		return total, nil
	},
})

// lengthFunc counts elements, or the characters of a text as Terraform's does.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		switch t := args[0].Type(); {
		case t == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number), nil
		case t == cty.String:
			return stdlib.Strlen(args[0])
		case t.IsObjectType() || t.IsTupleType() || t.IsCollectionType():
			if t.IsObjectType() {
				return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
			}
			return stdlib.Length(args[0])
		}
		return cty.NilVal, function.NewArgErrorf(0, "a text, a list or a map is needed")
	},
})
