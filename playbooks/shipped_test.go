package playbooks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"preflight/internal/stubtools"

	"github.com/zclconf/go-cty/cty"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/inventory"
	"preflight/remediation"
)

// shippedScope is a host of two cards whose supplies are too small.
func shippedScope() Scope {
	h := &facts.Host{}
	h.Driver.Version, h.Driver.Loaded, h.Driver.CUDA = facts.Of("570.158.01", "t"), facts.Of(true, "t"), facts.Of("12.8", "t")
	h.Cards = []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}}, {Device: facts.Device{BDF: "0000:21:00.0"}}}
	two := 2
	system := System{Distro: "ubuntu", Version: "22.04", Machine: "x86_64", Architectures: []string{"ada", "ada"}}
	return Scope{System: system, Group: Group{Addresses: []string{"10.0.0.12"}}, Host: checks.HostValue(h), Params: map[string]cty.Value{}, Rig: &inventory.Rig{Name: "node-a", Cards: &two, NIC: "eth2"}, Debian: true, Finding: map[string]string{"cap_watts": "350"}}
}

// Every playbook that comes with preflight: a plan touches nothing, the first run changes, the second finds nothing, undo puts
// back what can be put back. The tools of the host refuse every command line that they do not know.
func TestShippedPlaybooks(t *testing.T) {
	lib, diags := Load("")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	// Arguments that make each playbook do something.
	given := map[string]map[string]string{"nccl-firewall": {"from": "10.0.0.0/24"}, "time-sync": {"servers": "ntp.example"}}
	for _, name := range lib.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shippedBox(t)
			p, s := lib.Playbooks[name], shippedScope()
			params, err := p.Values(given[name])
			if err != nil {
				t.Fatal(err)
			}
			s.Params = params
			before := b.tree()
			plan, err := MakePlan(t.Context(), b, s, p)
			if err != nil || plan.Skipped != "" || plan.Changes() == 0 {
				t.Fatalf("plan: %v %+v", err, plan)
			}
			if fmt.Sprint(b.tree()) != fmt.Sprint(before) {
				t.Error("the plan touched the host")
			}
			done, err := apply(t, b, s, p, "r1")
			if err != nil || done.Changed == 0 {
				t.Fatalf("%+v %v", done, err)
			}
			if again, err := apply(t, b, s, p, "r2"); err != nil || again.Changed != 0 || again.Reboot != done.Reboot {
				t.Errorf("the second run changed %d, reboot %v: %v", again.Changed, again.Reboot, err)
			}
			if done.Reboot {
				booted(t, b, s, p)
			}
			if _, _, err := Undo(t.Context(), b, "r1", "test", false); err != nil {
				t.Errorf("undo: %v", err)
			}
			if d := fmt.Sprint(b.tree()); d != fmt.Sprint(before) {
				t.Errorf("undo left\n%s\nwant\n%s", d, before)
			}
			for cut := 1; cut <= done.Changed; cut++ {
				resumed(t, s, p, cut, done.Changed)
			}
		})
	}
}

// shippedBox is a host with the tools and units that the playbooks need.
func shippedBox(t *testing.T) *box {
	t.Helper()
	b := newBox(t, "sh")
	for tool, text := range stubtools.Programs() {
		b.write("bin/"+tool, "#!/bin/sh\n"+text+"\n")
		if err := os.Chmod(filepath.Join(b.bin, tool), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []string{"nvidia-persistenced.service", "chrony.service", "docker.service"} {
		b.write("state/units/"+u, "")
	}
	b.write("sys/module/nouveau/refcnt", "0\n")
	b.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz ro quiet\n")
	return b
}

// booted restarts a host: what waited for it is proven now, and what it was for is no longer pending.
func booted(t *testing.T, b *box, s Scope, p Playbook) {
	t.Helper()
	if plan, err := MakePlan(t.Context(), b, s, p); err != nil || plan.Changes() != 0 || (len(verified(p)) > 0 && !plan.Reboot()) {
		t.Errorf("before the boot: %v %+v", err, plan)
	}
	if _, _, err := b.Run(t.Context(), []byte("systemctl reboot\n")); err != nil {
		t.Fatal(err)
	}
	door, err := Open(t.Context(), b, "r3", "test", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := Run(t.Context(), door, s, p, true, nil); err != nil || done.Changed != 0 || done.Reboot {
		t.Errorf("after the boot: %+v %v", done, err)
	}
	if err := door.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if plan, err := MakePlan(t.Context(), b, s, p); err != nil || plan.Changes() != 0 || plan.Reboot() {
		t.Errorf("after the boot: %v %+v", err, plan)
	}
}

// verified are the tasks that prove themselves.
func verified(p Playbook) []Task {
	return slices.DeleteFunc(slices.Clone(p.Tasks), func(t Task) bool { return t.Verify == nil })
}

// resumed cuts the connection after one of the changes, and wants the next run to make the rest and no more.
func resumed(t *testing.T, s Scope, p Playbook, cut, all int) {
	t.Helper()
	b := shippedBox(t)
	b.cut = cut
	door, err := Open(t.Context(), b, "r1", "test", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), door, s, p, false, nil); err == nil {
		t.Fatalf("cut %d: the run did not notice", cut)
	}
	door, err = Open(t.Context(), b, "r2", "test", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Run(t.Context(), door, s, p, false, nil)
	if err != nil || done.Changed != all-cut {
		t.Errorf("cut %d of %d: resumed with %d changes, %v", cut, all, done.Changed, err)
	}
	if plan, err := MakePlan(t.Context(), b, s, p); err != nil || plan.Changes() != 0 {
		t.Errorf("cut %d: something is left: %v %+v", cut, err, plan)
	}
}

func TestShippedPlaybooksAreComplete(t *testing.T) {
	lib, diags := Load("")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := strings.Fields("nvidia-driver nouveau-off persistence power-cap container-toolkit container-shm nccl-env nccl-tests pytorch-env iommu acs-off pci-realloc memlock cpu-governor time-sync nccl-firewall slurm-prolog")
	remedies, err := remediation.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		p, ok := lib.Playbooks[name]
		if !ok {
			t.Errorf("there is no playbook %s", name)
			continue
		}
		if p.Title == "" || p.TitleZh == "" || p.Doc == "" {
			t.Errorf("%s lacks title, title_zh or doc", name)
		}
		for _, code := range p.Clears {
			if !slices.Contains(remedies.Codes(), code) {
				t.Errorf("%s clears %s, which is no remedy", name, code)
			}
		}
		for _, x := range p.Params {
			if x.Doc == "" {
				t.Errorf("%s: parameter %s says nothing", name, x.Name)
			}
		}
	}
}

// On hosts with dnf and grubby, the kernel's parameters are held by grubby.
func TestKernelByGrubby(t *testing.T) {
	lib, _ := Load("")
	b := newBox(t, "sh")
	b.write("state/args", "ro quiet")
	b.write("bin/grubby", "#!/bin/sh\nf=$PREFLIGHT_ROOT/state/args\ncase $1 in --info=DEFAULT) printf 'index=0\\nargs=\"%s\"\\n' \"$(cat \"$f\")\" ;; --update-kernel=ALL) case $2 in --args=*) printf '%s %s' \"$(cat \"$f\")\" \"${2#--args=}\" >\"$f\" ;; --remove-args=*) sed \"s/ ${2#--remove-args=}//\" \"$f\" >\"$f.n\"; mv \"$f.n\" \"$f\" ;; esac ;; *) exit 99 ;; esac\n")
	if err := os.Chmod(filepath.Join(b.bin, "grubby"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, s := lib.Playbooks["iommu"], shippedScope()
	s.Debian = false
	params, err := p.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Params = params
	if done, err := apply(t, b, s, p, "r1"); err != nil || done.Changed != 1 || !done.Reboot || b.read("state/args") != "ro quiet iommu=pt" {
		t.Fatalf("%+v %v %q", done, err, b.read("state/args"))
	}
	if done, err := apply(t, b, s, p, "r2"); err != nil || done.Changed != 0 {
		t.Errorf("%+v %v", done, err)
	}
	if _, _, err := Undo(t.Context(), b, "r1", "test", false); err != nil || strings.TrimSpace(b.read("state/args")) != "ro quiet" {
		t.Errorf("%v %q", err, b.read("state/args"))
	}
}

func TestParameters(t *testing.T) {
	lib, _ := Load("")
	for set, want := range map[string]string{"mode=gremlin": "it takes daemon, legacy", "mod=legacy": `did you mean "mode"`} {
		k, v, _ := strings.Cut(set, "=")
		if _, err := lib.Playbooks["persistence"].Values(map[string]string{k: v}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := lib.Playbooks["nvidia-driver"].Values(map[string]string{"hold": "maybe"}); err == nil || !strings.Contains(err.Error(), "true or false") {
		t.Errorf("%v", err)
	}
}

// Mistakes in a playbook come with file and line, all at once, and with what was meant.
func TestMistakes(t *testing.T) {
	_, _, diags := Parse("mine.hcl", []byte("playbook \"p\" {\n title = \"t\"\n doc = \"d\"\n task \"a\" {\n fle {\n }\n }\n task \"b\" {\n file {\n paht = \"/x\"\n }\n }\n task \"c\" {\n }\n}\n"))
	text := fmt.Sprint(diags.Errs())
	for _, want := range []string{"mine.hcl:5", `"fle" is no kind of task`, `Did you mean "file"?`, `"paht" is not known in file. Did you mean "path"?`, "file needs path", "mine.hcl:13", "A task needs one block"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.hcl"), []byte("playbook \"persistence\" {\n title = \"mine\"\n doc = \"d\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lib, diags := Load(dir)
	if diags.HasErrors() || lib.Playbooks["persistence"].Title != "mine" {
		t.Errorf("a folder of the user does not override: %v", diags)
	}
	if _, diags := Load(filepath.Join(dir, "missing")); !diags.HasErrors() {
		t.Error("a folder that is not there is taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(everyKind)
	f.Fuzz(func(_ *testing.T, text string) { _, _, _ = Parse("f.hcl", []byte(text)) })
}
