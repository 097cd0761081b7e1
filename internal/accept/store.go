package accept

import (
	"fmt"
	"os"
	"path/filepath"
)

// RunName is the record of a run that was kept: the same as RecordName, without answers and without a signature.
const RunName = "run.json"

// Store keeps the files of a run in a folder that only its owner can read. It is complete or not there.
func Store(path string, files []File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	for _, f := range files {
		if !plainPath(f.Name) {
			return fmt.Errorf("%q cannot be the name of a file", f.Name)
		}
		at := filepath.Join(tmp, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if _, err := put(at, f.Fill); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if err := os.Chmod(at, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(tmp, path)
}
