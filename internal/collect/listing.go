package collect

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// files takes the output of `head -c LIMIT /dev/null NAME...`: before each file stands "==> NAME <==", and an empty
// line between two. A file of exactly LIMIT bytes may have been longer, so it is marked truncated, except for
// configuration space, whose size is known.
func (p *parser) files(f frame) error {
	limit, err := strconv.Atoi(f.args[0])
	if err != nil || limit <= 0 {
		return &frameError{f, "a limit was expected"}
	}
	base := f.args[1]
	rest := f.payload
	const opening, closing = "==> ", " <==\n"
	name, content := "", []byte(nil)
	flush := func() error {
		if name == "" || name == "/dev/null" {
			return nil
		}
		full := join(base, name)
		if !cleanPath(full) {
			return &frameError{f, "unusable path " + strconv.Quote(clip(name, 80))}
		}
		p.put(full, content)
		it := facts.Item{Name: full, Status: facts.StatusOK, Bytes: int64(len(content))}
		if len(content) >= limit && !strings.HasSuffix(full, "/config") {
			it.Status, it.Detail = facts.StatusTruncated, fmt.Sprintf("cut at %d bytes", limit)
		}
		if base == "-" || it.Status != facts.StatusOK {
			p.item(it)
		}
		return nil
	}
	for len(rest) > 0 {
		at, head, after := nextHeader(rest, opening, closing, name == "")
		if at < 0 {
			content = rest
			break
		}
		content = rest[:at]
		if err := flush(); err != nil {
			return err
		}
		name, rest, content = head, rest[after:], nil
	}
	if err := flush(); err != nil {
		return err
	}
	if base != "-" {
		p.item(facts.Item{Name: base, Status: facts.StatusOK, Bytes: int64(len(f.payload))})
	}
	return nil
}

// nextHeader finds the next "\n==> NAME <==\n" (without the newline at the very start) whose name could be a path.
// It gives where the content before it ends, the name, and where the next content starts.
func nextHeader(b []byte, opening, closing string, first bool) (at int, name string, after int) {
	from := 0
	for {
		start := 0
		if first && from == 0 && bytes.HasPrefix(b, []byte(opening)) {
			at, start = 0, len(opening)
		} else {
			i := bytes.Index(b[from:], []byte("\n"+opening))
			if i < 0 {
				return -1, "", 0
			}
			at = from + i
			start = at + 1 + len(opening)
		}
		window := b[start:min(len(b), start+512)]
		end := bytes.Index(window, []byte(closing))
		if end > 0 && (cleanPath(string(window[:end])) || string(window[:end]) == "/dev/null") {
			return at, string(window[:end]), start + end + len(closing)
		}
		from = start
	}
}

// links takes `ls -ldn`: of each symlink the name and where it points.
func (p *parser) links(f frame) error {
	base := f.args[0]
	for _, line := range strings.Split(string(f.payload), "\n") {
		if !strings.HasPrefix(line, "l") {
			continue
		}
		left, target, ok := strings.Cut(line, " -> ")
		i := strings.LastIndexByte(left, ' ')
		if !ok || i < 0 {
			continue
		}
		full := join(base, strings.TrimPrefix(left[i+1:], "./"))
		if !cleanPath(full) || len(target) > 1024 || strings.ContainsFunc(target, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return &frameError{f, "unusable link " + strconv.Quote(clip(line, 120))}
		}
		p.snap.Links[full] = target
	}
	if base != "-" {
		p.item(facts.Item{Name: base, Status: facts.StatusOK, Bytes: int64(len(f.payload))})
	}
	p.last = ""
	return nil
}

// dir takes the names in a directory.
func (p *parser) dir(f frame) error {
	if !cleanPath(f.args[0]) {
		return &frameError{f, "unusable path"}
	}
	names := []string{}
	for _, n := range strings.Split(string(f.payload), "\n") {
		if n != "" && cleanPath(n) && !strings.Contains(n, "/") {
			names = append(names, n)
		}
	}
	p.snap.Dirs[f.args[0]] = names
	p.item(facts.Item{Name: f.args[0], Status: facts.StatusOK, Bytes: int64(len(f.payload))})
	p.last = ""
	return nil
}

func join(base, name string) string {
	name = strings.TrimPrefix(name, "./")
	if base == "-" || base == "" {
		return name
	}
	return base + "/" + name
}

// cleanPath says whether a path stays where it is put: relative, without "..", of printable characters.
func cleanPath(s string) bool {
	if s == "" || len(s) > 512 || s[0] == '/' || path.Clean(s) != s || s == ".." || strings.HasPrefix(s, "../") {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '\'' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}
