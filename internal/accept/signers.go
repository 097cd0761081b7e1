package accept

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Signer is one line of an allowed_signers file, the form of ssh-keygen(1), ALLOWED SIGNERS.
type Signer struct {
	Principals []string // patterns: "ops@vendor.example", "*@vendor.example", "!bob@vendor.example"
	Key        ssh.PublicKey
	Namespaces []string // patterns; empty: any
	After      time.Time
	Before     time.Time
	Line       int
}

// ParseSigners reads an allowed_signers file. A line that cannot be read is an error, since leaving it out could turn a
// known signer into an unknown one without a word. Certificate authorities are refused for the same reason.
func ParseSigners(raw []byte) ([]Signer, error) {
	var out []Signer
	for i, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimSpace(strings.TrimRight(line, "\r"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		s.Line = i + 1
		out = append(out, s)
	}
	return out, nil
}

func parseSigner(line string) (Signer, error) {
	principals, rest, err := firstWord(line)
	if err != nil {
		return Signer{}, err
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil {
		return Signer{}, errors.New("no public key after the names")
	}
	s := Signer{Principals: strings.Split(principals, ","), Key: key}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			s.Namespaces = strings.Split(value, ",")
		case "valid-after":
			s.After, err = signerTime(value)
		case "valid-before":
			s.Before, err = signerTime(value)
		case "cert-authority":
			err = errors.New("cert-authority: signatures by certificates are not supported; use ssh-keygen -Y verify")
		default:
			err = fmt.Errorf("option %q is not known", name)
		}
		if err != nil {
			return Signer{}, err
		}
	}
	return s, nil
}

// firstWord is the names, which may be quoted.
func firstWord(line string) (word, rest string, err error) {
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		word, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", errors.New("a quote is not closed")
		}
	} else if i := strings.IndexAny(line, " \t"); i > 0 {
		word, rest = line[:i], line[i:]
	}
	if word == "" || strings.TrimSpace(rest) == "" {
		return "", "", errors.New("names and a public key are needed")
	}
	return word, strings.TrimSpace(rest), nil
}

// signerTime reads YYYYMMDD[HHMM[SS]][Z]; without Z it is local time.
func signerTime(s string) (time.Time, error) {
	zone := time.Local
	if t, ok := strings.CutSuffix(s, "Z"); ok {
		s, zone = t, time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(s) == len(layout) {
			return time.ParseInLocation(layout, s, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: YYYYMMDD[HHMM[SS]][Z]", s)
}

// Principal finds who a key belongs to, under a name that is wanted or "" for any. It returns the wanted name, or the
// names of the line. The error says why a key that is listed is not taken.
func Principal(signers []Signer, key ssh.PublicKey, want string, at time.Time) (string, error) {
	why := errors.New("its key is not listed")
	for _, s := range signers {
		if !bytes.Equal(s.Key.Marshal(), key.Marshal()) {
			continue
		}
		switch {
		case len(s.Namespaces) > 0 && !matchList(s.Namespaces, Namespace):
			why = fmt.Errorf("line %d allows the key for other namespaces only", s.Line)
		case !s.After.IsZero() && at.Before(s.After):
			why = fmt.Errorf("line %d allows the key from %s on", s.Line, s.After.Format(time.DateTime))
		case !s.Before.IsZero() && !at.Before(s.Before):
			why = fmt.Errorf("line %d allowed the key until %s", s.Line, s.Before.Format(time.DateTime))
		case want != "" && !matchList(s.Principals, want):
			why = fmt.Errorf("line %d lists the key for %s", s.Line, strings.Join(s.Principals, ","))
		case want != "":
			return want, nil
		default:
			return strings.Join(s.Principals, ","), nil
		}
	}
	return "", why
}

// matchList is OpenSSH's pattern list: any pattern that fits, and none with ! that does.
func matchList(patterns []string, name string) bool {
	hit := false
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if ok, _ := path.Match(escapePattern(pattern), name); ok {
			if negated {
				return false
			}
			hit = true
		}
	}
	return hit
}

// escapePattern leaves * and ? their meaning, and takes it from what only path.Match knows. Names have no slashes to stop
// at: both sides would need one.
func escapePattern(p string) string {
	return strings.NewReplacer("[", `\[`, `\`, `\\`).Replace(p)
}

// Fingerprints says whether a key is meant by "SHA256:…".
func Fingerprints(key ssh.PublicKey, want string) bool {
	return slices.Contains([]string{ssh.FingerprintSHA256(key), strings.TrimRight(ssh.FingerprintSHA256(key), "=")}, want)
}
