//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options describe a host that an sshd serves. All but Log and the keys need root, because they need a chroot.
type Options struct {
	Rig    string // directory of a built simulated rig, seen as /rig in the chroot; "" for none
	Shell  string // text of a script that is everybody's login shell; "" for busybox sh
	Banner string // what sshd shows before authentication
	Sudo   string // mode of the sudo of this host (see sudo_test.go); "" leaves the rig's own
	Stubs  map[string]string
	Config string // further lines of sshd_config
	Keys   []hostKey
	Debug  bool
}

// server is one running sshd.
type server struct {
	Port int
	Root string // the host's / as seen from here; "" when it is this machine's
	User string // who may log in with the client's key
	Keys []hostKey

	log logBuffer
	cmd *exec.Cmd
}

func (s *server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// known is how known_hosts names the server.
func (s *server) known() string { return fmt.Sprintf("[127.0.0.1]:%d", s.Port) }

const sshdPath = "/usr/sbin/sshd"

// launch is the first process of a host: it ends sshd with its own standard input, which is a pipe from this process, so that
// nothing outlives the tests however they end. In a process namespace of its own, everything else ends with it.
const launch = `
set -e
if [ -n "$ROOT" ]; then
	mount --make-rprivate / 2>/dev/null || true
	mount -t proc proc "$ROOT/proc"
	for f in null zero full random urandom tty; do mount --bind "/dev/$f" "$ROOT/dev/$f"; done
	if [ -n "$RIG" ]; then mount --bind "$RIG" "$ROOT/rig"; fi
	set -- chroot "$ROOT" "$@"
fi
exec 3<&0
"$@" </dev/null 3<&- &
sshd=$!
(read -r _ <&3 || true; kill "$sshd" 2>/dev/null) &
wait "$sshd" || true
echo "host: sshd has ended" >&2
`

// StartSSHD serves a host on a free port of 127.0.0.1 until the test ends. It skips the test, with the reason, where
// that cannot be done.
func StartSSHD(t *testing.T, o Options) *server {
	t.Helper()
	need(t, o)
	if o.Keys == nil {
		o.Keys = []hostKey{newHostKey(t, "ed25519")}
	}
	s := &server{Keys: o.Keys, User: "root"}
	etc := filepath.Join(t.TempDir(), "etc")
	if os.Geteuid() == 0 {
		s.Root = newChroot(t, o)
		etc = filepath.Join(s.Root, "etc/ssh")
	} else if u, err := user.Current(); err == nil {
		s.User = u.Username
	}
	writeFile(t, filepath.Join(etc, "authorized_keys"), clientKey(t).authorized, 0o644)
	for i, k := range o.Keys {
		writeFile(t, filepath.Join(etc, fmt.Sprintf("host_%d", i)), k.private, 0o600)
	}
	for range 5 { // another process may take the port between its choice and its use
		s.Port = freePort(t)
		writeFile(t, filepath.Join(etc, "sshd_config"), s.config(o, strings.TrimPrefix(etc, s.Root)), 0o600)
		if s.start(t, o, strings.TrimPrefix(etc, s.Root)) {
			return s
		}
	}
	t.Fatalf("sshd does not start:\n%s", s.log.String())
	return nil
}

// need skips a test where its host cannot be had.
func need(t *testing.T, o Options) {
	t.Helper()
	if _, err := os.Stat(sshdPath); err != nil {
		t.Skipf("%s is missing (apt-get install openssh-server)", sshdPath)
	}
	if os.Geteuid() != 0 {
		if o.Rig != "" || o.Shell != "" || o.Banner != "" || o.Sudo != "" || o.Stubs != nil {
			t.Skip("a host of its own needs root, for its chroot and namespaces")
		}
		if shell := loginShell(); strings.HasSuffix(shell, "nologin") || strings.HasSuffix(shell, "false") {
			t.Skipf("the present user may not log in: the shell of uid %d is %s", os.Geteuid(), shell)
		}
		return
	}
	if busybox() == "" {
		t.Skip("no static busybox (apt-get install busybox-static)")
	}
}

// loginShell is the shell of the present user; "" when /etc/passwd does not tell.
func loginShell() string {
	raw, _ := os.ReadFile("/etc/passwd") // other sources of users tell nothing here
	for _, line := range strings.Split(string(raw), "\n") {
		if f := strings.Split(line, ":"); len(f) == 7 && f[2] == strconv.Itoa(os.Geteuid()) {
			return f[6]
		}
	}
	return ""
}

func (s *server) config(o Options, etc string) string {
	lines := []string{
		fmt.Sprintf("ListenAddress 127.0.0.1:%d", s.Port), "AuthorizedKeysFile " + etc + "/authorized_keys", "StrictModes no", "PidFile none",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes", "PermitUserRC no", "UseDNS no", "LogLevel " + o.level(),
		"SetEnv PREFLIGHT_ROOT=" + rigRoot(o) + " PATH=/stubs:/rig/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
	}
	for i := range o.Keys {
		lines = append(lines, fmt.Sprintf("HostKey %s/host_%d", etc, i))
	}
	if o.Banner != "" {
		lines = append(lines, "Banner "+etc+"/banner")
	}
	return strings.Join(append(lines, o.Config), "\n") + "\n"
}

// level of sshd's log. At the level of debugging, sshd also writes into the standard error of sessions.
func (o Options) level() string {
	if o.Debug {
		return "DEBUG1"
	}
	return "VERBOSE"
}

func rigRoot(o Options) string {
	if o.Rig == "" {
		return ""
	}
	return "/rig/root"
}

// start runs sshd and waits until it listens; false when it ended instead.
func (s *server) start(t *testing.T, o Options, etc string) bool {
	t.Helper()
	s.log.Reset()
	cmd := exec.Command("/bin/sh", "-c", launch, "sh", sshdPath, "-D", "-e", "-f", etc+"/sshd_config")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOT=" + s.Root, "RIG=" + o.Rig}
	cmd.Stderr = &s.log
	cmd.WaitDelay = time.Second
	if s.Root != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("a host cannot have namespaces of its own here: %v", err)
	}
	end := func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	s.cmd = cmd
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		switch log := s.log.String(); {
		case strings.Contains(log, "Server listening on 127.0.0.1"):
			t.Cleanup(end)
			return true
		case strings.Contains(log, "host: sshd has ended"), strings.Contains(log, "mount:"):
			end()
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	end()
	return false
}

// sessions are the processes (as seen from here) that sshd made for the connections that are open now.
func (s *server) sessions(t *testing.T) []int {
	t.Helper()
	var out []int
	for _, p := range processes(t, 0) {
		if strings.HasPrefix(p.cmdline, "sshd") && strings.Contains(p.cmdline, "@notty") && s.mine(p) {
			out = append(out, p.pid)
		}
	}
	return out
}

// mine tells whether a process belongs to this host.
func (s *server) mine(p process) bool {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", p.pid))
	return err == nil && s.Root != "" && root == s.Root
}

// process is one row of /proc.
type process struct {
	pid              int
	cmdline, environ string
}

// processes are those of the machine whose number is above one; a process's descendants have higher ones than itself,
// until the numbers wrap.
func processes(t *testing.T, above int) []process {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []process
	for _, d := range dirs {
		p := process{}
		var err error
		if p.pid, err = strconv.Atoi(filepath.Base(d)); err != nil || p.pid <= above {
			continue
		}
		cmdline, _ := os.ReadFile(d + "/cmdline") // it may have ended meanwhile
		environ, _ := os.ReadFile(d + "/environ")
		p.cmdline, p.environ = string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})), string(environ)
		out = append(out, p)
	}
	return out
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// logBuffer keeps what a process writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

var _ io.Writer = (*logBuffer)(nil)
