package accept

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// File is one file of a bundle.
type File struct {
	Name string // path within the bundle, with slashes
	Fill func(io.Writer) error
}

// Write makes a signed bundle: a folder, or one file when path ends in .tar.gz or .tgz. It is built beside its place and
// renamed when it is complete; what is there already is never replaced.
func Write(path string, files []File, key ssh.Signer) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already", path)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	folder := filepath.Join(tmp, "bundle")
	if err := fill(folder, files, key); err != nil {
		return err
	}
	whole := folder
	if packed(path) {
		whole = filepath.Join(tmp, "bundle.tar.gz")
		if err := pack(whole, folder); err != nil {
			return err
		}
	}
	return os.Rename(whole, path)
}

func packed(path string) bool {
	return strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".tgz")
}

// fill writes every file, the manifest and its signature.
func fill(folder string, files []File, key ssh.Signer) error {
	sums := Sums{}
	for _, f := range files {
		if !plainPath(f.Name) {
			return fmt.Errorf("%q cannot be the name of a file in a bundle", f.Name)
		}
		sum, err := put(filepath.Join(folder, filepath.FromSlash(f.Name)), f.Fill)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		sums[f.Name] = sum
	}
	manifest := sums.Marshal()
	signature, err := Sign(manifest, key)
	if err != nil {
		return err
	}
	for name, raw := range map[string][]byte{ManifestName: manifest, SignatureName: signature} {
		if _, err := put(filepath.Join(folder, name), func(w io.Writer) error { _, err := w.Write(raw); return err }); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// put writes one file and gives its SHA-256.
func put(path string, fill func(io.Writer) error) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	err = fill(io.MultiWriter(f, h))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// pack makes one file of a folder.
func pack(path, folder string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zw := gzip.NewWriter(f)
	tw := tar.NewWriter(zw)
	if err := tw.AddFS(os.DirFS(folder)); err != nil {
		return err
	}
	return errors.Join(tw.Close(), zw.Close())
}

// Looks says whether a path may be a bundle: a folder with a manifest and its signature, or a .tar.gz that holds them.
func Looks(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		_, manifest := os.Stat(filepath.Join(path, ManifestName))
		_, record := os.Stat(filepath.Join(path, RecordName))
		return manifest == nil && record == nil
	case !packed(path):
		return false
	}
	found := false
	_ = entries(path, func(name string, _ *tar.Header, _ io.Reader) error {
		if found = name == ManifestName; found {
			return io.EOF
		}
		return nil
	})
	return found
}

// Open gives the files of a bundle. Nothing outside of it can be reached through them. Close takes away what was unpacked.
func Open(path string) (bundle fs.FS, closer func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	folder, clean := path, func() {}
	if !info.IsDir() {
		if folder, err = os.MkdirTemp("", "preflight-bundle-"); err != nil {
			return nil, nil, err
		}
		clean = func() { _ = os.RemoveAll(folder) }
		if err := unpack(path, folder); err != nil {
			clean()
			return nil, nil, err
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		clean()
		return nil, nil, err
	}
	if _, err := root.Stat(ManifestName); err != nil {
		_ = root.Close()
		clean()
		return nil, nil, fmt.Errorf("%s is no acceptance bundle: it has no %s", path, ManifestName)
	}
	return root.FS(), func() { _ = root.Close(); clean() }, nil
}

// unpack takes plain files only, within bounds. A link or a device in it is left out, and then missing or added.
func unpack(path, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files, left := 0, int64(maxBytes)
	return entries(path, func(name string, h *tar.Header, r io.Reader) error {
		if h.Typeflag == tar.TypeDir {
			return nil
		}
		if h.Typeflag != tar.TypeReg || !plainPath(name) {
			return fmt.Errorf("%s: %q in it is no plain file of a bundle", path, h.Name)
		}
		if files++; files > maxFiles || h.Size > left {
			return fmt.Errorf("%s is larger than a bundle may be", path)
		}
		left -= h.Size
		if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s holds %q twice", path, name)
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	})
}

// entries goes through a packed bundle. io.EOF from the visitor ends it early.
func entries(path string, visit func(name string, h *tar.Header, r io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s is no acceptance bundle: neither a folder nor a .tar.gz: %w", path, err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read to its end: %w", path, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
		if name == "" || name == "." {
			continue
		}
		if err := visit(name, h, tr); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
