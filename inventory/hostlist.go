package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// largestHostlist bounds the names of one hostlist.
const largestHostlist = 100_000

// hostlistFunc is hostlist("gpu[01-64,70]"): the notation of Slurm and pdsh.
var hostlistFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "pattern", Type: cty.String}},
	Type:   function.StaticReturnType(cty.List(cty.String)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		names, err := Hostlist(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		out := make([]cty.Value, len(names))
		for i, n := range names {
			out[i] = cty.StringVal(n)
		}
		return cty.ListVal(out), nil
	},
})

// Hostlist expands "gpu[01-64,70],login" into names, in the order written. Leading zeros of a range's start give
// its width; several brackets in one name give every combination. At most 100,000 names.
func Hostlist(pattern string) ([]string, error) {
	var out []string
	items, err := splitOutside(pattern)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, fmt.Errorf("hostlist %q has an empty name", clip(pattern))
		}
		names, err := expand(item, largestHostlist-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}

// splitOutside splits at commas that are not inside brackets.
func splitOutside(s string) ([]string, error) {
	var parts []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
		if depth < 0 || depth > 1 {
			return nil, fmt.Errorf("hostlist %q: brackets do not match", clip(s))
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("hostlist %q: a bracket is not closed", clip(s))
	}
	return append(parts, s[start:]), nil
}

// expand gives every name of one item, of which there may be `room`.
func expand(item string, room int) ([]string, error) {
	names := []string{""}
	for item != "" {
		before, rest, found := strings.Cut(item, "[")
		for i := range names {
			names[i] += before
		}
		if !found {
			break
		}
		inside, after, _ := strings.Cut(rest, "]")
		numbers, err := ranges(inside, room)
		if err != nil {
			return nil, err
		}
		if len(names)*len(numbers) > room {
			return nil, fmt.Errorf("hostlist names more than %d hosts", largestHostlist)
		}
		next := make([]string, 0, len(names)*len(numbers))
		for _, n := range names {
			for _, d := range numbers {
				next = append(next, n+d)
			}
		}
		names, item = next, after
	}
	if len(names) > room {
		return nil, fmt.Errorf("hostlist names more than %d hosts", largestHostlist)
	}
	return names, nil
}

// ranges expands "01-64,70".
func ranges(s string, room int) ([]string, error) {
	var out []string
	for _, part := range strings.Split(s, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			hi = lo
		}
		from, err := digits(lo)
		if err != nil {
			return nil, err
		}
		to, err := digits(hi)
		if err != nil {
			return nil, err
		}
		if to < from {
			return nil, fmt.Errorf("hostlist range %s-%s runs backwards", lo, hi)
		}
		if to-from >= room-len(out) {
			return nil, fmt.Errorf("hostlist names more than %d hosts", largestHostlist)
		}
		for n := from; n <= to; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(lo), n))
		}
	}
	return out, nil
}

func digits(s string) (int, error) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("hostlist: %q is no number of one to nine digits", clip(s))
	}
	return strconv.Atoi(s)
}

// clip keeps a quoted piece of input short enough for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
