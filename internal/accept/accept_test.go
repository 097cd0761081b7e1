package accept

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

// key is a fresh key of a kind.
func key(t *testing.T, kind string) ssh.Signer {
	t.Helper()
	var private any
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(name, content string) File {
	return File{name, func(w io.Writer) error { _, err := io.WriteString(w, content); return err }}
}

// made is a bundle of three files.
func made(t *testing.T, name string, k ssh.Signer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	files := []File{text(RecordName, `{"schema":"preflight/accept/v1","verdict":"accepted"}`), text("report.json", "{}"), text("snapshots/node a.tar.gz", "x")}
	if err := Write(path, files, k); err != nil {
		t.Fatal(err)
	}
	return path
}

// checked verifies a bundle as a buyer does.
func checked(path string) (pub ssh.PublicKey, changes []Change, err error) {
	bundle, closer, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer closer()
	manifest, err := ReadFile(bundle, ManifestName, maxManifest)
	if err != nil {
		return nil, nil, err
	}
	signature, err := ReadFile(bundle, SignatureName, maxManifest)
	if err != nil {
		return nil, nil, err
	}
	if pub, err = VerifySignature(manifest, signature); err != nil {
		return nil, nil, err
	}
	sums, err := ParseSums(manifest)
	if err != nil {
		return nil, nil, err
	}
	changes, err = Compare(bundle, sums)
	return pub, changes, err
}

func TestBundleIsIntact(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa"} {
		k := key(t, kind)
		for _, name := range []string{"folder", "build.tar.gz"} {
			path := made(t, name, k)
			if !Looks(path) {
				t.Errorf("%s %s does not look like a bundle", kind, name)
			}
			pub, changes, err := checked(path)
			if err != nil || len(changes) > 0 {
				t.Fatalf("%s %s: %v, %v", kind, name, changes, err)
			}
			if !bytes.Equal(pub.Marshal(), k.PublicKey().Marshal()) {
				t.Error("another key came out")
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	}
}

func TestEveryChangeIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(dir string) error
		want   []Change
	}{
		"changed": {func(d string) error { return os.WriteFile(filepath.Join(d, "report.json"), []byte("{ }"), 0o644) }, []Change{{"report.json", "changed"}}},
		"missing": {func(d string) error { return os.Remove(filepath.Join(d, "report.json")) }, []Change{{"report.json", "missing"}}},
		"added": {func(d string) error {
			return os.WriteFile(filepath.Join(d, "snapshots", "b.tar.gz"), nil, 0o644)
		}, []Change{{"snapshots/b.tar.gz", "added"}}},
		"a link instead": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "report.json")), os.Symlink("/etc/hostname", filepath.Join(d, "report.json")))
		}, []Change{{"report.json", "no plain file"}}},
		"two at once": {func(d string) error {
			return errors.Join(os.WriteFile(filepath.Join(d, RecordName), nil, 0o644), os.Rename(filepath.Join(d, "report.json"), filepath.Join(d, "report2.json")))
		}, []Change{{RecordName, "changed"}, {"report.json", "missing"}, {"report2.json", "added"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t, "folder", key(t, "ed25519"))
			if err := tc.change(dir); err != nil {
				t.Fatal(err)
			}
			_, changes, err := checked(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, changes); d != "" {
				t.Error(d)
			}
		})
	}
}

// A manifest that was changed, or one signed for something else, is no bundle of anybody.
func TestSignatureHoldsTheManifest(t *testing.T) {
	k := key(t, "ed25519")
	manifest := Sums{"a": strings.Repeat("0", 64)}.Marshal()
	good, err := Sign(manifest, k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifySignature(manifest, good); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifySignature(append(manifest, '\n'), good); err == nil {
		t.Error("a changed manifest passes")
	}
	if _, err := VerifySignature(manifest, []byte("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n")); err == nil {
		t.Error("a broken signature passes")
	}
	if _, err := VerifySignature(manifest, nil); err == nil {
		t.Error("no signature passes")
	}
}

func TestManifestPaths(t *testing.T) {
	sum := strings.Repeat("a", 64)
	for _, bad := range []string{"../x", "/etc/passwd", "a/../../x", "./a", "a//b", "a\\b", ".", "a\x1bb", ""} {
		if _, err := ParseSums([]byte(sum + "  " + bad + "\n")); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, bad := range []string{"", "zz  a\n", sum + " a\n", strings.ToUpper(sum) + "  a\n", sum + "  a\n" + sum + "  a\n"} {
		if _, err := ParseSums([]byte(bad)); err == nil {
			t.Errorf("%q is a manifest", bad)
		}
	}
}

func TestWriteReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, nil, key(t, "ed25519")); err == nil {
		t.Error("a file was replaced")
	}
	full := []File{text("a", "x"), {"b", func(io.Writer) error { return errors.New("no space left on device") }}}
	err := Write(filepath.Join(dir, "c.tar.gz"), full, key(t, "ed25519"))
	if err == nil || !strings.Contains(err.Error(), "write b: no space left") {
		t.Errorf("error is %v", err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("half a bundle was left: %v", entries)
	}
}

// A packed bundle cannot write outside of the folder that it is unpacked into.
func TestHostileArchives(t *testing.T) {
	for name, h := range map[string]*tar.Header{
		"climbs":   {Name: "../../evil", Typeflag: tar.TypeReg, Size: 1},
		"absolute": {Name: "/tmp/evil", Typeflag: tar.TypeReg, Size: 1},
		"link":     {Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		"device":   {Name: "a", Typeflag: tar.TypeChar},
		"huge":     {Name: "a", Typeflag: tar.TypeReg, Size: maxBytes + 1},
	} {
		path := filepath.Join(t.TempDir(), "b.tar.gz")
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		tw := tar.NewWriter(zw)
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		_, _ = tw.Write([]byte("x"))
		_ = zw.Close()
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, closer, err := Open(path); err == nil {
			closer()
			t.Errorf("%s was opened", name)
		}
	}
	for _, foreign := range []string{"", "not gzip", "\x1f\x8b\x08"} {
		path := filepath.Join(t.TempDir(), "b.tar.gz")
		if err := os.WriteFile(path, []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", foreign, err)
		}
		if Looks(path) {
			t.Errorf("%q looks like a bundle", foreign)
		}
	}
}

// The line of docs/accept.md, run as it stands there.
func TestSSHKeygenAgrees(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	page, err := os.ReadFile("../../docs/accept.md")
	if err != nil {
		t.Fatal(err)
	}
	line := ""
	for l := range strings.Lines(string(page)) {
		if strings.HasPrefix(l, "ssh-keygen -Y verify") {
			line = strings.TrimSpace(l)
		}
	}
	if line == "" {
		t.Fatal("docs/accept.md has no line ssh-keygen -Y verify")
	}
	k := key(t, "ed25519")
	dir := made(t, "folder", k)
	signers := "ops@vendor.example namespaces=\"" + Namespace + "\" " + string(ssh.MarshalAuthorizedKey(k.PublicKey()))
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "signers"), []byte(signers), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = filepath.Dir(dir)
		if err := os.Rename(dir, filepath.Join(cmd.Dir, "build-17")); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Rename(filepath.Join(cmd.Dir, "build-17"), dir) }()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "Good") {
		t.Errorf("ssh-keygen: %v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err == nil {
		t.Errorf("ssh-keygen takes a changed manifest: %s", out)
	}
}

// A signature of ssh-keygen is one that we take.
func TestWeTakeSSHKeygensSignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	dir := t.TempDir()
	manifest := Sums{"a": strings.Repeat("0", 64)}.Marshal()
	if err := os.WriteFile(filepath.Join(dir, ManifestName), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-q", "-t", "ed25519", "-N", "", "-f", "k"}, {"-Y", "sign", "-f", "k", "-n", Namespace, ManifestName}} {
		cmd := exec.Command("ssh-keygen", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	signature, err := fs.ReadFile(os.DirFS(dir), SignatureName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifySignature(manifest, signature); err != nil {
		t.Error(err)
	}
}
