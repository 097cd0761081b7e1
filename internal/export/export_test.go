package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"preflight/inventory"
)

func rigs() []*inventory.Rig {
	eight := 8
	return []*inventory.Rig{
		{Name: "node-a", Address: "192.0.2.10:2222", Group: "lab-1", Cards: &eight, GPU: "rtx-4090", SSH: inventory.SSH{User: "ops", JumpHost: "bastion.lab", IdentityFiles: []string{"/keys/a b"}}, Labels: map[string]string{"rack": "7"}},
		{Name: "node-b", Address: "node-b.lab", SSH: inventory.SSH{Port: 22, HostKeys: "accept-new"}},
	}
}

func TestAnsible(t *testing.T) {
	var b bytes.Buffer
	if err := Ansible(&b, rigs()); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"_meta": map[string]any{"hostvars": map[string]any{
			"node-a": map[string]any{
				"ansible_host": "192.0.2.10", "ansible_port": 2222.0, "ansible_user": "ops", "ansible_ssh_private_key_file": "/keys/a b",
				"ansible_ssh_common_args": "-o ProxyJump=bastion.lab", "preflight_cards": 8.0, "preflight_gpu": "rtx-4090", "preflight_labels": map[string]any{"rack": "7"},
			},
			"node-b": map[string]any{"ansible_host": "node-b.lab", "ansible_port": 22.0},
		}},
		"all":       map[string]any{"children": []any{"lab_1", "ungrouped"}},
		"lab_1":     map[string]any{"hosts": []any{"node-a"}},
		"ungrouped": map[string]any{"hosts": []any{"node-b"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := AnsibleHost(&b, rigs(), "node-b"); err != nil || !strings.Contains(b.String(), "node-b.lab") {
		t.Errorf("%v %s", err, b.String())
	}
	if err := AnsibleHost(&b, rigs(), "gremlin"); err == nil {
		t.Error("a rig that is not there has variables")
	}
}

// ssh itself reads the configuration, and resolves what was declared.
func TestSSHConfigIsReadBySSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	var b bytes.Buffer
	if err := SSHConfig(&b, rigs()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"node-a": {"hostname 192.0.2.10", "port 2222", "user ops", "identityfile /keys/a b", "proxyjump bastion.lab"},
		"node-b": {"hostname node-b.lab", "port 22", "stricthostkeychecking accept-new"},
	} {
		out, err := exec.Command("ssh", "-F", path, "-G", name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w+"\n") {
				t.Errorf("%s: ssh does not say %q", name, w)
			}
		}
	}
}

func TestHostlist(t *testing.T) {
	for want, names := range map[string][]string{
		"":                         nil,
		"gpu01":                    {"gpu01"},
		"gpu[01-03,07]":            {"gpu02", "gpu01", "gpu07", "gpu03"},
		"gpu[01-02],gpu[1-2],head": {"gpu01", "gpu02", "gpu1", "gpu2", "head"},
		"a[1-2],b1":                {"a1", "b1", "a2", "a1"},
	} {
		if got := Hostlist(names); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
}

// What is written is read again by the inventory's own hostlist.
func FuzzHostlist(f *testing.F) {
	f.Add(uint8(3), uint8(12))
	f.Fuzz(func(t *testing.T, a, b uint8) {
		var names []string
		for i := a; i < b; i++ {
			names = append(names, fmt.Sprintf("gpu%03d", i))
		}
		if len(names) < 2 {
			return
		}
		if want := fmt.Sprintf("gpu[%03d-%03d]", a, b-1); Hostlist(names) != want {
			t.Errorf("%s, want %s", Hostlist(names), want)
		}
	})
}
