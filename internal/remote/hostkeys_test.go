package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"preflight/inventory"
)

// authority signs host keys.
type authority struct{ ssh.Signer }

func (a authority) sign(t *testing.T, host ssh.Signer, principal string, until uint64) ssh.Signer {
	t.Helper()
	cert := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{principal}, ValidBefore: until}
	if err := cert.SignCert(rand.Reader, a); err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewCertSigner(cert, host)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func line(marker, hosts string, key ssh.PublicKey) string {
	return strings.TrimSpace(marker+" "+hosts+" "+string(ssh.MarshalAuthorizedKey(key))) + "\n"
}

// endsWith demands a connection for "", else an error about host keys that says so.
func endsWith(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if p, text := phaseOf(t, err); p != PhaseHostKey || !strings.Contains(text, want) {
		t.Errorf("%s: %s", p, text)
	}
}

// authorityCase is a server with a plain key, and perhaps a certificate for it, against a known_hosts file.
type authorityCase struct {
	cert   func(t *testing.T, s *server) ssh.Signer
	known  func(s *server) string
	accept bool
	want   string // "" connects, else what the error says
	noted  bool   // a key was added to the file
}

func authorityCases(t *testing.T) map[string]authorityCase {
	t.Helper()
	_, otherKey := newKey(t)
	_, caKey := newKey(t)
	ca, other := authority{caKey}, authority{otherKey}
	const forever = ssh.CertTimeInfinity
	plainAndCA := func(s *server) string {
		return line("", s.plainName(), s.key.PublicKey()) + line("@cert-authority", "*", ca.PublicKey())
	}
	onlyCA := func(*server) string { return line("@cert-authority", "*", ca.PublicKey()) }
	cert := func(a authority, principal string, until uint64) func(*testing.T, *server) ssh.Signer {
		return func(t *testing.T, s *server) ssh.Signer { return a.sign(t, s.key, principal, until) }
	}
	return map[string]authorityCase{
		"vouched for":                            {cert(ca, "127.0.0.1", forever), onlyCA, false, "", false},
		"vouched for, nothing is noted":          {cert(ca, "127.0.0.1", forever), onlyCA, true, "", false},
		"by another authority":                   {cert(other, "127.0.0.1", forever), onlyCA, false, "is not known", false},
		"by another, accept-new":                 {cert(other, "127.0.0.1", forever), onlyCA, true, "", true},
		"for another name":                       {cert(ca, "node-z", forever), onlyCA, true, "certificate of", false},
		"expired":                                {cert(ca, "127.0.0.1", 1), onlyCA, true, "certificate of", false},
		"expired, but the plain key is known":    {cert(ca, "127.0.0.1", 1), plainAndCA, false, "", false},
		"no certificate, a CA line for all":      {nil, onlyCA, false, "is not known", false},
		"no certificate, accept-new":             {nil, onlyCA, true, "", true},
		"the host shows the authority's key":     {nil, func(s *server) string { return line("@cert-authority", "*", s.key.PublicKey()) }, false, "is not known", false},
		"the host's key is revoked":              {cert(ca, "127.0.0.1", forever), func(s *server) string { return onlyCA(s) + line("@revoked", "*", s.key.PublicKey()) }, true, "@revoked", false},
		"the authority is revoked":               {cert(ca, "127.0.0.1", forever), func(s *server) string { return onlyCA(s) + line("@revoked", "*", ca.PublicKey()) }, true, "@revoked", false},
		"another kind of key than the one known": {nil, func(s *server) string { return line("", s.plainName(), ecdsaKey(t)) }, true, "has changed", false},
		"two keys known, one right": {nil, func(s *server) string {
			return line("", s.plainName(), ecdsaKey(t)) + line("", s.plainName(), s.key.PublicKey())
		}, false, "", false},
		"a line that is nonsense": {nil, func(s *server) string {
			return "nonsense\nnode 1024 35 1234\n" + line("", s.plainName(), s.key.PublicKey())
		}, false, "", false},
		"nothing but nonsense":  {nil, func(*server) string { return "nonsense here\n" }, false, "known_hosts cannot be read", false},
		"known by another port": {nil, func(s *server) string { return line("", "127.0.0.1", s.key.PublicKey()) }, false, "is not known", false},
	}
}

func TestHostKeysWithAuthorities(t *testing.T) {
	for name, tc := range authorityCases(t) {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			s := serve(t, c.pub)
			if tc.cert != nil {
				s.config.AddHostKey(tc.cert(t, s))
			}
			before := tc.known(s)
			write(t, c.known(), before)
			if tc.accept {
				c.o.HostKeys = "accept-new"
			}
			_, err := c.dial(t, rigAt(s))
			endsWith(t, err, tc.want)
			after, _ := os.ReadFile(c.known())
			if noted := string(after) != before; noted != tc.noted {
				t.Errorf("known_hosts is now %q", after)
			}
			if tc.noted && string(after) != before+knownhosts.Line([]string{s.address}, s.key.PublicKey())+"\n" {
				t.Errorf("known_hosts is now %q", after)
			}
		})
	}
}

// plainName is how known_hosts names a server.
func (s *server) plainName() string { return knownhosts.Normalize(s.address) }

func ecdsaKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ssh.NewPublicKey(&k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pub
}

// A server with keys of two kinds is asked for the kind that is known.
func TestTheKnownKindOfKeyIsAskedFor(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ssh.NewSignerFromKey(k)
	if err != nil {
		t.Fatal(err)
	}
	s.config.AddHostKey(second)
	for name, pub := range map[string]ssh.PublicKey{"ed25519": s.key.PublicKey(), "ecdsa": second.PublicKey()} {
		write(t, c.known(), line("", s.plainName(), pub))
		if _, err := c.dial(t, rigAt(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChangedKeyAdvice(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	_, old := newKey(t)
	global := filepath.Join(c.home, "global_hosts")
	write(t, c.known(), "# mine\n")
	write(t, global, line("", s.plainName(), old.PublicKey()))
	c.config(t, "GlobalKnownHostsFile "+global+"\n")
	_, err := c.dial(t, rigAt(s))
	_, port, _ := net.SplitHostPort(s.address)
	if _, text := phaseOf(t, err); !strings.Contains(text, "ssh-keygen -R '[127.0.0.1]:"+port+"' -f "+global) || strings.Contains(text, c.known()) {
		t.Errorf("the advice must name the file that holds the key: %s", text)
	}
}

func TestHostKeyAlias(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	write(t, c.known(), line("", "farm", s.key.PublicKey()))
	c.config(t, "HostKeyAlias farm\n")
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Error(err)
	}
}

func TestAcceptNewForManyRigsAtOnce(t *testing.T) {
	c := newClient(t)
	c.o.HostKeys = "accept-new"
	if err := os.RemoveAll(filepath.Join(c.home, ".ssh")); err != nil { // it is made anew
		t.Fatal(err)
	}
	key := filepath.Join(c.home, "key")
	writeKey(t, key, c.priv, "")
	const n = 16
	servers := make([]*server, n)
	for i := range servers {
		servers[i] = serve(t, c.pub)
	}
	d := New(c.o)
	defer d.Close()
	var wg sync.WaitGroup
	for _, s := range append(servers, servers...) { // each twice, as two names may stand for one host
		wg.Go(func() {
			rig := &inventory.Rig{Name: "a", Address: s.addr(), SSH: inventory.SSH{IdentityFiles: []string{key}}}
			if h, err := d.Dial(t.Context(), rig); err != nil {
				t.Error(err)
			} else {
				_ = h.Close()
			}
		})
	}
	wg.Wait()
	raw, err := os.ReadFile(c.known())
	if err != nil || strings.Count(string(raw), "\n") != n {
		t.Errorf("%d lines for %d hosts, %v", strings.Count(string(raw), "\n"), n, err)
	}
	if fi, err := os.Stat(filepath.Dir(c.known())); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi, err)
	}
	c.o.HostKeys = "strict"
	for _, s := range servers {
		if _, err := c.dial(t, &inventory.Rig{Name: "a", Address: s.addr(), SSH: inventory.SSH{IdentityFiles: []string{key}}}); err != nil {
			t.Error(err)
		}
	}
}

func TestAcceptNewWithoutAFile(t *testing.T) {
	for name, config := range map[string]string{
		"none":      "UserKnownHostsFile none\nGlobalKnownHostsFile none\nStrictHostKeyChecking accept-new\n",
		"/dev/null": "UserKnownHostsFile /dev/null\nStrictHostKeyChecking accept-new\n",
	} {
		c := newClient(t)
		s := serve(t, c.pub)
		c.config(t, config)
		if _, err := c.dial(t, rigAt(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat("none"); !errors.Is(err, os.ErrNotExist) {
			t.Error("a file called none was written")
		}
	}
}

func TestAcceptNewOnAFileThatCannotBeWritten(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	c.o.HostKeys, c.o.KnownHosts = "accept-new", filepath.Join(c.home, ".ssh/id_ed25519/known_hosts")
	_, err := c.dial(t, rigAt(s))
	if p, text := phaseOf(t, err); p != PhaseHostKey || !strings.Contains(text, "could not be noted") {
		t.Errorf("%s: %s", p, text)
	}
}

func TestHostKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		lines  func(t *testing.T, s *server) string
		accept bool
		phase  Phase // "" means it connects
		text   string
	}{
		"known": {func(_ *testing.T, s *server) string {
			return knownhosts.Line([]string{knownhosts.Normalize(s.address)}, s.key.PublicKey())
		}, false, "", ""},
		"hashed": {func(_ *testing.T, s *server) string {
			return xknownhosts.HashHostname(knownhosts.Normalize(s.address)) + " " + string(ssh.MarshalAuthorizedKey(s.key.PublicKey()))
		}, false, "", ""},
		"unknown":             {func(*testing.T, *server) string { return "" }, false, PhaseHostKey, "is not known"},
		"unknown, accept-new": {func(*testing.T, *server) string { return "" }, true, "", ""},
		"changed": {func(t *testing.T, s *server) string {
			_, k := newKey(t)
			return knownhosts.Line([]string{knownhosts.Normalize(s.address)}, k.PublicKey())
		}, false, PhaseHostKey, "ssh-keygen -R"},
		"changed, accept-new never helps": {func(t *testing.T, s *server) string {
			_, k := newKey(t)
			return knownhosts.Line([]string{knownhosts.Normalize(s.address)}, k.PublicKey())
		}, true, PhaseHostKey, "has changed"},
		"revoked": {func(_ *testing.T, s *server) string {
			return "@revoked * " + string(ssh.MarshalAuthorizedKey(s.key.PublicKey()))
		}, true, PhaseHostKey, "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			s := serve(t, c.pub)
			write(t, c.known(), tc.lines(t, s)+"\n")
			if tc.accept {
				c.o.HostKeys = "accept-new"
			}
			_, err := c.dial(t, rigAt(s))
			if tc.phase == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if p, text := phaseOf(t, err); p != tc.phase || !strings.Contains(text, tc.text) {
				t.Errorf("phase %s: %s", p, text)
			}
			if s.conns.Load() != 1 {
				t.Errorf("a refused key was retried: %d connections", s.conns.Load())
			}
		})
	}
}

func TestAcceptNewNotesTheKey(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	c.o.HostKeys = "accept-new"
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
	c.o.HostKeys = "strict"
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Errorf("the key was not noted: %v", err)
	}
	if st, err := os.Stat(c.known()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("known_hosts: %v %v", st.Mode(), err)
	}
}

func TestHostCertificate(t *testing.T) {
	c := newClient(t)
	s := serve(t, c.pub)
	_, ca := newKey(t)
	_, host := newKey(t)
	cert := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, host)
	if err != nil {
		t.Fatal(err)
	}
	s.config.AddHostKey(signer)
	write(t, c.known(), "@cert-authority * "+string(ssh.MarshalAuthorizedKey(ca.PublicKey())))
	if _, err := c.dial(t, rigAt(s)); err != nil {
		t.Fatal(err)
	}
}
