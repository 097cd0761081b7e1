package remediation

import (
	"regexp"
	"strings"
	"unicode"

	"preflight/internal/lang"
)

// values fills placeholders. What comes from a host is cleaned in texts, and in commands used only when it cannot
// mean anything to a shell.
type values struct {
	lang   lang.Language
	params map[string]string // fallback words
	args   map[string]string
}

var (
	placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)
	safeWord    = regexp.MustCompile(`^[0-9A-Za-z/][0-9A-Za-z:._/-]*$`)
)

// rigParam is known to every remedy; without it a command is about all rigs of the inventory.
const rigParam = "rig"

// words fills a text for people.
func (v values) words(s string) string {
	filled := placeholder.ReplaceAllStringFunc(s, func(p string) string {
		name := strings.Trim(p, "{}")
		if a := clean(v.args[name]); a != "" {
			return v.lang.Say(a)
		}
		if name == rigParam {
			return v.lang.Say("the rig")
		}
		if w, ok := v.params[name]; ok {
			return v.lang.Say(w)
		}
		return p
	})
	if v.lang == lang.Zh { // a word of Chinese among others stands without spaces
		filled = closeHan(filled)
	}
	return filled
}

// command fills a text for a shell. A value that is missing or not plainly safe is left for the reader to put in.
func (v values) command(s string) string {
	out := placeholder.ReplaceAllStringFunc(s, func(p string) string {
		name := strings.Trim(p, "{}")
		if a := v.args[name]; safeWord.MatchString(a) {
			return a
		}
		if name == rigParam {
			return ""
		}
		if _, ok := v.params[name]; ok {
			return "<" + strings.ToUpper(name) + ">"
		}
		return p // an awk program or the like
	})
	return strings.TrimRight(out, " ")
}

// given says whether the finding carries all of the names.
func (v values) given(names []string) bool {
	for _, n := range names {
		if v.args[n] == "" {
			return false
		}
	}
	return true
}

// clean takes out what could act on a terminal, and bounds the length.
func clean(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.TrimSpace(s)
}

// closeHan drops single spaces between Chinese characters.
func closeHan(s string) string {
	runes := []rune(s)
	var b strings.Builder
	for i, r := range runes {
		if r == ' ' && i > 0 && i+1 < len(runes) && unicode.Is(unicode.Han, runes[i-1]) && unicode.Is(unicode.Han, runes[i+1]) {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
