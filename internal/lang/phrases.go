package lang

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
)

//go:embed zh
var zhFiles embed.FS

// maxDepth bounds how deep values within values are translated.
const maxDepth = 4

// phrase is one pair, ready to match.
type phrase struct {
	english string
	chinese string
	re      *regexp.Regexp // nil for a text without placeholders
	literal string         // the longest fixed part: what cannot be missing from a match
	weight  int            // fixed bytes; the heavier match wins
}

// phrasebook is every pair of a language.
type phrasebook struct {
	known  map[string]string // English format -> Chinese format
	fixed  map[string]string // texts without placeholders, as they are said
	frames []phrase          // texts with placeholders, heaviest first
}

// chinese is the embedded phrasebook. Broken data is a mistake of the build, and a test reads it first.
var chinese = sync.OnceValue(func() *phrasebook {
	b, err := load(zhFiles)
	if err != nil {
		panic(err)
	}
	return b
})

// load reads every pair; an English format may be given twice only with the same Chinese.
func load(files fs.FS) (*phrasebook, error) {
	b := &phrasebook{known: map[string]string{}, fixed: map[string]string{}}
	names, err := fs.Glob(files, "zh/*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		english := ""
		for n, line := range strings.Split(string(raw), "\n") {
			switch {
			case english == "" && (strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")):
			case english == "":
				english = line
			default:
				if err := b.add(english, line); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
				}
				english = ""
			}
		}
		if english != "" {
			return nil, fmt.Errorf("%s: %q has no second line", name, english)
		}
	}
	sort.SliceStable(b.frames, func(i, j int) bool { return b.frames[i].weight > b.frames[j].weight })
	return b, nil
}

func (b *phrasebook) add(english, chinese string) error {
	if old, ok := b.known[english]; ok {
		if old != chinese {
			return fmt.Errorf("%q is said in two ways: %q and %q", english, old, chinese)
		}
		return nil
	}
	if e, c := verbs(english), verbs(chinese); !sameVerbs(e, c) {
		return fmt.Errorf("%q has placeholders %v, its Chinese %v", english, e, c)
	}
	b.known[english] = chinese
	if len(verbs(english)) == 0 {
		b.fixed[strings.ReplaceAll(english, "%%", "%")] = strings.ReplaceAll(chinese, "%%", "%")
		return nil
	}
	b.frames = append(b.frames, frame(english, chinese))
	return nil
}

// verb finds a placeholder of fmt: flags, width and precision, an index, and the verb.
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?([-+# 0]*)(\d+)?(\.\d+)?(?:\[(\d+)\])?([a-zA-Z%])`)

// slot is a placeholder: which argument it shows, and how.
type slot struct {
	arg  int
	text string // "%.1f", without an index
}

// verbs lists the placeholders of a format in order; %% is none.
func verbs(format string) []slot {
	var out []slot
	next := 1
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[6] == "%" {
			continue
		}
		arg := next
		if m[1] != "" {
			arg, _ = strconv.Atoi(m[1])
		}
		next = arg + 1
		out = append(out, slot{arg, "%" + m[2] + m[3] + m[4] + m[6]})
	}
	return out
}

// sameVerbs says whether two formats show the same values in the same way, in any order.
func sameVerbs(a, b []slot) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[slot]int{}
	for i := range a {
		count[a[i]]++
		count[b[i]]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// shapes is what a verb prints.
var shapes = map[byte]string{
	'd': `-?\d+`,
	'f': `-?\d+(?:\.\d+)?`,
	'g': `-?\d+(?:\.\d+)?(?:e[-+]\d+)?`,
	'x': `[0-9a-fx]+`,
	't': `true|false`,
}

// frame turns a format into what its texts look like.
func frame(english, chinese string) phrase {
	p := phrase{english: english, chinese: chinese}
	var re strings.Builder
	re.WriteString(`(?s)^`)
	rest := english
	for rest != "" {
		at := verb.FindStringSubmatchIndex(rest)
		fixed := rest
		if at != nil {
			fixed = rest[:at[0]]
		}
		p.weight += len(strings.TrimSpace(fixed))
		if len(fixed) > len(p.literal) {
			p.literal = fixed
		}
		re.WriteString(regexp.QuoteMeta(fixed))
		if at == nil {
			break
		}
		kind := rest[at[1]-1]
		switch shape, ok := shapes[kind]; {
		case kind == '%':
			re.WriteString(`%`)
		case kind == 'q':
			re.WriteString(`"([^"]*)"`)
		case ok:
			re.WriteString(`\s*(` + shape + `)`)
		default:
			re.WriteString(`(.*?)`)
		}
		rest = rest[at[1]:]
	}
	re.WriteString(`$`)
	p.re = regexp.MustCompile(re.String())
	return p
}

// joints are what texts are joined with; a text that is no entry is tried part by part.
var joints = []struct{ english, chinese string }{{"; ", "；"}, {", ", "、"}, {": ", "："}}

func (b *phrasebook) say(text string, depth int) string {
	if s, ok := b.fixed[text]; ok {
		return s
	}
	if depth == 0 {
		return text
	}
	for _, p := range b.frames {
		if !strings.Contains(text, p.literal) {
			continue
		}
		if m := p.re.FindStringSubmatch(text); m != nil {
			return b.fill(p.chinese, m[1:], depth-1)
		}
	}
	for _, j := range joints {
		parts := strings.Split(text, j.english)
		if len(parts) == 1 {
			continue
		}
		changed := false
		for i, part := range parts {
			said := b.say(part, depth-1)
			changed = changed || said != part
			parts[i] = said
		}
		if changed {
			return strings.Join(parts, j.chinese)
		}
	}
	return text
}

// fill puts the values, themselves translated, where the Chinese wants them.
func (b *phrasebook) fill(chinese string, values []string, depth int) string {
	slots := verbs(chinese)
	n := 0
	return verb.ReplaceAllStringFunc(chinese, func(p string) string {
		if strings.HasSuffix(p, "%") {
			return "%"
		}
		value := b.say(values[slots[n].arg-1], depth)
		n++
		if strings.HasSuffix(p, "q") {
			value = `"` + value + `"`
		}
		return value
	})
}
