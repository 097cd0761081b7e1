//go:build linux

package integration

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/remote"
	"preflight/internal/rigsim"
)

// trigger calls a function once, when a text has gone by.
type trigger struct {
	text string
	call func()

	mu   sync.Mutex
	seen bytes.Buffer
	once sync.Once
}

func (g *trigger) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.Write(p)
	if bytes.Contains(g.seen.Bytes(), []byte(g.text)) {
		g.once.Do(func() { go g.call() })
	}
	return len(p), nil
}

// TestCutMidStream: the connection breaks while the collector waits for nvidia-smi. What has arrived is kept and
// marked as cut; what has not is never a pass, and the host cleans up behind itself.
func TestCutMidStream(t *testing.T) {
	t.Parallel()
	_, rig, dir := simulated(t, rigsim.Spec{Name: "cut", Cards: 2, Faults: []rigsim.Kind{rigsim.SMIHang}})
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"the session's process is killed", syscall.SIGKILL},
		{"the session's process ends in order", syscall.SIGTERM},
		{"the host stops answering", syscall.SIGSTOP},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := StartSSHD(t, Options{Rig: dir})
			cl := newClient(t, s)
			cl.o.Keepalive = 500 * time.Millisecond
			cl.edit = func(script []byte) []byte {
				return bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 4 "), 1)
			}
			cl.tee = &trigger{text: " cmd cmd/dmesg.txt ", call: func() {
				pids := s.sessions(t)
				if len(pids) == 0 {
					t.Error("no session to cut")
				}
				for _, pid := range pids {
					if err := syscall.Kill(pid, c.signal); err != nil {
						t.Errorf("kill %d: %v", pid, err)
					}
				}
			}}
			begin := time.Now()
			r := cl.check(t, 20*time.Second, fleet.Options{}, cl.declared(rig, s, "root"))[0]
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %s to notice", took)
			}
			cutNotPassed(t, r)
			if c.signal == syscall.SIGSTOP {
				return // its processes stand still, and so cannot clean up
			}
			eventually(t, 15*time.Second, "nothing is left behind on the host", func() bool { return len(s.leftovers(t)) == 0 })
		})
	}
}

// cutNotPassed wants a result that says that and where it was cut, and no verdict on what was to come after.
func cutNotPassed(t *testing.T, r fleet.Result) {
	t.Helper()
	if r.Err != nil {
		refused(t, r.Err, remote.PhaseCommand, "cut")
		return
	}
	if cut := r.Snapshot.Manifest.Cut; !strings.Contains(cut, "cut") && !strings.Contains(cut, "ended") {
		t.Errorf("cut: %q", cut)
	} else {
		t.Logf("cut: %s", cut)
	}
	if v := r.Judged().Verdict(); v == checks.Pass {
		t.Errorf("the rig's verdict is %s", v)
	}
	for _, f := range r.Findings {
		if f.Check == "driver.loaded" && f.Verdict != checks.Unknown {
			t.Errorf("%s %s although nvidia-smi was not heard: %s (%s)", f.Verdict, f.ID, f.Summary, f.Note)
		}
	}
}

// TestHungSMI: one deadline is paid, the driver fails, and the hung processes hold nothing open.
func TestHungSMI(t *testing.T) {
	t.Parallel()
	_, rig, dir := simulated(t, rigsim.Spec{Name: "hung", Cards: 2, Faults: []rigsim.Kind{rigsim.SMIHang}})
	s := StartSSHD(t, Options{Rig: dir})
	cl := newClient(t, s)
	cl.edit = hasty
	begin := time.Now()
	r := cl.check(t, 30*time.Second, fleet.Options{Probe: true}, cl.declared(rig, s, "root"))[0]
	must(t, r.Err)
	if took := time.Since(begin); took > 12*time.Second {
		t.Errorf("it took %s", took)
	}
	if r.Snapshot.Manifest.Cut != "" {
		t.Errorf("cut: %s", r.Snapshot.Manifest.Cut)
	}
	for _, f := range r.Findings {
		if f.Check == "driver.loaded" && f.Verdict != checks.Fail {
			t.Errorf("%s %s: %s, want fail", f.Verdict, f.ID, f.Summary)
		}
	}
	eventually(t, 3*time.Second, "no nvidia-smi is left", func() bool {
		for _, p := range processes(t, 0) {
			if strings.Contains(p.cmdline, "nvidia-smi") && s.mine(p) {
				return false
			}
		}
		return true
	})
	if left := s.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Login shells that are not POSIX shells, or that talk.
const (
	// fish knows one thing, and complains as fish does about everything else.
	fish = `#!/bin/sh
if [ "$#" = 2 ] && [ "$1" = -c ] && [ "$2" = 'exec /bin/sh -s' ]; then exec /bin/sh -s; fi
echo 'fish: Unsupported use of "=". In fish, please use "set VAR value".' >&2
exit 127
`
	// chatty has a profile that prints, also what looks like a frame, and reads nothing.
	chatty = `#!/bin/sh
echo '*** Welcome to gpu-7. All use is logged. ***'
printf '\033[2J\033]0;owned\007 no newline, and a bell\007'
printf '\n@@preflight 00000000000000000000000000000000 end\n'
printf '\npreflight-000000000000000000000000 begin root\n'
echo 'profile: warning' >&2
exec /bin/sh "$@"
`
	endlessLines = `#!/bin/sh
while :; do echo 'Have you tried turning it off and on again?'; done
`
	endlessLine = `#!/bin/sh
cat /dev/zero | tr '\000' x
`
	endlessErrors = `#!/bin/sh
yes 'stderr without end' | head -c 5000000 >&2
exec /bin/sh "$@"
`
	closed = `#!/bin/sh
echo 'This account is currently not available.'
exit 1
`
	silent = `#!/bin/sh
exec sleep 1000
`
)

// TestLogins: what a login prints and which shell it has makes no difference, or is said.
func TestLogins(t *testing.T) {
	t.Parallel()
	_, rig, dir := simulated(t, rigsim.Healthy("login", 2))
	for _, c := range []struct {
		name   string
		shell  string
		banner string
	}{
		{"fish", fish, ""},
		{"banner and a profile that prints", chatty, "\n\x1b[31mAUTHORISED USE ONLY\x1b[0m\n" + strings.Repeat("banner\n", 200)},
		{"megabytes on standard error", endlessErrors, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := StartSSHD(t, Options{Rig: dir, Shell: c.shell, Banner: c.banner})
			cl := newClient(t, s)
			cl.edit = hasty
			r := cl.check(t, 30*time.Second, fleet.Options{}, cl.declared(rig, s, "root"))[0]
			must(t, r.Err)
			if m := r.Snapshot.Manifest; m.Cut != "" || m.Root != "root" {
				t.Errorf("cut %q, root %q", m.Cut, m.Root)
			}
			for _, f := range r.Findings {
				if f.Verdict == checks.Fail || f.Verdict == checks.Warn {
					t.Errorf("%s %s: %s", f.Verdict, f.ID, f.Summary)
				}
			}
			if len(r.Host.Cards) != 2 {
				t.Errorf("%d cards", len(r.Host.Cards))
			}
		})
	}
}

// TestLoginsThatNeverRun: a login that lets no script run is ended and explained.
func TestLoginsThatNeverRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, shell, want string
	}{
		{"endless lines", endlessLines, "start-up files"},
		{"one endless line", endlessLine, "start-up files"},
		{"an account that is closed", closed, "before the script began"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := StartSSHD(t, Options{Shell: c.shell})
			cl := newClient(t, s)
			r := cl.check(t, 15*time.Second, fleet.Options{}, cl.rig(s, "root"))[0]
			if r.Host != nil {
				t.Fatalf("it was judged: %v", r.Findings)
			}
			t.Logf("error: %v", r.Err)
			refused(t, r.Err, remote.PhaseCommand, c.want)
			eventually(t, 5*time.Second, "the login has ended", func() bool {
				for _, p := range processes(t, 0) {
					if strings.Contains(p.cmdline, "login-shell") && s.mine(p) {
						return false
					}
				}
				return true
			})
		})
	}
}

// TestSilentLogin: a login that hangs is given up when the run's time is over.
func TestSilentLogin(t *testing.T) {
	t.Parallel()
	s := StartSSHD(t, Options{Shell: silent})
	cl := newClient(t, s)
	d := remote.New(cl.o)
	defer d.Close()
	begin := time.Now()
	h, err := d.Dial(t.Context(), cl.rig(s, "root"))
	must(t, err)
	defer func() { _ = h.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := h.Run(ctx, []byte("echo in"), io.Discard); err == nil {
		t.Error("a login that says nothing gave no error")
	}
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestEndlessTool: a tool that prints without end costs its own limit and no more.
func TestEndlessTool(t *testing.T) {
	t.Parallel()
	_, rig, dir := simulated(t, rigsim.Healthy("endless", 2))
	for _, c := range []struct {
		name, tool, item, text string
		status                 facts.Status
	}{
		{"nvidia-smi prints for ever", "nvidia-smi", "cmd/nvidia-smi-q.xml", "#!/bin/sh\nexec yes '<gpu>'\n", facts.StatusTruncated},
		{"nvidia-smi never ends a line", "nvidia-smi", "cmd/nvidia-smi-q.xml", "#!/bin/sh\ncat /dev/zero | tr '\\000' x\n", facts.StatusTruncated},
		{"dmesg prints for ever", "dmesg", "cmd/dmesg.txt", "#!/bin/sh\nexec yes '[    0.000000] usb 1-1: hello'\n", facts.StatusTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := StartSSHD(t, Options{Rig: dir, Stubs: map[string]string{c.tool: c.text}})
			cl := newClient(t, s)
			cl.edit = func(script []byte) []byte {
				return bytes.Replace(hasty(script), []byte("cmd/dmesg.txt 15 "), []byte("cmd/dmesg.txt 1 "), 1)
			}
			r := cl.check(t, 40*time.Second, fleet.Options{}, cl.declared(rig, s, "root"))[0]
			must(t, r.Err)
			it, _ := r.Snapshot.Item(c.item)
			t.Logf("%+v; cut %q", it, r.Snapshot.Manifest.Cut)
			if it.Status != c.status || it.Bytes > 5<<20 {
				t.Errorf("%+v, want %s", it, c.status)
			}
			if r.Snapshot.Manifest.Cut != "" {
				t.Errorf("one tool cut the whole: %s", r.Snapshot.Manifest.Cut)
			}
			for _, f := range r.Findings {
				if c.tool == "nvidia-smi" && f.Check == "driver.loaded" && f.Verdict == checks.Pass {
					t.Errorf("%s passed: %s (%s)", f.ID, f.Summary, f.Note)
				}
			}
			eventually(t, 5*time.Second, "nothing is left behind", func() bool { return len(s.leftovers(t)) == 0 })
		})
	}
}
