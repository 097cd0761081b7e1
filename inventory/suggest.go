package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the known word that was most likely meant, or "". A word may differ by a third of its letters,
// but at least by two, so that short words still get a suggestion.
func Nearest(given string, known []string) string {
	given = strings.ToLower(given)
	if len(given) > 64 {
		return ""
	}
	best, distance := "", max(2, len(given)/3)+1
	for _, k := range known {
		if d := levenshtein.Distance(given, strings.ToLower(k), nil); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if len(given) >= 3 && (strings.Contains(k, given) || strings.Contains(given, k) && len(k) >= 3) {
			return k
		}
	}
	return ""
}

// didYouMean is a sentence to append to a message, or "".
func didYouMean(given string, known []string) string {
	if s := Nearest(given, known); s != "" {
		return fmt.Sprintf(" Did you mean %q?", s)
	}
	return ""
}

// orList is `a, b or c`, sorted unless the order carries meaning.
func orList(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
