package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"

	"preflight/inventory"
)

// settings is how one host is reached, from the inventory, ~/.ssh/config and defaults.
type settings struct {
	alias, host, port, user string
	identityFiles           []string // in the order in which they are tried
	named                   bool     // the identity files were named, not the defaults
	certificates            []string
	identityAgent           string // socket path, "none", or "" for SSH_AUTH_SOCK
	identitiesOnly          bool
	proxyJump, proxyCommand string
	knownHosts              []string // user files first; new keys go to the first
	hostKeyAlias            string
	strict                  string // "strict" or "accept-new"
	timeout                 time.Duration
}

func (t settings) hostPort() string { return net.JoinHostPort(t.host, t.port) }

// defaultKeys are tried when no IdentityFile is named, as OpenSSH does.
var defaultKeys = []string{"id_rsa", "id_ecdsa", "id_ed25519"}

// settle joins what the inventory says with ssh_config for one address. The inventory wins.
func (d *Dialer) settle(address string, inv inventory.SSH) (settings, error) {
	alias, port := splitAddress(address)
	t := settings{alias: alias, timeout: d.o.ConnectTimeout}
	cfg, err := d.readConfig(alias, inv.User)
	if err != nil {
		return t, err
	}
	one := func(key string) string { v, _ := cfg.Get(alias, key); return v }
	all := func(key string) []string { v, _ := cfg.GetAll(alias, key); return v }
	t.host = pick(strings.ReplaceAll(one("HostName"), "%h", alias), alias)
	t.port = pick(port, portText(inv.Port), one("Port"), "22")
	t.user = pick(inv.User, one("User"), d.o.LocalUser)
	expand := func(list []string) []string { return d.expandPaths(t, list) }
	t.identityFiles, t.named = expand(inv.IdentityFiles), true
	if len(t.identityFiles) == 0 {
		t.identityFiles = expand(all("IdentityFile"))
	}
	if len(t.identityFiles) == 0 {
		t.named = false
		for _, k := range defaultKeys {
			t.identityFiles = append(t.identityFiles, filepath.Join(d.o.Home, ".ssh", k))
		}
	}
	t.certificates = expand(all("CertificateFile"))
	t.identityAgent = first(expand(fields(one("IdentityAgent"))))
	t.identitiesOnly = strings.EqualFold(one("IdentitiesOnly"), "yes")
	t.proxyJump = pick(inv.JumpHost, one("ProxyJump"))
	if inv.JumpHost == "" {
		t.proxyCommand = one("ProxyCommand")
	}
	t.hostKeyAlias = one("HostKeyAlias")
	t.knownHosts = d.knownHostFiles(t, inv, one)
	t.strict = d.strictness(inv, one("StrictHostKeyChecking"))
	if inv.ConnectTimeout > 0 {
		t.timeout = time.Duration(inv.ConnectTimeout) * time.Second
	} else if n, err := strconv.Atoi(one("ConnectTimeout")); err == nil && n > 0 && !d.o.timeoutGiven {
		t.timeout = time.Duration(n) * time.Second
	}
	return t, nil
}

func (d *Dialer) knownHostFiles(t settings, inv inventory.SSH, one func(string) string) []string {
	user := d.expandPaths(t, fields(one("UserKnownHostsFile")))
	switch {
	case inv.KnownHostsFile != "":
		user = d.expandPaths(t, []string{inv.KnownHostsFile})
	case d.o.KnownHosts != "":
		user = []string{d.o.KnownHosts}
	case len(user) == 0:
		user = []string{filepath.Join(d.o.Home, ".ssh/known_hosts"), filepath.Join(d.o.Home, ".ssh/known_hosts2")}
	}
	global := d.expandPaths(t, fields(one("GlobalKnownHostsFile")))
	if len(global) == 0 {
		global = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	}
	return append(user, global...)
}

// strictness: the inventory wins over the command line, and that over ssh_config, where "no" and "off" are taken as
// accept-new (an unknown key is accepted, a changed one never) and everything else is strict.
func (d *Dialer) strictness(inv inventory.SSH, config string) string {
	if v := pick(inv.HostKeys, d.o.HostKeys); v != "" {
		return v
	}
	switch strings.ToLower(config) {
	case "accept-new":
		return "accept-new"
	case "no", "off":
		d.warnOnce("StrictHostKeyChecking no is taken as accept-new: a changed host key still stops a rig")
		return "accept-new"
	}
	return "strict"
}

// splitAddress takes "host", "host:port", "[v6]:port", "v6", each with an optional "user@" before it left alone.
func splitAddress(a string) (host, port string) {
	if h, p, err := net.SplitHostPort(a); err == nil {
		return h, p
	}
	return strings.Trim(a, "[]"), ""
}

// expandPaths resolves ~ and the tokens of ssh_config(5) in file names.
func (d *Dialer) expandPaths(t settings, list []string) []string {
	var out []string
	for _, p := range list {
		if strings.EqualFold(p, "none") || p == "SSH_AUTH_SOCK" {
			out = append(out, strings.ToLower(p))
			continue
		}
		if strings.HasPrefix(p, "~/") {
			p = filepath.Join(d.o.Home, p[2:])
		}
		out = append(out, os.Expand(t.tokens(p, d), func(name string) string {
			return d.o.getenv(name)
		}))
	}
	return out
}

// tokens fills %h (host), %n (as given), %p, %r (remote user), %u (local user), %d (home) and %%.
func (t settings) tokens(s string, d *Dialer) string {
	return strings.NewReplacer("%%", "%", "%h", t.host, "%n", t.alias, "%p", t.port, "%r", t.user, "%u", d.o.LocalUser, "%d", d.o.Home).Replace(s)
}

func fields(s string) []string { return strings.Fields(strings.ReplaceAll(s, `"`, "")) }

func pick(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func portText(p int) string {
	if p == 0 {
		return ""
	}
	return strconv.Itoa(p)
}

// readConfig gives the lines of ssh_config that apply to a host, as one block.
func (d *Dialer) readConfig(alias, user string) (*ssh_config.Config, error) {
	f := &flattener{d: d, alias: alias, host: alias, user: pick(user, d.o.LocalUser), userGiven: user != ""}
	for _, path := range d.o.ConfigFiles {
		if err := f.file(path, 0, true); err != nil {
			return nil, &Error{Phase: PhaseResolve, Summary: err.Error(), Err: err, Advice: []string{"correct the file"}}
		}
	}
	cfg, err := ssh_config.DecodeBytes([]byte("Host *\n" + strings.Join(f.lines, "\n") + "\n"))
	if err != nil {
		return nil, &Error{Phase: PhaseResolve, Summary: fmt.Sprintf("ssh_config: %v", err), Err: err}
	}
	return cfg, nil
}
