package playbooks

import (
	"fmt"
	"regexp"
	"strings"
)

// repositoryName is what names its files.
var repositoryName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// fingerprint is that of an OpenPGP key: 40 hexadecimal digits.
var fingerprint = regexp.MustCompile(`^[0-9A-F]{40}$`)

// compileRepository makes a package repository whose key is the expected one: the key is fetched, its fingerprint compared, and
// only then is the source written. The source of apt names that key and no other (signed-by); dnf gets the key's file.
func compileRepository(c *compiler) []Resource {
	name, key, want := c.text("name"), c.text("key"), strings.ToUpper(strings.ReplaceAll(c.text("fingerprint"), " ", ""))
	apt, dnf := c.text("apt"), c.text("dnf")
	switch {
	case c.err != nil:
		return nil
	case !repositoryName.MatchString(name):
		c.err = fmt.Errorf("%s: name = %q: small letters, digits and hyphens", c.task.Range, name)
	case !fingerprint.MatchString(want):
		c.err = fmt.Errorf("%s: fingerprint = %q: 40 hexadecimal digits, as gpg --show-keys prints them", c.task.Range, want)
	case strings.ContainsAny(apt+dnf+key, "\n\r"):
		c.err = fmt.Errorf("%s: a repository is one line", c.task.Range)
	}
	if c.err != nil {
		return nil
	}
	ring := "/usr/share/keyrings/" + name + ".gpg"
	source := File{Path: "/etc/apt/sources.list.d/" + name + ".list", Mode: "0644", Edit: Whole(fmt.Sprintf("deb [signed-by=%s] %s\n", ring, apt))}
	if !c.scope.Debian {
		ring = "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + name
		source = File{Path: "/etc/yum.repos.d/" + name + ".repo", Mode: "0644", Edit: Whole(fmt.Sprintf(
			"[%s]\nname=%s\nbaseurl=%s\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://%s\n", name, name, dnf, ring))}
	}
	at := "\"$R" + ring + "\""
	return []Resource{{Command: &Command{
		Words: fmt.Sprintf("fetch the key of %s from %s, which must be %s", name, key, want),
		Check: "R=${PREFLIGHT_ROOT-}\ntest -s " + at,
		Apply: fetchKey(key, want, at, c.scope.Debian),
		Undo:  "rm -f " + at,
	}}, {File: &source}}
}

// fetchKey fetches a key to a place beside its own and moves it there when the fingerprint is right; apt wants it in binary
// form. gpg works in a home of its own, so that root's stays as it is.
func fetchKey(url, want, at string, binary bool) string {
	keep := ""
	if binary {
		keep = "if grep -q 'BEGIN PGP' \"$t\"; then gpg --batch --yes --dearmor -o \"$t.bin\" \"$t\" && mv \"$t.bin\" \"$t\"; fi\n"
	}
	return fmt.Sprintf(`command -v gpg >/dev/null 2>&1 || { echo 'gpg is missing: install gnupg first'; exit 1; }
mkdir -p "$(dirname %[3]s)"
t=%[3]s.new
GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'rm -rf "$t" "$t.bin" "$GNUPGHOME"' EXIT
if command -v curl >/dev/null 2>&1; then curl -fsSL --max-time 60 -o "$t" %[1]s; else wget -q -T 60 -O "$t" %[1]s; fi || { echo 'the key cannot be fetched: has the host a way to' %[1]s '? Every download has a parameter for a mirror'; exit 1; }
gpg --batch --show-keys --with-colons "$t" 2>/dev/null | grep -q '^fpr:.*:%[2]s:' || { echo 'the key from' %[1]s 'is not %[2]s: nothing was kept'; exit 1; }
%[4]schmod 0644 "$t"
mv "$t" %[3]s
`, quote(url), want, at, keep)
}
