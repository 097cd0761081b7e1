package accept

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Names within a bundle.
const (
	ManifestName  = "SHA256SUMS"
	SignatureName = "SHA256SUMS.sig"
	RecordName    = "accept.json"
	ReportName    = "report.json"
	PageName      = "report.html"
	SnapshotDir   = "snapshots"
	InventoryDir  = "inventory"
)

// Limits of a bundle that is opened.
const (
	maxFiles    = 20_000
	maxManifest = 4 << 20 // bytes
	maxBytes    = 8 << 30 // bytes, all files together
)

// Sums are the SHA-256 of files by their path in the bundle.
type Sums map[string]string

// Marshal writes the manifest, sorted by path, as `sha256sum -c` reads it.
func (s Sums) Marshal() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s  %s\n", s[name], name)
	}
	return b.Bytes()
}

// ParseSums reads a manifest. A path must be clean and stay within the bundle.
func ParseSums(raw []byte) (Sums, error) {
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("%s: %d bytes, more than a manifest has", ManifestName, len(raw))
	}
	out := Sums{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		switch raw, err := hex.DecodeString(sum); {
		case !ok || err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum):
			return nil, fmt.Errorf("%s:%d: not a line of a manifest", ManifestName, n)
		case !plainPath(name):
			return nil, fmt.Errorf("%s:%d: %q leads out of the bundle or is no plain path", ManifestName, n, name)
		case out[name] != "":
			return nil, fmt.Errorf("%s:%d: %q is listed twice", ManifestName, n, name)
		}
		out[name] = sum
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	if len(out) == 0 || len(out) > maxFiles {
		return nil, fmt.Errorf("%s names %d files", ManifestName, len(out))
	}
	return out, nil
}

// plainPath says whether a path is one that a bundle may have: relative, clean, without control characters.
func plainPath(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Clean(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' })
}

// Change is one way in which a bundle is not as it was signed.
type Change struct {
	File string
	What string // "changed", "missing", "added", "no plain file"
}

func (c Change) String() string { return c.File + ": " + c.What }

// Compare hashes every file of a bundle and names all that differ from the manifest.
func Compare(bundle fs.FS, sums Sums) ([]Change, error) {
	var changes []Change
	seen := map[string]bool{}
	left := int64(maxBytes)
	err := fs.WalkDir(bundle, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || name == ManifestName || name == SignatureName:
			return nil
		case !d.Type().IsRegular():
			seen[name] = true
			changes = append(changes, Change{name, "no plain file"})
			return nil
		case sums[name] == "":
			changes = append(changes, Change{name, "added"})
			return nil
		}
		seen[name] = true
		sum, n, err := hashOf(bundle, name, left)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if left -= n; sum != sums[name] {
			changes = append(changes, Change{name, "changed"})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name := range sums {
		if !seen[name] {
			changes = append(changes, Change{name, "missing"})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.File, b.File) })
	return changes, nil
}

func hashOf(bundle fs.FS, name string, limit int64) (sum string, n int64, err error) {
	f, err := bundle.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err = io.Copy(h, io.LimitReader(f, limit+1))
	if err == nil && n > limit {
		err = errors.New("the bundle is larger than a bundle may be")
	}
	return hex.EncodeToString(h.Sum(nil)), n, err
}
