package diff

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// tree is a part of the facts as JSON has them.
type tree map[string]any

// Normal turns facts into what JSON makes of them, so that both sides have the same types.
func Normal(facts map[string]any) map[string]any {
	raw, err := json.Marshal(facts)
	if err != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	if json.Unmarshal(raw, &out) != nil {
		return map[string]any{}
	}
	return out
}

// at follows a dotted path; nil when it leads nowhere.
func (t tree) at(path string) any {
	var v any = map[string]any(t)
	for _, step := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[step]
	}
	return v
}

// list is the entries of a list that are objects.
func (t tree) list(path string) []tree {
	items, _ := t.at(path).([]any)
	var out []tree
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// leaf is the value of a leaf, which is {value, source, …} or the value itself.
func (t tree) leaf(path string) any {
	v := t.at(path)
	if m, ok := v.(map[string]any); ok {
		return m["value"]
	}
	return v
}

// text is a leaf as a person reads it; "" when it is absent.
func (t tree) text(path string) string { return words(t.leaf(path)) }

// number is a leaf that is a number.
func (t tree) number(path string) (float64, bool) {
	n, ok := t.leaf(path).(float64)
	return n, ok
}

func words(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "on"
		}
		return "off"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, words(x))
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprint(v)
}
