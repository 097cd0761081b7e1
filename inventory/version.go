package inventory

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// versionAtLeastFunc is version_at_least(have, want).
var versionAtLeastFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "have", Type: cty.String}, {Name: "want", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		ok, err := VersionAtLeast(args[0].AsString(), args[1].AsString())
		return cty.BoolVal(ok), err
	},
})

var digitRuns = regexp.MustCompile(`[0-9]+`)

// VersionAtLeast compares two versions by their runs of digits, from left to right, a missing run counting as 0.
// Letters and signs between them do not count: F5 < F31, P1.50 > P1.5, and 2.5a is as good as 2.5. A version
// without a digit cannot be compared and is an error.
func VersionAtLeast(have, want string) (bool, error) {
	h, w := digitRuns.FindAllString(have, -1), digitRuns.FindAllString(want, -1)
	if len(h) == 0 || len(w) == 0 {
		return false, fmt.Errorf("version_at_least(%q, %q): a version without a digit cannot be compared", clip(have), clip(want))
	}
	for i := range max(len(h), len(w)) {
		if c := compareDigits(run(h, i), run(w, i)); c != 0 {
			return c > 0, nil
		}
	}
	return true, nil
}

func run(runs []string, i int) string {
	if i < len(runs) {
		return strings.TrimLeft(runs[i], "0")
	}
	return ""
}

// compareDigits compares numbers of any length, given without leading zeros.
func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
