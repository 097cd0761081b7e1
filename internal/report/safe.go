package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe makes control characters visible, so that nothing a host sends can move the cursor, change colours or hide a
// line: ESC becomes \x1b. Bidirectional overrides and Unicode's own line ends are treated alike. Line ends become spaces.
func Safe(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == 0x061c, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
