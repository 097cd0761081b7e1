package rigsim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Layout of a built rig's directory.
const (
	rootDir = "root" // what PREFLIGHT_ROOT points at
	binDir  = "bin"  // stub tools, first in PATH
	dataDir = "data" // what the stubs print, and their state
	homeDir = "home" // of the login
)

// Build writes a rig's files and stub tools below dir, which must exist.
func Build(dir string, s Spec) error {
	m, err := newMachine(s)
	if err != nil {
		return err
	}
	return build(dir, m)
}

func build(dir string, m *machine) error {
	t := &tree{dir: filepath.Join(dir, rootDir)}
	writePCI(t, m)
	writeSys(t, m)
	writeProc(t, m)
	writeBlocks(t, m)
	writeSoftware(t, m)
	d := &tree{dir: dir}
	if err := writeTools(d, m); err != nil {
		return err
	}
	stubVersions(d, m)
	d.mkdir(homeDir)
	if t.err != nil {
		return t.err
	}
	return d.err
}

// tree writes files below a directory and keeps the first error.
type tree struct {
	dir string
	err error
}

func (t *tree) mkdir(path string) {
	if t.err == nil {
		t.err = os.MkdirAll(filepath.Join(t.dir, path), 0o755)
	}
}

// file writes a text file; its last line is ended, as the kernel ends them.
func (t *tree) file(path, content string) {
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	t.bytes(path, []byte(content), 0o644)
}

func (t *tree) bytes(path string, content []byte, mode os.FileMode) {
	t.mkdir(filepath.Dir(path))
	if t.err == nil {
		t.err = os.WriteFile(filepath.Join(t.dir, path), content, mode)
	}
}

// link makes a relative symlink at path that leads to target, both below the tree's root.
func (t *tree) link(path, target string) {
	t.mkdir(filepath.Dir(path))
	rel, err := filepath.Rel(filepath.Dir(path), target)
	if t.err == nil {
		t.err = err
	}
	if t.err == nil {
		t.err = os.Symlink(rel, filepath.Join(t.dir, path))
	}
}

func (t *tree) num(path string, n any) { t.file(path, fmt.Sprint(n)) }

func lower(s string) string { return strings.ToLower(s) }

// rootOnly is the mode of a file that only root may read. The login of a user's rig is its owner, so its own
// permission is taken away too (see dropOverride for a server that itself runs as root).
func (t *tree) rootOnly(m *machine) os.FileMode {
	if m.User {
		return 0
	}
	return 0o400
}
