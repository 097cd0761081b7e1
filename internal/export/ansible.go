package export

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"

	"preflight/inventory"
)

// ansibleName is what Ansible takes for the name of a group.
var ansibleName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// Ansible writes the JSON that Ansible wants of an inventory script for --list: groups with their hosts, and all variables in
// _meta, so that it need not ask for each host.
func Ansible(w io.Writer, rigs []*inventory.Rig) error {
	hosts := map[string]map[string]any{}
	groups := map[string][]string{}
	for _, r := range rigs {
		hosts[r.Name] = hostVars(r)
		group := "ungrouped"
		if r.Group != "" {
			group = ansibleName.ReplaceAllString(r.Group, "_")
		}
		groups[group] = append(groups[group], r.Name)
	}
	out := map[string]any{"_meta": map[string]any{"hostvars": hosts}}
	children := []string{}
	for name, list := range groups {
		out[name] = map[string]any{"hosts": list}
		children = append(children, name)
	}
	slices.Sort(children)
	out["all"] = map[string]any{"children": children}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// AnsibleHost writes the variables of one host, as --host wants them.
func AnsibleHost(w io.Writer, rigs []*inventory.Rig, name string) error {
	i := slices.IndexFunc(rigs, func(r *inventory.Rig) bool { return r.Name == name })
	if i < 0 {
		return fmt.Errorf("no rig is called %q", name)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(hostVars(rigs[i]))
}

// hostVars are how Ansible reaches a rig, and what is declared of it. What is not declared is left to Ansible and ssh_config.
func hostVars(r *inventory.Rig) map[string]any {
	host, port := address(r)
	v := map[string]any{"ansible_host": host}
	if port != 0 {
		v["ansible_port"] = port
	}
	if r.SSH.User != "" {
		v["ansible_user"] = r.SSH.User
	}
	if len(r.SSH.IdentityFiles) > 0 {
		v["ansible_ssh_private_key_file"] = r.SSH.IdentityFiles[0]
	}
	if args := commonArgs(r); args != "" {
		v["ansible_ssh_common_args"] = args
	}
	if r.Python != "" {
		v["preflight_python"] = r.Python
	}
	if r.Cards != nil {
		v["preflight_cards"] = *r.Cards
	}
	for name, value := range map[string]string{"preflight_gpu": r.GPU, "preflight_nic": r.NIC, "preflight_slurm_node": r.SlurmNode} {
		if value != "" {
			v[name] = value
		}
	}
	if len(r.Labels) > 0 {
		v["preflight_labels"] = r.Labels
	}
	return v
}

// commonArgs are options of ssh that Ansible has no variable for.
func commonArgs(r *inventory.Rig) string {
	args := ""
	if r.SSH.JumpHost != "" {
		args += "-o ProxyJump=" + r.SSH.JumpHost
	}
	if r.SSH.KnownHostsFile != "" {
		if args != "" {
			args += " "
		}
		args += fmt.Sprintf("-o UserKnownHostsFile=%q", r.SSH.KnownHostsFile)
	}
	return args
}
