package remote

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"preflight/inventory"
)

// settled reads one address against files in a home directory; HOME in what comes back stands for it.
func settled(t *testing.T, files map[string]string, o Options, address string, inv inventory.SSH) (settings, []string, error) {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(home, ".ssh", name), strings.ReplaceAll(text, "HOME", home))
	}
	var warned []string
	o.Home, o.LocalUser, o.ConfigFiles = home, "me", []string{filepath.Join(home, ".ssh/config")}
	o.Warn = func(s string) { warned = append(warned, s) }
	o.Getenv = func(name string) string { return map[string]string{"SOCKETS": "/run/sockets"}[name] }
	d := New(o)
	defer d.Close()
	got, err := d.settle(address, inv)
	short := func(list []string) []string {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], home, "HOME")
		}
		return list
	}
	short(got.identityFiles)
	short(got.certificates)
	short(got.knownHosts)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), home, "HOME"))
	}
	return got, warned, err
}

// unconfigured is how a host called node is reached when nothing says otherwise.
func unconfigured() settings {
	return settings{
		alias: "node", host: "node", port: "22", user: "me", strict: "strict", timeout: DefaultConnectTimeout,
		identityFiles: []string{"HOME/.ssh/id_rsa", "HOME/.ssh/id_ecdsa", "HOME/.ssh/id_ed25519"},
		knownHosts:    []string{"HOME/.ssh/known_hosts", "HOME/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
		without:       map[string]bool{"publickey": false, "password": false, "keyboard-interactive": false},
	}
}

// settleCase is an address under a configuration.
type settleCase struct {
	config  string
	address string
	inv     inventory.SSH
	o       Options
	want    func(s *settings) // changes to what holds without any configuration
}

func settleCases() map[string]settleCase {
	return map[string]settleCase{
		"a bare host":      {"", "node", inventory.SSH{}, Options{}, func(*settings) {}},
		"host and port":    {"", "node:2222", inventory.SSH{}, Options{}, func(s *settings) { s.port = "2222" }},
		"IPv6 and port":    {"", "[fd00::1]:2222", inventory.SSH{}, Options{}, func(s *settings) { s.alias, s.host, s.port = "fd00::1", "fd00::1", "2222" }},
		"IPv6 alone":       {"", "fd00::1", inventory.SSH{}, Options{}, func(s *settings) { s.alias, s.host = "fd00::1", "fd00::1" }},
		"HostName with %h": {"Host node\n HostName %h.lab\n Port 2022\n User ops\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.host, s.port, s.user = "node.lab", "2022", "ops" }},
		"first value wins": {"Host node\n Port 1\nHost *\n Port 2\n User late\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.port, s.user = "1", "late" }},
		"the inventory wins": {
			"Host node\n Port 1\n User ops\n IdentityFile ~/cfg\n ProxyJump other\n UserKnownHostsFile ~/cfg\n", "node",
			inventory.SSH{Port: 7, User: "inv", IdentityFiles: []string{"~/inv"}, JumpHost: "hop", KnownHostsFile: "~/inv_hosts", HostKeys: "accept-new", ConnectTimeout: 3},
			Options{HostKeys: "strict", KnownHosts: "/flag", ConnectTimeout: time.Minute},
			func(s *settings) {
				s.port, s.user, s.proxyJump, s.strict, s.timeout = "7", "inv", "hop", "accept-new", 3*time.Second
				s.identityFiles, s.named = []string{"HOME/inv"}, true
				s.knownHosts[0] = "HOME/inv_hosts"
				s.knownHosts = slices.Delete(s.knownHosts, 1, 2)
			},
		},
		"the port of the address wins over the inventory's": {"", "node:5", inventory.SSH{Port: 7}, Options{}, func(s *settings) { s.port = "5" }},
		"the flag wins over ssh_config":                     {"StrictHostKeyChecking accept-new\n", "node", inventory.SSH{}, Options{HostKeys: "strict"}, func(*settings) {}},
		"accept-new in ssh_config":                          {"StrictHostKeyChecking=accept-new\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.strict = "accept-new" }},
		"ask is strict":                                     {"StrictHostKeyChecking ask\n", "node", inventory.SSH{}, Options{}, func(*settings) {}},
		"tokens, quotes, variables": {
			"Host node\n User ops\n Port 3\n HostName h.lab\n IdentityFile \"~/my keys/%r@%h-%n-%p-%u\"\n IdentityFile %d/second\n CertificateFile ~/c%%.pub\n IdentityAgent \"${SOCKETS}/a b\"\n UserKnownHostsFile ~/one \"~/two 2\"\n GlobalKnownHostsFile /g\n",
			"node",
			inventory.SSH{},
			Options{},
			func(s *settings) {
				s.host, s.user, s.port, s.named = "h.lab", "ops", "3", true
				s.identityFiles = []string{"HOME/my keys/ops@h.lab-node-3-me", "HOME/second"}
				s.certificates, s.identityAgent = []string{"HOME/c%.pub"}, "/run/sockets/a b"
				s.knownHosts = []string{"HOME/one", "HOME/two 2", "/g"}
			},
		},
		"none": {"IdentityAgent none\nUserKnownHostsFile none\nGlobalKnownHostsFile none\nProxyJump none\n", "node", inventory.SSH{}, Options{}, func(s *settings) {
			s.identityAgent, s.knownHosts, s.proxyJump = "none", []string{}, "none"
		}},
		"ProxyJump before ProxyCommand":  {"ProxyJump a,b\nProxyCommand nc %h\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.proxyJump = "a,b" }},
		"ProxyCommand before ProxyJump":  {"ProxyCommand nc %h %p\nProxyJump a\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.proxyCommand = "nc %h %p" }},
		"the inventory's none is direct": {"ProxyCommand nc %h %p\n", "node", inventory.SSH{JumpHost: "none"}, Options{}, func(s *settings) { s.proxyJump = "none" }},
		"HostKeyAlias":                   {"HostKeyAlias farm\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.hostKeyAlias = "farm" }},
		"methods that are switched off": {"BatchMode yes\nPubkeyAuthentication no\n", "node", inventory.SSH{}, Options{}, func(s *settings) {
			s.without = map[string]bool{"publickey": true, "password": true, "keyboard-interactive": true}
		}},
		"ConnectTimeout": {"ConnectTimeout 4\nIdentitiesOnly yes\n", "node", inventory.SSH{}, Options{}, func(s *settings) { s.timeout, s.identitiesOnly = 4*time.Second, true }},
	}
}

func TestSettle(t *testing.T) {
	for name, tc := range settleCases() {
		t.Run(name, func(t *testing.T) {
			want := unconfigured()
			tc.want(&want)
			got, warned, err := settled(t, map[string]string{"config": tc.config}, tc.o, tc.address, tc.inv)
			if err != nil || len(warned) > 0 {
				t.Fatalf("%v, warned %q", err, warned)
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(settings{}), cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })); d != "" {
				t.Error(d)
			}
		})
	}
}

// Each row's configuration sets Port 1 where its block applies, else Port 2.
func TestBlocksApply(t *testing.T) {
	for _, tc := range []struct {
		block string
		want  bool
	}{
		{"Host node", true},
		{"Host n?de other", true},
		{"Host * !node", false},
		{"Host \"node\"", true},
		{"Host=node", true},
		{"Host real.lab", false},
		{"Match all", true},
		{"Match host real.lab", true},
		{"Match host node", false},
		{"Match originalhost node", true},
		{"Match host *.lab,!real.lab", false},
		{"Match host *.lab user ops", true},
		{"Match host *.lab user root", false},
		{"Match user \"ops,root\" localuser me", true},
		{"Match !user ops", false},
		{"Match exec \"test %n = node\"", true},
		{"Match exec \"test %h = real.lab && test %r = ops\"", true},
		{"Match exec false", false},
		{"Match !exec false", true},
		{"Match canonical", false},
		{"Match !canonical host real.lab", true},
		{"Match host real.lab\n Include part", true},
	} {
		t.Run(tc.block, func(t *testing.T) {
			files := map[string]string{"config": "Host node\n HostName real.lab\n User ops\n" + tc.block + "\n Port 1\nHost *\n Port 2\n", "part": "IdentitiesOnly yes\n"}
			got, warned, err := settled(t, files, Options{}, "node", inventory.SSH{})
			if err != nil || len(warned) > 0 {
				t.Fatal(err, warned)
			}
			if applies := got.port == "1"; applies != tc.want {
				t.Errorf("applies: %v", applies)
			}
			if strings.Contains(tc.block, "Include") && !got.identitiesOnly {
				t.Error("the included file was left out")
			}
		})
	}
}

func TestMatchFinalComesLast(t *testing.T) {
	config := "Match final host real.lab\n User final\n Port 9\nHost node\n HostName real.lab\n User ops\nHost real.lab\n IdentityFile /by-final-name\n"
	got, _, err := settled(t, map[string]string{"config": config}, Options{}, "node", inventory.SSH{})
	if err != nil || got.user != "ops" || got.port != "9" || !slices.Equal(got.identityFiles, []string{"/by-final-name"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestInclude(t *testing.T) {
	files := map[string]string{
		"config":              "Include conf.d/*.conf missing\nHost other\n Include only-other\nHost *\n Port 3\n",
		"conf.d/a":            "Port 99\n",
		"conf.d/10-user.conf": "Host node\n User first\nInclude nested\n",
		"conf.d/20-user.conf": "User second\n",
		"nested":              "Host *\n IdentityFile /nested\n", // relative to ~/.ssh, whoever includes it
		"only-other":          "Host *\n User wrong\n HostName wrong\n",
	}
	got, _, err := settled(t, files, Options{}, "node", inventory.SSH{})
	if err != nil || got.user != "first" || got.port != "3" || got.host != "node" || !slices.Equal(got.identityFiles, []string{"/nested"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestConfigErrorsNameTheirLine(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"unknown criterion":   {"Port 1\nMatch colour blue\n", "HOME/.ssh/config:2: `Match colour` is not a criterion"},
		"criterion, no value": {"\n\nMatch host\n", "HOME/.ssh/config:3: `Match host` needs a value"},
		"empty Match":         {"Match\n", "config:1: a Match line needs"},
		"Include of itself":   {"Include config\n", "nested more than 16 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := settled(t, map[string]string{"config": tc.config}, Options{}, "node", inventory.SSH{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "resolve: ") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUnhonouredKeywordsAreNamedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   []string // each a part of one warning
	}{
		"one that matters, twice":    {"GSSAPIAuthentication yes\nHost *\n GSSAPIAuthentication yes\n", []string{"GSSAPIAuthentication"}},
		"switched off":               {"GSSAPIAuthentication no\nPKCS11Provider none\n", nil},
		"a token":                    {"PKCS11Provider /lib/p.so\n", []string{"PKCS11Provider"}},
		"harmless":                   {"ServerAliveInterval 5\nLogLevel ERROR\nForwardX11 yes\nAddKeysToAgent yes\nControlMaster auto\nUseKeychain yes\n", nil},
		"of a block for other hosts": {"Host other\n PKCS11Provider /lib/p.so\n", nil},
		"StrictHostKeyChecking no":   {"StrictHostKeyChecking no\n", []string{"accept-new"}},
		"Match that is not honoured": {"Match tagged x\n Port 9\nMatch !tagged x\n Port 9\n", []string{"Match tagged"}},
		"with terminal escapes":      {"Evil\x1b[2J yes\n", []string{"evil?[2j"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, warned, err := settled(t, map[string]string{"config": tc.config}, Options{}, "node", inventory.SSH{})
			if err != nil || got.port != "22" {
				t.Fatalf("%v, port %s", err, got.port)
			}
			if len(warned) != len(tc.want) {
				t.Fatalf("warned %q", warned)
			}
			for i, w := range tc.want {
				if !strings.Contains(warned[i], w) {
					t.Errorf("warned %q, want %q", warned[i], w)
				}
			}
		})
	}
}

func TestDistributionDefaultsAreNotNamed(t *testing.T) {
	var warned []string
	d := New(Options{Home: t.TempDir(), ConfigFiles: []string{}, Warn: func(s string) { warned = append(warned, s) }})
	defer d.Close()
	f := &flattener{d: d, alias: "node", host: "node"}
	f.keep("gssapiauthentication", "yes", true)
	f.keep("kexalgorithms", "curve25519-sha256", true)
	if len(warned) != 0 {
		t.Errorf("warned %q", warned)
	}
	f.keep("kexalgorithms", "curve25519-sha256", false)
	if len(warned) != 1 {
		t.Errorf("the user's own choice must be named: %q", warned)
	}
}

// FuzzConfig holds that no ssh_config panics, hangs or gives an address that cannot be dialled.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"Host node\n HostName %h.lab\n", "Match host a,!b user \"c d\"\n Port 1\n", "Include config\n", "Host \"\n", "Port=\n=\n", "IdentityFile \"\n",
		"HostName %%%\nUser \x00\n", "Host !\n", "Match !\n", "Match !all\n", "UserKnownHostsFile \"\" \"\n", "Host [\n", "HostName #x\n User a#b\n", "Match final\nHostName x\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "exec") || strings.ContainsAny(text, "/~") {
			t.Skip("it would run programs or read files")
		}
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, ".ssh/config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d := New(Options{Home: home, LocalUser: "me", ConfigFiles: []string{path}})
		defer d.Close()
		s, err := d.settle("node", inventory.SSH{})
		if err == nil && (s.host == "" || s.port == "" || s.user == "") {
			t.Errorf("%+v", s)
		}
		if err != nil && !errors.As(err, new(*Error)) {
			t.Errorf("%T", err)
		}
	})
}
