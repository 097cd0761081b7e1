package playbooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Whole is a file that is ours: its content is what it should be, whatever it was.
func Whole(content string) func(string, bool) (string, error) {
	return func(string, bool) (string, error) { return content, nil }
}

// Line sets one line: the first that matches is replaced, further ones are taken away; without any, the line is added at the
// end.
func Line(match *regexp.Regexp, line string) func(string, bool) (string, error) {
	return func(old string, _ bool) (string, error) {
		var out []string
		done := false
		for l := range strings.Lines(old) {
			text := strings.TrimRight(l, "\n")
			if !match.MatchString(text) {
				out = append(out, text)
				continue
			}
			if !done {
				out = append(out, line)
			}
			done = true
		}
		if !done {
			out = append(out, line)
		}
		return strings.Join(out, "\n") + "\n", nil
	}
}

// INI sets one key of a section; an empty section is what comes before the first.
func INI(section, key, value string) func(string, bool) (string, error) {
	return func(old string, _ bool) (string, error) {
		var out []string
		at, done, last := "", false, -1
		add := func() {
			if at == section && !done {
				rest := append([]string{}, out[last+1:]...)
				out = append(append(out[:last+1], key+" = "+value), rest...)
				done = true
			}
		}
		for l := range strings.Lines(old) {
			text := strings.TrimRight(l, "\n")
			trimmed := strings.TrimSpace(text)
			if strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]") {
				add()
				at = trimmed[1 : len(trimmed)-1]
			}
			name, _, isKey := strings.Cut(trimmed, "=")
			if isKey && at == section && strings.TrimSpace(name) == key {
				if !done {
					out = append(out, key+" = "+value)
				}
				done = true
			} else {
				out = append(out, text)
			}
			if trimmed != "" {
				last = len(out) - 1
			}
		}
		add()
		if !done {
			if section != "" {
				out = append(out, "["+section+"]")
			}
			out = append(out, key+" = "+value)
		}
		return strings.Join(out, "\n") + "\n", nil
	}
}

// JSONKey sets one key of a JSON object, by its path; the other keys stay, in the order in which JSON sorts them.
func JSONKey(path []string, value any) func(string, bool) (string, error) {
	return func(old string, exists bool) (string, error) {
		root := map[string]any{}
		if exists && strings.TrimSpace(old) != "" {
			d := json.NewDecoder(strings.NewReader(old))
			d.UseNumber()
			if err := d.Decode(&root); err != nil {
				return "", fmt.Errorf("it is no JSON object: %w", err)
			}
		}
		at := root
		for _, step := range path[:len(path)-1] {
			next, ok := at[step].(map[string]any)
			if !ok {
				if at[step] != nil {
					return "", fmt.Errorf("%s is no object", step)
				}
				next = map[string]any{}
				at[step] = next
			}
			at = next
		}
		key := path[len(path)-1]
		if was, err := json.Marshal(at[key]); err == nil {
			if is, err := json.Marshal(value); err == nil && bytes.Equal(was, is) && exists {
				return old, nil // as it is, in its own layout
			}
		}
		at[key] = value
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "    ")
		enc.SetEscapeHTML(false)
		err := enc.Encode(root)
		return b.String(), err
	}
}

// decode reads a JSON value; numbers stay as they are written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// errNoPath is a key without a name.
var errNoPath = errors.New("a key needs a path")
