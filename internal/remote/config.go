package remote

import (
	"crypto/sha1" //nolint:gosec // not for security: a file name that OpenSSH defines so
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	without                 map[string]bool // authentication methods that ssh_config switches off
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
	one := func(key string) string { return unquote(first(cfg[strings.ToLower(key)])) }
	t.host = pick(t.tokens(one("HostName"), d), alias)
	t.port = pick(port, portText(inv.Port), one("Port"), "22")
	t.user = pick(inv.User, one("User"), d.o.LocalUser)
	t.hostKeyAlias = one("HostKeyAlias")
	t.proxyJump = pick(inv.JumpHost, one("ProxyJump"))
	if inv.JumpHost == "" {
		t.proxyCommand = one("ProxyCommand")
	}
	d.settleKeys(&t, inv, cfg)
	t.knownHosts = d.knownHostFiles(t, inv, one)
	t.strict = d.strictness(inv, one("StrictHostKeyChecking"))
	if inv.ConnectTimeout > 0 {
		t.timeout = time.Duration(inv.ConnectTimeout) * time.Second
	} else if n, err := strconv.Atoi(one("ConnectTimeout")); err == nil && n > 0 && !d.o.timeoutGiven {
		t.timeout = time.Duration(n) * time.Second
	}
	return t, nil
}

// settleKeys finds what authenticates the user.
func (d *Dialer) settleKeys(t *settings, inv inventory.SSH, cfg map[string][]string) {
	one := func(key string) string { return unquote(first(cfg[strings.ToLower(key)])) }
	all := func(key string) (out []string) {
		for _, v := range cfg[strings.ToLower(key)] {
			if v = unquote(v); !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
		return out
	}
	t.identityFiles, t.named = d.expandPaths(*t, inv.IdentityFiles), true
	if len(t.identityFiles) == 0 {
		t.identityFiles = d.expandPaths(*t, all("IdentityFile"))
	}
	if len(t.identityFiles) == 0 {
		t.named = false
		for _, k := range defaultKeys {
			t.identityFiles = append(t.identityFiles, filepath.Join(d.o.Home, ".ssh", k))
		}
	}
	t.certificates = d.expandPaths(*t, all("CertificateFile"))
	if socket := one("IdentityAgent"); socket != "" {
		t.identityAgent = first(d.expandPaths(*t, []string{socket}))
	}
	no := func(key string) bool { return strings.EqualFold(one(key), "no") }
	t.identitiesOnly = strings.EqualFold(one("IdentitiesOnly"), "yes")
	batch := strings.EqualFold(one("BatchMode"), "yes")
	t.without = map[string]bool{
		"publickey":            no("PubkeyAuthentication"),
		"password":             batch || no("PasswordAuthentication"),
		"keyboard-interactive": batch || no("KbdInteractiveAuthentication") || no("ChallengeResponseAuthentication"),
	}
}

func (d *Dialer) knownHostFiles(t settings, inv inventory.SSH, one func(string) string) []string {
	user := d.expandPaths(t, splitQuoted(one("UserKnownHostsFile")))
	switch {
	case inv.KnownHostsFile != "":
		user = d.expandPaths(t, []string{inv.KnownHostsFile})
	case d.o.KnownHosts != "":
		user = []string{d.o.KnownHosts}
	case len(user) == 0:
		user = []string{filepath.Join(d.o.Home, ".ssh/known_hosts"), filepath.Join(d.o.Home, ".ssh/known_hosts2")}
	}
	global := d.expandPaths(t, splitQuoted(one("GlobalKnownHostsFile")))
	if len(global) == 0 {
		global = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	}
	return slices.DeleteFunc(append(user, global...), func(f string) bool { return f == "none" })
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

// splitAddress takes "host", "host:port", "[v6]:port", "v6".
func splitAddress(a string) (host, port string) {
	if h, p, err := net.SplitHostPort(a); err == nil {
		return h, p
	}
	return strings.Trim(a, "[]"), ""
}

// expandPaths resolves ~, ${VAR} and the tokens of ssh_config(5) in file names.
func (d *Dialer) expandPaths(t settings, list []string) []string {
	var out []string
	for _, p := range list {
		switch {
		case strings.EqualFold(p, "none"):
			out = append(out, "none")
			continue
		case strings.HasPrefix(p, "~/"):
			p = filepath.Join(d.o.Home, p[2:])
		}
		out = append(out, os.Expand(t.tokens(p, d), d.o.getenv))
	}
	return out
}

// tokens fills those of ssh_config(5): %h (host), %n (as given), %p, %r (remote user), %u (local user), %d (home),
// %i (local uid), %k (host key alias), %l and %L (local host name), %j (jump hosts), %C (hash of the connection) and %%.
func (t settings) tokens(s string, d *Dialer) string {
	if !strings.Contains(s, "%") {
		return s
	}
	host := pick(t.host, t.alias)
	local, _ := os.Hostname()
	short, _, _ := strings.Cut(local, ".")
	sum := sha1.Sum([]byte(local + host + t.port + t.user + t.proxyJump)) // OpenSSH's own definition of %C
	return strings.NewReplacer(
		"%%", "%", "%h", host, "%n", t.alias, "%p", t.port, "%r", t.user, "%u", d.o.LocalUser, "%d", d.o.Home,
		"%i", strconv.Itoa(os.Getuid()), "%k", pick(t.hostKeyAlias, t.alias), "%l", local, "%L", short, "%j", t.proxyJump, "%C", hex.EncodeToString(sum[:]),
	).Replace(s)
}

// unquote drops the quotes around a value of one word.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.Contains(s[1:len(s)-1], `"`) {
		return s[1 : len(s)-1]
	}
	return s
}

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

// readConfig gives the values of ssh_config that apply to a host, by lower-case keyword, in order.
func (d *Dialer) readConfig(alias, user string) (map[string][]string, error) {
	f := &flattener{d: d, alias: alias, host: alias, user: pick(user, d.o.LocalUser), userGiven: user != ""}
	for pass := 0; pass == 0 || pass == 1 && f.wantFinal; pass++ {
		f.final = pass == 1
		for _, path := range d.o.ConfigFiles {
			if err := f.file(path, 0, path == systemConfig); err != nil {
				return nil, &Error{Phase: PhaseResolve, Summary: err.Error(), Err: err, Advice: []string{"correct the file"}}
			}
		}
	}
	cfg, err := ssh_config.DecodeBytes([]byte("Host *\n" + strings.Join(f.lines, "\n") + "\n"))
	if err != nil {
		return nil, &Error{Phase: PhaseResolve, Summary: fmt.Sprintf("ssh_config: %v", err), Err: err}
	}
	values := map[string][]string{}
	for key := range honoured {
		values[key], _ = cfg.GetAll(alias, key)
	}
	return values, nil
}
