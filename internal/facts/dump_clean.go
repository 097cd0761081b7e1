package facts

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
	"unicode/utf16"
)

var (
	terminalCodes = regexp.MustCompile(`\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9])`)
	fence         = regexp.MustCompile("^\\s*(?:```+|~~~+)[\\w+-]*\\s*$")
	quoted        = regexp.MustCompile(`^> ?`)
)

// cleanText undoes what terminals, editors and forums do to a text: UTF-16 and byte order marks (PowerShell), CRLF, control
// codes, hard spaces, code fences, quotation marks before each line, and the indentation of a whole block.
func cleanText(raw []byte) string {
	text := decodeText(raw)
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u00a0", " ", "\u200b", "", "\x00", "").Replace(text)
	if strings.Contains(text, "\x1b") {
		text = terminalCodes.ReplaceAllString(text, "")
	}
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, l := range lines {
		if !fence.MatchString(l) {
			kept = append(kept, l)
		}
	}
	for range 3 { // quotations within quotations
		if !most(kept, func(l string) bool { return quoted.MatchString(l) }) {
			break
		}
		for i, l := range kept {
			kept[i] = quoted.ReplaceAllString(l, "")
		}
	}
	const block = "    "
	if every(kept, func(l string) bool { return strings.HasPrefix(l, block) }) {
		for i, l := range kept {
			kept[i] = strings.TrimPrefix(l, block)
		}
	}
	return strings.Join(kept, "\n")
}

// bareUTF16 tells UTF-16 that has no byte order mark, as an editor leaves it: of plain text every other byte is zero.
func bareUTF16(raw []byte) binary.ByteOrder {
	first := raw[:min(len(raw), 4096)&^1]
	var zero [2]int
	for i, c := range first {
		if c == 0 {
			zero[i&1]++
		}
	}
	switch half := len(first) / 2; {
	case half < 8:
	case zero[1] > half*9/10 && zero[0] == 0:
		return binary.LittleEndian
	case zero[0] > half*9/10 && zero[1] == 0:
		return binary.BigEndian
	}
	return nil
}

// decodeText takes UTF-16, and UTF-8 with or without a byte order mark.
func decodeText(raw []byte) string {
	var order binary.ByteOrder
	from := 0
	switch {
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}):
		order, from = binary.LittleEndian, 2
	case bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		order, from = binary.BigEndian, 2
	default:
		if order = bareUTF16(raw); order == nil {
			return string(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")))
		}
	}
	units := make([]uint16, 0, len(raw)/2)
	for i := from; i+1 < len(raw); i += 2 {
		units = append(units, order.Uint16(raw[i:]))
	}
	return string(utf16.Decode(units))
}

// most says whether nine of ten lines that hold anything are of a kind.
func most(lines []string, is func(string) bool) bool {
	n, yes := 0, 0
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		n++
		if is(l) {
			yes++
		}
	}
	return n > 0 && yes*10 >= n*9
}

func every(lines []string, is func(string) bool) bool {
	n := 0
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n++; !is(l) {
			return false
		}
	}
	return n > 0
}
