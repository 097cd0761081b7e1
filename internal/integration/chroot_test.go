//go:build linux

package integration

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// passwd has root, sshd's own user, and a plain user with the number that simulated rigs use.
const passwd = "root:*:0:0:root:/root:%[1]s\nsshd:*:105:65534::/run/sshd:/bin/false\nops:*:1000:1000::/home/ops:%[1]s\nnobody:*:65534:65534::/:/bin/false\n"

// busybox is the path of a busybox that needs no libraries, or "".
var busybox = sync.OnceValue(func() string {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return ""
	}
	if out, err := exec.Command("ldd", path).CombinedOutput(); err == nil && strings.Contains(string(out), "=>") {
		return ""
	}
	return path
})

// base is a directory with what every chroot has: busybox, its applets, sshd with its libraries. Chroots link to its
// files, so that twenty of them cost the room of one. TestMain removes it.
var base = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "preflight-base-")
	if err != nil {
		return "", err
	}
	files := []string{sshdPath}
	for _, f := range []string{"/usr/lib/openssh/sshd-session", "/usr/lib/openssh/sshd-auth", "/usr/libexec/openssh/sshd-session", "/usr/libexec/openssh/sshd-auth"} {
		if _, err := os.Stat(f); err == nil { // since OpenSSH 9.8 and 10.0
			files = append(files, f)
		}
	}
	out, err := exec.Command("ldd", files...).Output()
	if err != nil {
		return dir, fmt.Errorf("ldd %v: %w", files, err)
	}
	files = append(files, regexp.MustCompile(`(?m)/\S+(?: \()`).FindAllString(string(out), -1)...)
	for _, f := range files {
		f = strings.TrimSuffix(f, " (")
		if err := copyFile(f, filepath.Join(dir, f)); err != nil {
			return dir, err
		}
	}
	return dir, applets(dir)
})

func applets(dir string) error {
	if err := copyFile(busybox(), filepath.Join(dir, "bin/busybox")); err != nil {
		return err
	}
	list, err := exec.Command(busybox(), "--list").Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(list)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// newChroot makes the tree of a host.
func newChroot(t *testing.T, o Options) string {
	t.Helper()
	from, err := base()
	if err != nil {
		t.Skipf("a chroot cannot be made here: %v", err)
	}
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	must(t, linkTree(from, root))
	for _, d := range []string{"proc", "dev", "rig", "run/sshd", "root", "etc/ssh", "stubs", "var"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, d := range []string{"tmp", "dev/shm", "var/tmp", "home/ops"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
		must(t, os.Chmod(filepath.Join(root, d), 0o777|os.ModeSticky))
	}
	for _, f := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		writeFile(t, filepath.Join(root, "dev", f), "", 0o666)
	}
	shell := "/bin/sh"
	if o.Shell != "" {
		shell = "/bin/login-shell"
		writeFile(t, filepath.Join(root, shell), o.Shell, 0o755)
	}
	writeFile(t, filepath.Join(root, "etc/passwd"), fmt.Sprintf(passwd, shell), 0o644)
	writeFile(t, filepath.Join(root, "etc/group"), "root:*:0:\nops:*:1000:\nnogroup:*:65534:\n", 0o644)
	writeFile(t, filepath.Join(root, "etc/shells"), shell+"\n", 0o644)
	if o.Banner != "" {
		writeFile(t, filepath.Join(root, "etc/ssh/banner"), o.Banner, 0o644)
	}
	writeFile(t, filepath.Join(root, "stubs/dmesg"), "#!/bin/sh\nexec /rig/bin/dmesg\n", 0o755)
	for name, text := range o.Stubs {
		writeFile(t, filepath.Join(root, "stubs", name), text, 0o755)
	}
	if o.Sudo != "" {
		installSudo(t, root, o.Sudo)
	}
	return root
}

// linkTree makes a copy of a tree whose files are hard links.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dst := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(dst, 0o755)
		case d.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		}
		if os.Link(path, dst) == nil {
			return nil
		}
		return copyFile(path, dst)
	})
}

// leftovers are the files that stand in the host's temporary directories.
func (s *server) leftovers(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, d := range []string{"tmp", "dev/shm", "var/tmp"} {
		found, err := filepath.Glob(filepath.Join(s.Root, d, "*"))
		must(t, err)
		out = append(out, found...)
	}
	return out
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode)) // whatever the umask
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
