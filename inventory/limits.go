package inventory

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// The functions of this file say what is wrong with a value, or "".

func figure(v cty.Value) float64 {
	f, _ := v.AsBigFloat().Float64()
	return f
}

func shown(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func between(least, most float64) func(cty.Value) string {
	return func(v cty.Value) string {
		if f := figure(v); f < least || f > most || (least == 0 && most == 1 && f == 0) {
			return fmt.Sprintf("%s is out of range; it must be %s to %s%s", shown(f), shown(least), shown(most), map[bool]string{true: ", and not 0"}[least == 0 && most == 1])
		}
		return ""
	}
}

func above(bound float64) func(cty.Value) string {
	return func(v cty.Value) string {
		if f := figure(v); f <= bound || math.IsInf(f, 0) {
			return fmt.Sprintf("%s is not above %s", shown(f), shown(bound))
		}
		return ""
	}
}

func atLeast(bound float64) func(cty.Value) string {
	return func(v cty.Value) string {
		if f := figure(v); f < bound || math.IsInf(f, 0) {
			return fmt.Sprintf("%s is below %s", shown(f), shown(bound))
		}
		return ""
	}
}

func whole(least, most int) func(cty.Value) string {
	return func(v cty.Value) string {
		f := figure(v)
		switch {
		case f != math.Trunc(f):
			return fmt.Sprintf("%s is not a whole number", shown(f))
		case f < float64(least) || f > float64(most):
			return fmt.Sprintf("%s is out of range; it must be %d to %d", shown(f), least, most)
		}
		return ""
	}
}

func laneWidth(v cty.Value) string {
	switch f := figure(v); f {
	case 1, 2, 4, 8, 16:
		return ""
	default:
		return fmt.Sprintf("%s lanes do not exist; it must be 1, 2, 4, 8 or 16", shown(f))
	}
}

func filled(v cty.Value) string {
	if strings.TrimSpace(v.AsString()) == "" {
		return "it is empty"
	}
	if hasControl(v.AsString()) {
		return "it holds a control character"
	}
	return ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) })
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func name(v cty.Value) string { return nameProblem(v.AsString()) }

// nameProblem holds names to what is safe as a file name, a label and an argument.
func nameProblem(s string) string {
	if plainName.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("%q is no name: letters, digits, '.', '_' and '-', not starting with '.' or '-', at most 128", clip(s))
}

// address accepts what may follow `ssh` as its destination, without a user.
func address(v cty.Value) string {
	s := v.AsString()
	switch {
	case filled(v) != "":
		return filled(v)
	case strings.ContainsAny(s, " \t\"'`$;|&<>\\"):
		return fmt.Sprintf("%q holds a character that no host name has", clip(s))
	case strings.HasPrefix(s, "-"):
		return fmt.Sprintf("%q starts with '-'", clip(s))
	case strings.Contains(s, "@"):
		return fmt.Sprintf("%q names a user; write that as ssh { user = %q }", clip(s), clip(s[:strings.Index(s, "@")]))
	case strings.Contains(s, "://"):
		return fmt.Sprintf("%q is a URL; only host or host:port is wanted", clip(s))
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return ""
	}
	if i := strings.LastIndex(s, ":"); i >= 0 {
		port, err := strconv.Atoi(s[i+1:])
		if err != nil || port < 1 || port > 65535 {
			return fmt.Sprintf("%q has no valid port after its colon (1 to 65535)", clip(s))
		}
	}
	return ""
}

var modelSize = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*([KMBTkmbt]?)$`)

func parameters(v cty.Value) string {
	_, problem := ParameterCount(v.AsString())
	return problem
}

func tokens(v cty.Value) string {
	if _, problem := ParameterCount(v.AsString()); problem != "" {
		return fmt.Sprintf("%q is no number of tokens; write \"1B\", \"300M\" or a number", clip(v.AsString()))
	}
	return ""
}

// ParameterCount reads "7B", "350M" or "7000000000". The second result is "" or what is wrong.
func ParameterCount(s string) (float64, string) {
	m := modelSize.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		if f, err := strconv.ParseFloat(s, 64); err == nil && f > 0 && f <= 1e15 {
			return f, ""
		}
		return 0, fmt.Sprintf("%q is no model size; write \"7B\", \"350M\" or a number", clip(s))
	}
	f, _ := strconv.ParseFloat(m[1], 64)
	f *= map[string]float64{"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[strings.ToUpper(m[2])]
	if f <= 0 || f > 1e15 {
		return 0, fmt.Sprintf("%q is no model size", clip(s))
	}
	return f, ""
}

var pciIDPattern = regexp.MustCompile(`^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}$`)

func pciID(v cty.Value) string {
	if pciIDPattern.MatchString(v.AsString()) {
		return ""
	}
	return fmt.Sprintf("%q is no PCI id; write vendor:device, as 10de:2684", clip(v.AsString()))
}

var (
	busAddress = regexp.MustCompile(`^(?:([0-9a-f]{4}|[0-9a-f]{8}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])$`)
	uuidHash   = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

// NormalCard brings the name of a card to one form: "0000:41:00.0" in lower case, the same joined by "/", or a
// UUID hash. The second result is "" or what is wrong.
func NormalCard(s string) (string, string) {
	low := strings.ToLower(strings.TrimSpace(s))
	if uuidHash.MatchString(low) {
		return low, ""
	}
	parts := strings.Split(low, "/")
	for i, p := range parts {
		m := busAddress.FindStringSubmatch(p)
		if m == nil || (len(m[1]) == 8 && !strings.HasPrefix(m[1], "0000")) {
			return "", fmt.Sprintf("%q is no card: write a bus address as 0000:41:00.0 (lspci -D shows them), a path of them joined by '/', or 12 hex digits of a UUID hash", clip(s))
		}
		domain := "0000"
		if m[1] != "" {
			domain = m[1][len(m[1])-4:]
		}
		parts[i] = domain + ":" + m[2]
	}
	return strings.Join(parts, "/"), ""
}
