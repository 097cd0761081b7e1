package lang

import (
	"fmt"
	"strings"
)

// Language is a language that reports are written in.
type Language string

// The languages.
const (
	En Language = "en"
	Zh Language = "zh"
)

// Parse reads a language as it is given to --lang: "en", "zh", or a longer tag such as "zh-CN".
func Parse(s string) (Language, error) {
	tag, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(s, "_", "-")), "-")
	switch tag {
	case "en":
		return En, nil
	case "zh":
		return Zh, nil
	}
	return En, fmt.Errorf("language %q is not spoken here: en or zh", s)
}

// FromEnv is the language of the locale, by POSIX' order: LC_ALL, LC_MESSAGES, LANG. English when none is Chinese.
func FromEnv(getenv func(string) string) Language {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(value), "zh") {
			return Zh
		}
		return En
	}
	return En
}

// Say says a finished English text in the language. A text, or a part of one, that has no entry stays as it is.
func (l Language) Say(text string) string {
	if l != Zh || text == "" {
		return text
	}
	return chinese().say(text, maxDepth)
}

// Sayf is Say of a formatted text.
func (l Language) Sayf(format string, args ...any) string {
	return l.Say(fmt.Sprintf(format, args...))
}

// Speaks tells whether a literal of the code has an entry, so that tests can demand one. A part of a sentence, which
// begins or ends with a space, is spoken when an entry holds it.
func (l Language) Speaks(literal string) bool {
	if _, ok := chinese().known[literal]; ok || l == En {
		return true
	}
	if strings.TrimSpace(literal) == literal {
		return false
	}
	for english := range chinese().known {
		if strings.Contains(english, literal) {
			return true
		}
	}
	return false
}
