package playbooks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// installs is a playbook that wants one package.
const installs = `playbook "p" {
  title = "t"
  doc   = "d"
  task "one" {
    package {
      apt = ["tool"]
      dnf = ["tool"]
    }
  }
}`

// apt that cannot: what it printed on real machines, and what a user is told.
func TestAptTrouble(t *testing.T) {
	for name, tc := range map[string]struct{ update, install, want string }{
		"locked": {
			install: `echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"
echo "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"; exit 100`,
			want: "/var/lib/dpkg/lock-frontend is held by process 812 (unattended-upgr): let it end, and run again",
		},
		"no network": {
			update: `echo "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'"; exit 100`,
			install: `echo "E: Failed to fetch http://deb.debian.org/debian/pool/main/t/tool.deb  Temporary failure resolving 'deb.debian.org'"
echo "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"; exit 100`,
			want: "the lists of packages could not be renewed (W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'): has the host a way to its mirror?",
		},
		"disk full": {
			install: `echo "E: You don't have enough free space in /var/cache/apt/archives/."; exit 100`,
			want:    "enough free space",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, "sh")
			b.write("bin/apt-get", "#!/bin/sh\nwhile :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done\ncase $1 in\nupdate) "+firstOf(tc.update, "exit 0")+" ;;\ninstall) "+tc.install+" ;;\nesac\n")
			if name == "locked" {
				b.write("var/lib/dpkg/lock-frontend", "")
				info, err := os.Stat(filepath.Join(b.root, "var/lib/dpkg/lock-frontend"))
				if err != nil {
					t.Fatal(err)
				}
				b.write("proc/locks", fmt.Sprintf("1: POSIX  ADVISORY  WRITE 77 00:2d:%d9 0 EOF\n2: POSIX  ADVISORY  WRITE 812 00:2d:%[1]d 0 EOF\n", inode(t, info)))
				b.write("proc/812/comm", "unattended-upgr\n")
			}
			if err := os.Chmod(filepath.Join(b.bin, "apt-get"), 0o755); err != nil {
				t.Fatal(err)
			}
			done, err := apply(t, b, scope(nil), parsed(t, installs), "r")
			if err == nil || !strings.Contains(err.Error(), tc.want) || done.Changed != 0 {
				t.Errorf("%+v %v", done, err)
			}
		})
	}
}

// A lists' update that fails is no reason to stop when the package is there all the same.
func TestStaleListsThatDo(t *testing.T) {
	b := newBox(t, "sh")
	text := b.read("bin/apt-get")
	b.write("bin/apt-get", strings.Replace(text, "update) ;;", "update) echo 'W: Failed to fetch'; exit 100 ;;", 1))
	if done, err := apply(t, b, scope(nil), parsed(t, installs), "r"); err != nil || done.Changed != 1 {
		t.Errorf("%+v %v", done, err)
	}
}

// A version that is asked for replaces another, is not installed again when it is there, and a hold is taken back by undo.
func TestVersion(t *testing.T) {
	p := parsed(t, strings.Replace(installs, `dnf = ["tool"]`, "dnf = [\"tool\"]\nversion = \"2.1\"\nhold = true", 1))
	b := newBox(t, "sh")
	b.write("state/packages/tool", "1:2.0-1\n")
	plan, err := MakePlan(t.Context(), b, scope(nil), p)
	if err != nil || plan.Changes() != 1 || strings.Join(plan.Tasks[0].Changes[0].Do, "; ") != "install tool 2.1 in place of 1:2.0-1; hold tool" {
		t.Fatalf("%+v %v", plan, err)
	}
	if _, err := apply(t, b, scope(nil), p, "r"); err == nil { // the stub installs 1.0
		t.Error("another version than the wanted one was taken for it")
	}
	if calls := b.read("state/calls"); !strings.Contains(calls, "--allow-downgrades --allow-change-held-packages tool=2.1*") {
		t.Errorf("apt was asked for %s", calls)
	}
	if undone, _, err := Undo(t.Context(), b, "r", "test", false); err != nil || len(undone) != 1 || b.read("state/held") != "" {
		t.Errorf("undo: %v %v, held %q", undone, err, b.read("state/held"))
	}
	b.write("state/packages/tool", "1:2.1-4\n")
	b.write("state/held", "tool\n")
	if plan, err := MakePlan(t.Context(), b, scope(nil), p); err != nil || plan.Changes() != 0 {
		t.Errorf("%+v %v", plan, err)
	}
}

// A repository's key that is another one, or that cannot be fetched, is not kept, and no source is written.
func TestForeignKey(t *testing.T) {
	repo := func(key, finger string) Playbook {
		return parsed(t, fmt.Sprintf(`playbook "p" {
  title = "t"
  doc   = "d"
  task "one" {
    repository {
      name        = "tools"
      key         = %q
      fingerprint = %q
      apt         = "https://example.org/deb /"
      dnf         = "https://example.org/rpm"
    }
  }
}`, key, finger))
	}
	const theirs = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
	for name, tc := range map[string]struct{ key, finger, want string }{
		"another key": {"https://example.org/key", strings.Repeat("A", 40), "is not " + strings.Repeat("A", 40) + ": nothing was kept"},
		"no way":      {"http://192.0.2.1/key", theirs, "the key cannot be fetched: has the host a way to http://192.0.2.1/key"},
		"no print":    {"https://example.org/key", "F796ECB0", "40 hexadecimal digits"},
	} {
		b := shippedBox(t)
		before := fmt.Sprint(b.tree())
		_, err := apply(t, b, scope(nil), repo(tc.key, tc.finger), "r")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if d := fmt.Sprint(b.tree()); d != before {
			t.Errorf("%s left %s", name, d)
		}
	}
	b := shippedBox(t)
	if done, err := apply(t, b, scope(nil), repo("https://example.org/key", theirs), "r"); err != nil || done.Changed != 2 {
		t.Errorf("%+v %v", done, err)
	}
	if got := b.read("etc/apt/sources.list.d/tools.list"); got != "deb [signed-by=/usr/share/keyrings/tools.gpg] https://example.org/deb /\n" || b.read("usr/share/keyrings/tools.gpg") != "binary\n" {
		t.Errorf("source %q, key %q", got, b.read("usr/share/keyrings/tools.gpg"))
	}
}

// What a driver's playbook installs, by distribution, source, cards and group.
func TestDriverPackages(t *testing.T) {
	lib, _ := Load("")
	p := lib.Playbooks["nvidia-driver"]
	for name, tc := range map[string]struct {
		set    map[string]string
		system System
		group  string
		want   string
	}{
		"Ubuntu, Ada":         {nil, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"ada"}}, "", "nvidia-driver-570-server-open nvidia-utils-570-server"},
		"Ubuntu, Volta":       {nil, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"volta"}}, "", "nvidia-driver-570-server nvidia-utils-570-server"},
		"a Pascal among them": {nil, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"ada", "pascal"}}, "", "nvidia-driver-570-server nvidia-utils-570-server"},
		"Debian":              {nil, System{Distro: "debian", Version: "12", Architectures: []string{"ada"}}, "", "nvidia-driver nvidia-open-kernel-dkms"},
		"NVIDIA's":            {map[string]string{"source": "nvidia"}, System{Distro: "ubuntu", Version: "24.04", Machine: "x86_64", Architectures: []string{"hopper"}}, "", "nvidia-open-570"},
		"NVIDIA's, from 590":  {map[string]string{"source": "nvidia", "branch": "590"}, System{Distro: "debian", Version: "12", Machine: "x86_64", Architectures: []string{"volta"}}, "", "nvidia-driver-pinning-590 cuda-drivers"},
		"as the group":        {nil, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"ada"}}, "570.158.01", "nvidia-driver-570-server-open nvidia-utils-570-server @570.158.01"},
		"another branch":      {nil, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"ada"}}, "550.54.15", "nvidia-driver-570-server-open nvidia-utils-570-server"},
		"by name":             {map[string]string{"packages": "mine"}, System{Distro: "ubuntu", Version: "22.04", Architectures: []string{"ada"}}, "", "mine"},
		"a card nobody knows": {nil, System{Distro: "ubuntu", Version: "22.04"}, "", "error"},
		"said for that card":  {map[string]string{"flavour": "open"}, System{Distro: "ubuntu", Version: "22.04"}, "", "nvidia-driver-570-server-open nvidia-utils-570-server"},
	} {
		s := shippedScope()
		s.System, s.Group.Driver = tc.system, tc.group
		params, err := p.Values(tc.set)
		if err != nil {
			t.Fatal(err)
		}
		s.Params = params
		got := "error"
		if all, _, _, err := resources(s, p); err == nil {
			last := all[len(all)-1].Package
			got = strings.Join(last.Apt, " ")
			if last.Version != "" {
				got += " @" + last.Version
			}
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func inode(t *testing.T, info os.FileInfo) uint64 {
	t.Helper()
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("this system tells no inode")
	}
	return s.Ino
}
