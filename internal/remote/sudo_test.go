package remote

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeSudo begins every fake: it takes the options apart and can read one line as sudo does, a byte at a time.
const fakeSudo = `#!/bin/sh
echo "sudo $*" >>"$SUDO_LOG"
n=0; s=0
while :; do
	case $1 in
	-n) n=1; shift ;;
	-S) s=1; shift ;;
	-p) shift 2 ;;
	--) shift; break ;;
	*) echo "sudo: bad option $1" >&2; exit 1 ;;
	esac
done
become() { AS_ROOT=1; export AS_ROOT; exec "$@"; }
need() { echo 'sudo: a password is required' >&2; exit 1; }
verify() {
	IFS= read -r given || { echo 'sudo: no password was provided' >&2; exit 1; }
	[ "$given" = "$(cat "$SUDO_LOG.want")" ] && return
	echo 'Sorry, try again.' >&2
	echo 'sudo: 1 incorrect password attempt' >&2
	exit 1
}
`

// sudos are how sudo may be set up. "" means that there is none.
var sudos = map[string]string{
	"absent":     "",
	"NOPASSWD":   `become "$@"`,
	"asks once":  `[ $n = 1 ] && need; [ -e "$SUDO_LOG.stamp" ] || verify; : >"$SUDO_LOG.stamp"; become "$@"`,
	"asks again": `[ $n = 1 ] && need; verify; become "$@"`,
	"never reads": `[ $n = 1 ] && need
become "$@"`, // -n is refused, yet -S does not read: the credential was cached in between
	"not in sudoers": `[ $n = 1 ] && need; verify; echo 'ops is not in the sudoers file.' >&2; exit 1`,
	"requiretty":     `echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1`,
	"lecture": `echo 'We trust you have received the usual lecture' >&2
echo >&2
echo '    #1) Respect the privacy of others.' >&2
need`,
	"only ls": `[ $n = 1 ] && need; verify; case $1 in ls) become "$@" ;; esac; echo 'Sorry, user ops is not allowed to execute /bin/sh as root.' >&2; exit 1`,
}

// sudoHost is a login that is not root. PATH holds only what is linked here; id says 1000 outside sudo, and 0 under it
// (busybox asks its own id, which says nobody).
func sudoHost(t *testing.T, shell, sudo, password string) (s *server, c *client, dir string) {
	t.Helper()
	dir = t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil { // for the user that is not root
		t.Fatal(err)
	}
	for _, tool := range []string{"cat", "cut", "grep", "head", "printf", "sh", "sleep", "tail", "touch", "tr"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	program := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program(filepath.Join(bin, "id"), "#!/bin/sh\n[ -n \"$AS_ROOT\" ] && echo 0 || echo 1000\n")
	if sudo != "" {
		program(filepath.Join(bin, "sudo"), fakeSudo+sudo+"\n")
	}
	login := filepath.Join(dir, "login")
	program(login, "#!/bin/sh\nexec "+shell+"\n")
	program(filepath.Join(dir, "log.want"), password+"\n")
	c = newClient(t)
	s = serve(t, c.pub)
	s.shell, s.nobody = []string{login}, true
	// The login exports names that the bootstrap uses: they must not carry what it puts into them.
	s.env = []string{"PATH=" + bin, "SUDO_LOG=" + filepath.Join(dir, "log"), "pw=x", "N=x", "body=x", "why=x", "ASK=1"}
	knows(t, c.known(), s)
	return s, c, dir
}

// shells are those that may be /bin/sh, with how they are started.
func shells(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, s := range map[string][2]string{"dash": {"dash", "-s"}, "busybox ash": {"busybox", "ash -s"}, "bash as sh": {"bash", "--posix -s"}} {
		path, err := exec.LookPath(s[0])
		if err != nil {
			t.Logf("%s is left out: %v", name, err)
			continue
		}
		found[name] = path + " " + s[1]
	}
	if len(found) == 0 {
		t.Skip("none of dash, busybox and bash is here")
	}
	return found
}

// sudoWant is what a script finds: its rights, why they are no better, and how often a person was asked.
type sudoWant struct {
	root, why string
	asked     int
}

func (w sudoWant) check(t *testing.T, h *Host, dir string) {
	t.Helper()
	// By its path: busybox ash takes an id of its own before the one in PATH.
	script := "echo \"uid $(" + dir + "/bin/id -u) 'quoted' $#\"\ncat # sees no more input\necho end"
	for range 2 { // the second script is not asked for again, and finds the same
		var out bytes.Buffer
		access, err := h.Run(t.Context(), []byte(script), &out)
		uid := map[string]string{"sudo": "0", "none": "1000"}[w.root]
		if err != nil || out.String() != "uid "+uid+" 'quoted' 0\nend\n" {
			t.Errorf("%v, output %q", err, out.String())
		}
		if access.Root != w.root || !strings.Contains(access.Why, w.why) || (access.Why == "") != (w.why == "") {
			t.Errorf("%+v, want %+v", access, w)
		}
	}
}

func TestSudo(t *testing.T) {
	const right = "swordfish of 42"
	for _, tc := range []struct {
		sudo     string
		ask      bool
		password string // what the person types; "" refuses
		want     sudoWant
	}{
		{"absent", true, right, sudoWant{"none", "sudo is not installed", 0}},
		{"NOPASSWD", true, right, sudoWant{"sudo", "", 0}},
		{"NOPASSWD", false, "", sudoWant{"sudo", "", 0}},
		{"asks once", false, "", sudoWant{"none", "a password is required", 0}},
		{"asks once", true, right, sudoWant{"sudo", "", 1}},
		{"asks again", true, right, sudoWant{"sudo", "", 1}},
		{"asks again", true, "guess", sudoWant{"none", "1 incorrect password attempt", 1}},
		{"asks again", true, "", sudoWant{"none", "incorrect password", 1}},
		{"never reads", true, right, sudoWant{"sudo", "", 1}},
		{"not in sudoers", true, right, sudoWant{"none", "not in the sudoers file", 1}},
		{"only ls", true, right, sudoWant{"none", "not allowed to execute /bin/sh", 1}},
		{"requiretty", false, "", sudoWant{"none", "you must have a tty", 0}},
		{"lecture", false, "", sudoWant{"none", "sudo: a password is required", 0}},
	} {
		for shell, start := range shells(t) {
			name := tc.sudo + ", typed " + tc.password + ", " + shell
			t.Run(name, func(t *testing.T) {
				s, c, dir := sudoHost(t, start, sudos[tc.sudo], right)
				asked := 0
				c.o.AskBecome = tc.ask
				c.o.Prompt = func(string, bool) (string, error) {
					if asked++; tc.password == "" {
						return "", errors.New("no answer")
					}
					return tc.password, nil
				}
				h, err := c.dial(t, rigAt(s))
				if err != nil {
					t.Fatal(err)
				}
				tc.want.check(t, h, dir)
				if asked != tc.want.asked {
					t.Errorf("asked %d times, want %d", asked, tc.want.asked)
				}
				if log, _ := os.ReadFile(filepath.Join(dir, "log")); bytes.Contains(log, []byte("swordfish")) {
					t.Errorf("the password is among sudo's arguments: %s", log)
				}
			})
		}
	}
}

// A password that is a command shows whether any shell ran it; one that is rare shows whether any process had it among
// its arguments or in its environment.
func TestSudoPasswordIsSeenByNobody(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc to look through")
	}
	for _, sudo := range []string{"asks once", "asks again", "never reads", "not in sudoers"} {
		for shell, start := range shells(t) {
			t.Run(sudo+", "+shell, func(t *testing.T) {
				mark := filepath.Join(os.TempDir(), "pwned-"+newNonce()) // where nobody may write
				t.Cleanup(func() { _ = os.Remove(mark) })
				password := "touch " + mark
				s, c, dir := sudoHost(t, start, sudos[sudo], password)
				c.o.AskBecome = true
				c.o.Prompt = func(string, bool) (string, error) { return password, nil }
				h, err := c.dial(t, rigAt(s))
				if err != nil {
					t.Fatal(err)
				}
				watch, stop := context.WithCancel(t.Context())
				seen := make(chan []string, 1)
				go func() { seen <- lookFor(watch, mark) }()
				var out bytes.Buffer
				_, err = h.Run(t.Context(), []byte("echo begun; sleep 0.2; echo done"), &out)
				stop()
				if err != nil || out.String() != "begun\ndone\n" {
					t.Errorf("%v, output %q", err, out.String())
				}
				if got := <-seen; len(got) > 0 {
					t.Errorf("the password is visible: %s", got)
				}
				if _, err := os.Stat(mark); err == nil {
					t.Error("a shell ran the password")
				}
				if log, _ := os.ReadFile(filepath.Join(dir, "log")); bytes.Contains(log, []byte(mark)) {
					t.Errorf("the password is among sudo's arguments: %s", log)
				}
			})
		}
	}
}

// lookFor goes through the arguments and environments of all processes until ctx ends.
func lookFor(ctx context.Context, secret string) (found []string) {
	for ctx.Err() == nil {
		for _, kind := range []string{"cmdline", "environ"} {
			files, _ := filepath.Glob("/proc/[0-9]*/" + kind)
			for _, f := range files {
				if raw, err := os.ReadFile(f); err == nil && bytes.Contains(raw, []byte(secret)) {
					found = append(found, f+": "+strings.ReplaceAll(string(raw), "\x00", " "))
				}
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return found
}
