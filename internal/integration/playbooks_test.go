//go:build linux

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/remote"
	"preflight/internal/stubtools"
	"preflight/inventory"
	"preflight/playbooks"
)

// changed is a host that is provisioned over SSH, as root in its own chroot.
type changed struct {
	*server
	c     *client
	t     *testing.T
	d     *remote.Dialer
	h     *remote.Host
	after int // changes after which the connection is cut, its answer lost; 0: never
}

func newChanged(t *testing.T) *changed {
	t.Helper()
	stubs := stubtools.System()
	maps.Copy(stubs, stubtools.Programs())
	delete(stubs, "chown") // busybox has one, and this host has a root who may
	for name, text := range stubs {
		stubs[name] = "#!/bin/sh\n" + text + "\n"
	}
	s := StartSSHD(t, Options{Stubs: stubs})
	if s.Root == "" {
		t.Skip("changing a host needs one of its own, and that needs root")
	}
	for _, u := range []string{"nvidia-persistenced.service", "chrony.service", "docker.service"} {
		writeFile(t, filepath.Join(s.Root, "state/units", u), "", 0o644)
	}
	writeFile(t, filepath.Join(s.Root, "etc/default/grub"), "GRUB_CMDLINE_LINUX=\"\"\n", 0o644)
	x := &changed{server: s, c: newClient(t, s), t: t}
	x.d = remote.New(x.c.o)
	t.Cleanup(x.d.Close)
	return x
}

// Run implements playbooks.Runner over a connection that is made when there is none.
func (x *changed) Run(ctx context.Context, script []byte) ([]byte, bool, error) {
	if x.h == nil {
		h, err := x.d.Dial(ctx, x.c.rig(x.server, x.User))
		if err != nil {
			return nil, false, err
		}
		x.h = h
	}
	var out bytes.Buffer
	a, err := x.h.Run(ctx, script, &out)
	if bytes.Contains(script, []byte(">>\"$run/record.jsonl\" ||")) && x.after > 0 {
		if x.after--; x.after == 0 {
			_ = x.h.Close()
			x.h = nil
			return nil, false, errors.New("the connection was cut")
		}
	}
	return out.Bytes(), a.Root != "none", err
}

// tree is every file that a playbook may change, with its mode and content.
func (x *changed) tree() string {
	var b strings.Builder
	for _, top := range []string{"etc", "usr", "opt", "root"} {
		_ = filepath.WalkDir(filepath.Join(x.Root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(x.Root, "etc/ssh")) {
				return nil
			}
			info, err := d.Info()
			if err == nil && info.Size() < 1<<16 {
				raw, _ := os.ReadFile(path)
				fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(path, x.Root), info.Mode(), raw)
			}
			return nil
		})
	}
	return b.String()
}

// run applies a playbook as one run.
func (x *changed) run(ctx context.Context, id string, s playbooks.Scope, p playbooks.Playbook, breakLock bool) (playbooks.Applied, error) {
	door, err := playbooks.Open(ctx, x, id, "test@here", breakLock, nil)
	if err != nil {
		return playbooks.Applied{}, err
	}
	done, err := playbooks.Run(ctx, door, s, p, false, nil)
	if x.h == nil { // cut: the lock stays, as it does when a laptop is closed
		return done, err
	}
	return done, errors.Join(err, door.Close(ctx))
}

// twoCards is what the playbooks are told of the host.
func twoCards() playbooks.Scope {
	h := &facts.Host{}
	h.Driver.Version, h.Driver.Loaded, h.Driver.CUDA = facts.Of("570.158.01", "t"), facts.Of(true, "t"), facts.Of("12.8", "t")
	h.Cards = []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}}, {Device: facts.Device{BDF: "0000:21:00.0"}}}
	two := 2
	return playbooks.Scope{
		Host: checks.HostValue(h), Rig: &inventory.Rig{Name: "rig-under-test", Cards: &two}, Debian: true, Finding: map[string]string{"cap_watts": "350"},
		System: playbooks.System{Distro: "ubuntu", Version: "22.04", Machine: "x86_64", Architectures: []string{"ada"}},
		Group:  playbooks.Group{Addresses: []string{"10.0.0.12"}},
	}
}

// Every playbook on a real sshd: a plan touches nothing, the first run changes, the second finds nothing, undo restores; cut
// after every change, the next run makes the rest.
func TestPlaybooks(t *testing.T) {
	t.Parallel()
	lib, diags := playbooks.Load("")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	given := map[string]map[string]string{"time-sync": {"servers": "ntp.example"}}
	for _, name := range lib.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := lib.Playbooks[name], twoCards()
			params, err := p.Values(given[name])
			must(t, err)
			s.Params = params
			x := newChanged(t)
			within(t, 4*time.Minute, func(ctx context.Context) {
				all := x.lifecycle(ctx, s, p)
				for cut := 1; cut <= all; cut++ {
					x.resumed(ctx, s, p, cut, all)
				}
			})
			if left := x.leftovers(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// lifecycle plans, applies, applies again and takes back. It returns how many changes there are.
func (x *changed) lifecycle(ctx context.Context, s playbooks.Scope, p playbooks.Playbook) int {
	before := x.tree()
	plan, err := playbooks.MakePlan(ctx, x, s, p)
	if err != nil || plan.Changes() == 0 || x.tree() != before {
		x.t.Fatalf("plan: %v %+v, touched: %v", err, plan, x.tree() != before)
	}
	done, err := x.run(ctx, "r1", s, p, false)
	if err != nil || done.Changed == 0 {
		x.t.Fatalf("first run: %+v %v", done, err)
	}
	if again, err := x.run(ctx, "r2", s, p, false); err != nil || again.Changed != 0 {
		x.t.Errorf("second run: %+v %v", again, err)
	}
	x.undo(ctx, "r1", before)
	return done.Changed
}

func (x *changed) undo(ctx context.Context, run, before string) {
	if _, _, err := playbooks.Undo(ctx, x, run, "test@here", true); err != nil {
		x.t.Errorf("undo: %v", err)
	}
	must(x.t, os.RemoveAll(filepath.Join(x.Root, "state/packages"))) // what stays by design
	if now := x.tree(); now != before {
		x.t.Errorf("undo left\n%s\nwant\n%s", now, before)
	}
}

// resumed cuts the connection after one of the changes; the next run makes the rest and no more.
func (x *changed) resumed(ctx context.Context, s playbooks.Scope, p playbooks.Playbook, cut, all int) {
	before := x.tree()
	first, second := fmt.Sprintf("cut%d", cut), fmt.Sprintf("rest%d", cut)
	x.after = cut
	if _, err := x.run(ctx, first, s, p, false); err == nil {
		x.t.Fatalf("cut %d was not noticed", cut)
	}
	x.after = 0
	var locked *playbooks.LockedError
	if _, err := x.run(ctx, second, s, p, false); !errors.As(err, &locked) || !strings.HasPrefix(locked.Holder, first+" ") {
		x.t.Errorf("cut %d: the lock does not name the run that was cut: %v", cut, err)
	}
	done, err := x.run(ctx, second, s, p, true)
	if err != nil || done.Changed != all-cut {
		x.t.Errorf("cut %d of %d: resumed with %d changes, %v", cut, all, done.Changed, err)
	}
	if done.Changed > 0 {
		if _, _, err := playbooks.Undo(ctx, x, second, "test@here", true); err != nil {
			x.t.Errorf("undo of the rest: %v", err)
		}
	}
	x.undo(ctx, first, before)
}

// A full disk: nothing half-written stays, and the next run, with room, does it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	lib, _ := playbooks.Load("")
	p, s := lib.Playbooks["memlock"], twoCards()
	s.Params = map[string]cty.Value{}
	for place, want := range map[string]string{
		"etc/security/limits.d":  "the file cannot be written: the disk may be full",
		"var/lib/preflight/runs": "cannot be written",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			x := newChanged(t)
			within(t, time.Minute, func(ctx context.Context) {
				x.full(ctx, "/"+place)
				const theirs = "ls -A /etc/security/limits.d /etc/systemd/system.conf.d 2>/dev/null; true"
				before := x.sh(ctx, theirs)
				done, err := x.run(ctx, "r1", s, p, false)
				if err == nil || !strings.Contains(err.Error(), want) || done.Changed != 0 {
					t.Errorf("%+v %v", done, err)
				}
				if now := x.sh(ctx, theirs); now != before {
					t.Errorf("left %q, there was %q", now, before)
				}
				x.sh(ctx, "rm /"+place+"/filler")
				if done, err := x.run(ctx, "r2", s, p, false); err != nil || done.Changed != 2 {
					t.Errorf("with room: %+v %v", done, err)
				}
			})
		})
	}
}

// sh runs a line on the host.
func (x *changed) sh(ctx context.Context, line string) string {
	out, _, err := x.Run(ctx, []byte(line+"\n"))
	must(x.t, err)
	return string(out)
}

// full puts a small file system on a folder of the host, in the host's own namespace, and fills it.
func (x *changed) full(ctx context.Context, dir string) {
	x.sh(ctx, fmt.Sprintf("mkdir -p %[1]s; mount -t tmpfs -o size=64k tmpfs %[1]s", dir))
	if !strings.Contains(x.sh(ctx, "cat /proc/mounts"), dir+" tmpfs") {
		x.t.Skip("no small file system can be mounted on the host")
	}
	x.sh(ctx, fmt.Sprintf("cat /dev/zero >%s/filler 2>/dev/null; true", dir))
}

// A login that may not be root changes nothing, and is told what would help.
func TestSudoRefusedToChange(t *testing.T) {
	t.Parallel()
	lib, _ := playbooks.Load("")
	p, s := lib.Playbooks["memlock"], twoCards()
	s.Params = map[string]cty.Value{}
	server := StartSSHD(t, Options{Sudo: sudoRefuses})
	x := &changed{server: server, c: newClient(t, server), t: t}
	x.User = "ops"
	x.d = remote.New(x.c.o)
	t.Cleanup(x.d.Close)
	within(t, time.Minute, func(ctx context.Context) {
		if _, err := playbooks.MakePlan(ctx, x, s, p); !errors.Is(err, playbooks.ErrNoRoot) {
			t.Errorf("plan: %v", err)
		}
		if _, err := x.run(ctx, "r1", s, p, false); !errors.Is(err, playbooks.ErrNoRoot) {
			t.Errorf("run: %v", err)
		}
	})
}
