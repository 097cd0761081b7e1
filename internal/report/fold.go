package report

import (
	"strings"
	"unicode"
)

// wrapped writes prefix and text, folding at the width with a hanging indent.
func (t *textWriter) wrapped(prefix string, indent int, s string) {
	if t.o.Width <= 0 || visible(prefix)+visible(s) <= t.o.Width {
		t.line("%s%s", prefix, s)
		return
	}
	room := max(t.o.Width-max(indent, 0), 20)
	first := max(t.o.Width-visible(prefix), 20)
	lines := fold(s, first, room)
	t.line("%s%s", prefix, lines[0])
	for _, l := range lines[1:] {
		t.line("%s%s", strings.Repeat(" ", indent), l)
	}
}

// fold breaks at spaces, and between characters of Chinese; a word wider than the line stays whole.
func fold(s string, first, rest int) []string {
	var lines []string
	room, line := first, ""
	for _, p := range pieces(s) {
		glue := ""
		if p.spaced && line != "" {
			glue = " "
		}
		switch {
		case line == "":
			line = p.text
		case visible(line)+len(glue)+visible(p.text) <= room:
			line += glue + p.text
		default:
			lines = append(lines, line)
			line, room = p.text, rest
		}
	}
	return append(lines, line)
}

// piece is what a line cannot be broken within; spaced says that a space stood before it.
type piece struct {
	text   string
	spaced bool
}

// closing are marks that may not begin a line.
const closing = "，。；：、！？）》」”%"

// opening are marks that may not end one.
const opening = "（《「“"

// pieces cuts a text at spaces and around each Han character, whose marks stay with it.
func pieces(s string) []piece {
	var out []piece
	for n, word := range strings.Split(s, " ") {
		start, spaced := 0, n > 0
		cut := func(end int) {
			if end > start {
				out = append(out, piece{word[start:end], spaced})
				start, spaced = end, false
			}
		}
		var last rune
		for i, r := range word {
			breaks := unicode.Is(unicode.Han, r) || unicode.Is(unicode.Han, last) || strings.ContainsRune(closing, last)
			if i > 0 && breaks && !strings.ContainsRune(closing, r) && !strings.ContainsRune(opening, last) {
				cut(i)
			}
			last = r
		}
		cut(len(word))
		if word == "" {
			out = append(out, piece{"", spaced})
		}
	}
	return out
}
