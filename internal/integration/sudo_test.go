//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/rigsim"
)

// The ways in which the sudo of a host may answer.
const (
	sudoRefuses  = "refuses"  // no password is right
	sudoFree     = "nopasswd" // NOPASSWD
	sudoAsks     = "asks"     // wants the password each time
	sudoRemember = "caches"   // wants it once, then has it cached
)

// password is what the hosts' sudo takes. A command of that name stands in PATH: were the password ever to reach a
// shell as a line, it would run and leave its mark.
const password = "hunter2-correct-horse"

const executedMark = "/tmp/password-was-executed"

// installSudo puts this test's own binary into a host as its setuid sudo. A script cannot stand in here: the kernel
// gives scripts no setuid bit, and the real one reads its password byte by byte, which a shell's read hides.
func installSudo(t *testing.T, root, mode string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	dst := filepath.Join(root, "usr/bin/sudo")
	must(t, copyFile(self, dst))
	must(t, os.Chmod(dst, 0o4755|os.ModeSetuid))
	writeFile(t, filepath.Join(root, "etc/sudo-mode"), mode, 0o644)
	writeFile(t, filepath.Join(root, "stubs", password), "#!/bin/sh\n: >"+executedMark+"\n", 0o755)
	writeFile(t, filepath.Join(root, "stubs/sudo"), "#!/bin/sh\nexec /usr/bin/sudo \"$@\"\n", 0o755)
}

// sudo behaves as sudo(8) does with the options -n, -S, -p, -v and --.
func sudo(args []string) int {
	raw, err := os.ReadFile("/etc/sudo-mode")
	if err != nil {
		return 1
	}
	mode := string(raw)
	if err = syscall.Setgid(0); err == nil {
		err = syscall.Setuid(0)
	}
	if err != nil || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set")
		return 1
	}
	note("argv", strings.Join(os.Args, " ")+"\n")
	var never, validate bool
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		a := args[0]
		args = args[1:]
		switch a {
		case "-n":
			never = true
		case "-v":
			validate = true
		case "-p":
			args = args[1:]
		}
		if a == "--" {
			break
		}
	}
	if code := authenticate(mode, never); code != 0 {
		return code
	}
	if validate {
		return 0
	}
	path := args[0]
	if !strings.Contains(path, "/") {
		path = "/bin/" + path
	}
	fmt.Fprintln(os.Stderr, "sudo: exec:", syscall.Exec(path, args, os.Environ()))
	return 1
}

const cached = "/var/sudo-cached"

// authenticate gives the exit status of a refusal, 0 when the caller may.
func authenticate(mode string, never bool) int {
	if mode == sudoFree {
		return 0
	}
	if _, err := os.Stat(cached); err == nil && mode == sudoRemember {
		return 0
	}
	if never {
		fmt.Fprintln(os.Stderr, "sudo: a password is required")
		return 1
	}
	for tried := range 3 {
		line, ok := readLine()
		if !ok {
			fmt.Fprintln(os.Stderr, "sudo: no password was provided")
			if tried > 0 {
				fmt.Fprintf(os.Stderr, "sudo: %d incorrect password attempt\n", tried)
			}
			return 1
		}
		if line == password && mode != sudoRefuses {
			_ = os.WriteFile(cached, nil, 0o600)
			return 0
		}
		fmt.Fprintln(os.Stderr, "Sorry, try again.")
		note("wrong", line+"\n") // what a sudo that takes a line of the script for a password would see
	}
	fmt.Fprintln(os.Stderr, "sudo: 3 incorrect password attempts")
	return 1
}

// readLine reads standard input up to a newline and no further, as sudo does: the rest belongs to the command.
func readLine() (string, bool) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := os.Stdin.Read(b)
		if n == 0 || err != nil {
			return "", false
		}
		if b[0] == '\n' {
			return string(line), true
		}
		line = append(line, b[0])
	}
}

// note keeps what sudo saw, for the test.
func note(name, text string) {
	f, err := os.OpenFile("/var/sudo-"+name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(text)
	_ = f.Close()
}

// noted is what the host's sudo saw.
func (s *server) noted(name string) string {
	raw, _ := os.ReadFile(filepath.Join(s.Root, "var/sudo-"+name)) // absent when there was nothing
	return string(raw)
}

// watcher looks at the processes of the machine, for a text in a command line or environment.
type watcher struct {
	text  string
	close atomic.Int64 // until when to look without a pause, in nanoseconds
	looks int
	done  chan struct{}
	ended chan struct{}
}

func watch(t *testing.T, text string) *watcher {
	t.Helper()
	w := &watcher{text: text, done: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for ; ; w.looks++ {
			for _, p := range processes(t, os.Getpid()) {
				if strings.Contains(p.cmdline, text) || strings.Contains(p.environ, text) {
					t.Errorf("process %d shows the password: %q", p.pid, p.cmdline)
				}
			}
			pause := 15 * time.Millisecond
			if time.Now().UnixNano() < w.close.Load() {
				pause = 0
			}
			select {
			case <-w.done:
				return
			case <-time.After(pause):
			}
		}
	}()
	return w
}

// closely is called when the password is about to travel: what would show it may live for a millisecond.
func (w *watcher) closely() { w.close.Store(time.Now().Add(300 * time.Millisecond).UnixNano()) }

// stop ends the watch and gives how often it looked.
func (w *watcher) stop() int {
	close(w.done)
	<-w.ended
	return w.looks
}

// TestSudo: how a plain user's run becomes root, or says why not. The password shows nowhere: in no command line or
// environment of the machine, in nothing that the host sends, and in no shell.
func TestSudo(t *testing.T) {
	t.Parallel()
	_, rig, dir := simulated(t, rigsim.Healthy("sudo", 2))
	must(t, os.Remove(filepath.Join(dir, "bin/sudo")))
	w := watch(t, password)
	t.Cleanup(func() {
		if looks := w.stop(); looks < 20 {
			t.Errorf("only %d looks at the processes", looks)
		}
	})
	for _, c := range []struct {
		name, mode string
		typed      string // "" when --ask-become-pass was not given
		root       string
		why        string
		asked      int32
	}{
		{"refused, and no password asked for", sudoAsks, "", "none", "a password is required", 0},
		{"NOPASSWD", sudoFree, "", "sudo", "", 0},
		{"NOPASSWD, although one could be asked", sudoFree, password, "sudo", "", 0},
		{"a password each time", sudoAsks, password, "sudo", "", 1},
		{"a password once, then cached", sudoRemember, password, "sudo", "", 1},
		{"a wrong password", sudoAsks, "wrong-" + password, "none", "incorrect password", 1},
		{"a user who may not", sudoRefuses, password, "none", "incorrect password", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := StartSSHD(t, Options{Rig: dir, Sudo: c.mode})
			cl := newClient(t, s)
			sent := &logBuffer{}
			cl.edit, cl.tee = hasty, sent
			var asked atomic.Int32
			if c.typed != "" {
				cl.o.AskBecome = true
				cl.o.Prompt = func(string, bool) (string, error) { asked.Add(1); w.closely(); return c.typed, nil }
			}
			r := cl.check(t, 40*time.Second, fleet.Options{}, cl.declared(rig, s, "ops"))[0]
			must(t, r.Err)
			m := r.Snapshot.Manifest
			if m.Cut != "" || m.Root != c.root || !strings.Contains(m.RootWhy, c.why) || (m.UID == 0) != (c.root == "sudo") {
				t.Errorf("cut %q, uid %d, root %q because %q; want %q because %q", m.Cut, m.UID, m.Root, m.RootWhy, c.root, c.why)
			}
			if asked.Load() != c.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), c.asked)
			}
			if it, _ := r.Snapshot.Item("sys/firmware/dmi/tables/DMI"); (it.Status != facts.StatusDenied) != (c.root == "sudo") {
				t.Errorf("what only root may read: %+v", it)
			}
			s.keptSecret(t, sent.String(), r)
		})
	}
}

// keptSecret looks for the password in everything that a run leaves, and for lines of the script that sudo took for
// passwords.
func (s *server) keptSecret(t *testing.T, sent string, r fleet.Result) {
	t.Helper()
	if strings.Contains(sent, password) {
		t.Error("the host sent the password back")
	}
	for name, content := range r.Snapshot.Files {
		if strings.Contains(string(content), password) {
			t.Errorf("%s of the snapshot holds the password", name)
		}
	}
	if raw, err := json.Marshal(r.Snapshot.Manifest); err != nil || strings.Contains(string(raw), password) {
		t.Errorf("the manifest holds the password: %v", err)
	}
	if argv := s.noted("argv"); argv == "" || strings.Contains(argv, password) {
		t.Errorf("sudo was called with: %q", argv)
	}
	for _, line := range strings.Split(strings.TrimSpace(s.noted("wrong")), "\n") {
		if line != "" && !strings.HasSuffix(line, password) {
			t.Errorf("sudo took a line for a password: %q", line)
		}
	}
	if left := s.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if strings.Contains(s.log.String(), password) {
		t.Error("sshd's log holds the password")
	}
}
