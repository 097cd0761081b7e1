package playbooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"preflight/internal/stubtools"

	"github.com/zclconf/go-cty/cty"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/inventory"
)

// box is a host in a folder: files below root, and tools that keep their state there and refuse what they do not know.
type box struct {
	t    *testing.T
	root string
	bin  string
	sh   []string
	cut  int // scripts that change something after which the connection is lost; 0: never
	n    int
}

func newBox(t *testing.T, sh string) *box {
	t.Helper()
	b := &box{t: t, root: t.TempDir(), sh: strings.Fields(sh)}
	if _, err := exec.LookPath(b.sh[0]); err != nil {
		t.Skipf("%s is not installed", b.sh[0])
	}
	b.bin = filepath.Join(b.root, "bin")
	for name, text := range stubtools.System() {
		b.write("bin/"+name, "#!/bin/sh\n"+text+"\n")
		if err := os.Chmod(filepath.Join(b.bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(b.root, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) write(path, text string) {
	b.t.Helper()
	full := filepath.Join(b.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) read(path string) string {
	raw, err := os.ReadFile(filepath.Join(b.root, path))
	if err != nil {
		return ""
	}
	return string(raw)
}

// Run implements Runner. When the box is cut, the change is made and its answer is lost.
func (b *box) Run(ctx context.Context, script []byte) ([]byte, bool, error) {
	cmd := exec.CommandContext(ctx, b.sh[0], append(b.sh[1:], "-s")...)
	cmd.Stdin = bytes.NewReader(script)
	cmd.Env = []string{"PATH=" + b.bin + ":/usr/bin:/bin", "PREFLIGHT_ROOT=" + b.root, "HOME=" + b.root}
	out, err := cmd.Output()
	if bytes.Contains(script, []byte(">>\"$run/record.jsonl\" ||")) {
		if b.n++; b.cut > 0 && b.n == b.cut {
			return nil, false, errors.New("the connection was lost")
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return out, true, err
}

// tree is every file of a box but its record and its tools' notes, with its content.
func (b *box) tree() map[string]string {
	out := map[string]string{}
	_ = filepath.Walk(b.root, func(path string, info os.FileInfo, err error) error {
		rel, _ := filepath.Rel(b.root, path)
		if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(rel, "bin/") && !strings.HasPrefix(rel, "state/") && !strings.HasPrefix(rel, "proc/") && !strings.HasPrefix(rel, "sys/") && !strings.HasPrefix(rel, "var/lib/preflight/") {
			out[rel] = fmt.Sprintf("%o %s", info.Mode().Perm(), b.read(rel))
		}
		return nil
	})
	return out
}

func scope(params map[string]string) Scope {
	h := &facts.Host{}
	h.Driver.Version, h.Driver.Loaded = facts.Of("570.158.01", "t"), facts.Of(true, "t")
	s := Scope{Host: checks.HostValue(h), Params: map[string]cty.Value{}, Rig: &inventory.Rig{Name: "node-a"}, Debian: true}
	for k, v := range params {
		s.Params[k] = cty.StringVal(v)
	}
	return s
}

func parsed(t *testing.T, text string) Playbook {
	t.Helper()
	list, _, diags := Parse("test.hcl", []byte(text))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return list[0]
}

const everyKind = `playbook "every" {
  title = "Every kind"
  doc   = "All kinds of tasks."
  param "text" {
    default = "x"
    doc     = "a text"
  }
  task "file" {
    file {
      path    = "/etc/ours.conf"
      content = "value = ${param.text} it's \"quoted\" $HOME \\n\n"
      mode    = "0600"
    }
  }
  task "line" {
    line {
      path  = "/etc/theirs.conf"
      match = "^#?\\s*colour\\b"
      line  = "colour = blue"
    }
  }
  task "ini" {
    ini {
      path    = "/etc/theirs.ini"
      section = "b"
      key     = "k"
      value   = "2"
    }
  }
  task "json" {
    json {
      path  = "/etc/docker/daemon.json"
      key   = ["runtimes", "nvidia", "path"]
      value = "nvidia-container-runtime"
    }
  }
  task "package" {
    package {
      apt  = ["one", "two"]
      dnf  = ["one"]
      hold = true
    }
  }
  task "unit" {
    unit {
      name    = "ours.service"
      content = "[Service]\nExecStart=/bin/true\n"
      enabled = true
      running = true
    }
  }
  task "kernel" {
    kernel {
      args = ["iommu=pt"]
    }
  }
  task "modprobe" {
    modprobe {
      name      = "ours"
      content   = "blacklist nouveau\n"
      initramfs = true
    }
  }
  task "sysctl" {
    sysctl {
      name   = "90-ours"
      values = { "net.core.rmem_max" = 1048576 }
    }
  }
  task "limits" {
    limits {
      name    = "90-ours"
      content = "* - memlock unlimited\n"
    }
  }
  task "shell" {
    shell {
      words = "make a mark"
      check = "test -e $PREFLIGHT_ROOT/etc/mark"
      apply = "touch $PREFLIGHT_ROOT/etc/mark"
      undo  = "rm -f $PREFLIGHT_ROOT/etc/mark"
    }
  }
  task "never" {
    when = host.driver.version == "1"
    shell {
      words = "nothing"
      check = "false"
      apply = "exit 1"
    }
  }
}`

func (b *box) theirs() {
	b.write("etc/theirs.conf", "a = 1\n# colour = red\ncolour = green\nb = 2\n")
	b.write("etc/theirs.ini", "[a]\nk = 1\n\n[b]\nj = 1\n\n[c]\n")
	b.write("etc/docker/daemon.json", "{\"log-driver\": \"journald\", \"size\": 10}")
}

func apply(t *testing.T, b *box, s Scope, p Playbook, run string) (Applied, error) {
	t.Helper()
	door, err := Open(t.Context(), b, run, "test", false, nil)
	if err != nil {
		return Applied{}, err
	}
	done, err := Run(t.Context(), door, s, p, false, nil)
	return done, errors.Join(err, door.Close(t.Context()))
}

// Every kind: planned without a touch, applied and verified, the second run finds nothing, undo puts everything back.
func TestEveryKind(t *testing.T) {
	for _, sh := range []string{"dash", "busybox ash", "bash"} {
		t.Run(sh, func(t *testing.T) {
			p, s := parsed(t, everyKind), scope(map[string]string{"text": "x"})
			b := newBox(t, sh)
			if strings.HasPrefix(sh, "busybox") { // its own sysctl would come before the stub, and set this machine's values
				p.Tasks = slices.DeleteFunc(p.Tasks, func(t Task) bool { return t.Name == "sysctl" })
				b.write("state/sysctl", "# Written by preflight.\nnet.core.rmem_max = 1048576\n")
			}
			changes := len(p.Tasks) // a unit is two, and one task is never done
			b.theirs()
			before := b.tree()
			plan, err := MakePlan(t.Context(), b, s, p)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Changes() != changes || !plan.Reboot() || plan.Tasks[len(plan.Tasks)-1].Skipped == "" {
				t.Errorf("%d changes, reboot %v: %+v", plan.Changes(), plan.Reboot(), plan)
			}
			if d := fmt.Sprint(b.tree()); d != fmt.Sprint(before) {
				t.Errorf("a plan touched the host: %s", d)
			}
			done, err := apply(t, b, s, p, "r1")
			if err != nil || done.Changed != changes || !done.Reboot {
				t.Fatalf("%+v %v", done, err)
			}
			b.holds(t)
			if done, err := apply(t, b, s, p, "r2"); err != nil || done.Changed != 0 {
				t.Errorf("the second run changed %d: %v", done.Changed, err)
			}
			undone, left, err := Undo(t.Context(), b, "r1", "test", false)
			if err != nil || len(undone) != changes || b.read("state/held") != "" || len(left) != 1 || left[0] != "installed and left: one, two" {
				t.Errorf("undo: %d, %v, %v", len(undone), left, err)
			}
			if d := fmt.Sprint(b.tree()); d != fmt.Sprint(before) {
				t.Errorf("undo left\n%s\nwant\n%s", d, before)
			}
		})
	}
}

// holds wants the state that the playbook describes.
func (b *box) holds(t *testing.T) {
	t.Helper()
	for path, want := range map[string]string{
		"etc/ours.conf":   "value = x it's \"quoted\" $HOME \\n\n",
		"etc/theirs.conf": "a = 1\ncolour = blue\nb = 2\n",
		"etc/theirs.ini":  "[a]\nk = 1\n\n[b]\nj = 1\nk = 2\n\n[c]\n",
		"etc/default/grub.d/90-preflight-iommu-pt.cfg": "# Written by preflight.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX iommu=pt\"\n",
		"state/units/ours.service.enabled":             "enabled\n",
		"state/units/ours.service.active":              "active\n",
		"state/sysctl":                                 "# Written by preflight.\nnet.core.rmem_max = 1048576\n",
	} {
		if got := b.read(path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	for path, part := range map[string]string{"etc/docker/daemon.json": "\"nvidia-container-runtime\"", "state/calls": "grub", "state/held": "two"} {
		if !strings.Contains(b.read(path), part) {
			t.Errorf("%s lacks %q: %s", path, part, b.read(path))
		}
	}
	if !strings.Contains(b.read("etc/docker/daemon.json"), "journald") {
		t.Error("a key that was there is gone")
	}
	if info, err := os.Stat(filepath.Join(b.root, "etc/ours.conf")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info, err)
	}
}

// Cut after each change in turn, a run is resumed by running again, and both can be undone.
func TestCutAndResumed(t *testing.T) {
	p, s := parsed(t, everyKind), scope(map[string]string{"text": "x"})
	for cut := 1; cut <= 12; cut++ {
		b := newBox(t, "sh")
		b.theirs()
		before := b.tree()
		b.cut = cut
		door, err := Open(t.Context(), b, "r1", "test", false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), door, s, p, false, nil); err == nil || !strings.Contains(err.Error(), "the connection was lost") {
			t.Fatalf("cut %d: %v", cut, err)
		}
		// The controller died too: the lock is still there, and the next run is told.
		var locked *LockedError
		if _, err := Open(t.Context(), b, "r2", "test", false, nil); !errors.As(err, &locked) || !strings.HasPrefix(locked.Holder, "r1 test") {
			t.Fatalf("cut %d: the lock is %v", cut, err)
		}
		door, err = Open(t.Context(), b, "r2", "test", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		done, err := Run(t.Context(), door, s, p, false, nil)
		if err != nil || done.Changed != 12-cut {
			t.Errorf("cut %d: resumed with %d changes, %v", cut, done.Changed, err)
		}
		if err := door.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.holds(t)
		for _, run := range []string{"r2", "r1"} {
			if _, _, err := Undo(t.Context(), b, run, "test", false); err != nil && cut < 12 {
				t.Errorf("cut %d: undo %s: %v", cut, run, err)
			}
		}
		if d := fmt.Sprint(b.tree()); d != fmt.Sprint(before) {
			t.Errorf("cut %d: undo left\n%s\nwant\n%s", cut, d, before)
		}
	}
}

func TestFailuresAreClear(t *testing.T) {
	s := scope(nil)
	for name, tc := range map[string]struct{ body, want string }{
		"a package that is not there":  {`package { apt = ["broken"], dnf = [] }`, "Unable to locate package broken"},
		"a command that fails":         {`shell { words = "w", check = "false", apply = "echo why >&2; exit 3" }`, "why"},
		"a command that does not help": {`shell { words = "w", check = "false", apply = "true" }`, "applied, and it is still not so"},
		"a folder in the way":          {`file { path = "/etc/dir", content = "x" }`, "no plain file"},
		"broken JSON":                  {`json { path = "/etc/bad.json", key = ["a"], value = 1 }`, "no JSON object"},
		"a relative path":              {`file { path = "etc/x", content = "x" }`, "no absolute path"},
		"a climbing path":              {`file { path = "/etc/../x", content = "x" }`, "no absolute path"},
		"a parameter of the kernel":    {`kernel { args = ["a\" ; rm -rf /"] }`, "no parameter of the kernel"},
		"a fact that was not read":     {`file { path = "/etc/x", content = host.bios.version }`, "a fact that was not read"},
	} {
		body := strings.NewReplacer("{ ", "{\n", " }", "\n}", ", ", "\n").Replace(tc.body)
		if strings.Contains(tc.body, `["a"], value`) || strings.Contains(tc.body, "apt") {
			body = strings.NewReplacer("{ ", "{\n", " }", "\n}", "], ", "]\n", "\", key", "\"\nkey").Replace(tc.body)
		}
		p := parsed(t, "playbook \"p\" {\n title = \"t\"\n doc = \"d\"\n task \"one\" {\n"+body+"\n}\n}\n")
		b := newBox(t, "sh")
		b.write("etc/dir/x", "")
		b.write("etc/bad.json", "{")
		if _, err := apply(t, b, s, p, "r"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(b.root, "var/lib/preflight/lock")); err == nil {
			t.Errorf("%s: the lock stays", name)
		}
	}
}

// A host that lies cannot make a plan of nothing, nor bring anything into a shell.
func TestHostileHost(t *testing.T) {
	p, s := parsed(t, everyKind), scope(map[string]string{"text": "x"})
	for name, r := range map[string]Runner{
		"silent":     liar{""},
		"noise":      liar{strings.Repeat("x\n", 1000)},
		"wrong":      liar{"\nnonce file 0 0644 root:root\nzz\nnonce end\n"},
		"no root":    noRoot{},
		"no answers": liar{"\nnonce end\n"},
	} {
		if plan, err := MakePlan(t.Context(), r, s, p); err == nil {
			t.Errorf("%s: a plan of %d changes", name, plan.Changes())
		}
	}
	b := newBox(t, "sh")
	b.write("var/lib/preflight/runs/r1/record.jsonl", `{"run":"r1","n":1,"kind":"unit","unit":"x; touch /tmp/evil","enabled":"disabled"}`+"\n"+`{"run":"r1","n":2,"kind":"file","path":"relative"}`+"\n"+`{"run":"r1","n":3,"kind":"file","path":"/etc/$(touch $PREFLIGHT_ROOT/evil)\"; touch $PREFLIGHT_ROOT/evil; \""}`+"\n")
	_, _, _ = Undo(t.Context(), b, "r1", "test", false)
	if _, err := os.Stat(filepath.Join(b.root, "evil")); err == nil {
		t.Error("a record was run as a shell")
	}
}

type liar struct{ text string }

func (l liar) Run(_ context.Context, script []byte) ([]byte, bool, error) {
	nonce := ""
	if _, after, ok := strings.Cut(string(script), "N='"); ok {
		nonce, _, _ = strings.Cut(after, "'")
	}
	return []byte(strings.ReplaceAll(l.text, "nonce", nonce)), true, nil
}

type noRoot struct{}

func (noRoot) Run(context.Context, []byte) ([]byte, bool, error) { return nil, false, nil }

// Two runs at once: the second is told who holds the host, and touches nothing.
func TestTwoRunsAtOnce(t *testing.T) {
	b := newBox(t, "sh")
	first, err := Open(t.Context(), b, "r1", "ops@laptop", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), b, "r2", "eve@laptop", false, nil)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Holder != "r1 ops@laptop" || locked.Age > time.Minute {
		t.Errorf("%v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), b, "r2", "eve@laptop", false, nil); err != nil {
		t.Error(err)
	}
}
