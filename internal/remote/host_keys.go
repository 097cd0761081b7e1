package remote

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// writing serialises additions to known_hosts within this process.
var writing sync.Mutex

// hostKeys gives the check of a host's key and the algorithms to ask for: those that known_hosts holds come first, so
// that a host known by one kind of key is not refused for showing another. Why a key was refused is left in *refused.
func (d *Dialer) hostKeys(t settings, refused *error) (ssh.HostKeyCallback, []string, error) {
	db, err := d.knownKeys(t.knownHosts)
	if err != nil {
		return nil, nil, &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("known_hosts cannot be read: %v", err), Err: err, Advice: []string{"correct or remove the line"}}
	}
	name := t.hostPort()
	if t.hostKeyAlias != "" {
		name = net.JoinHostPort(t.hostKeyAlias, "22") // an alias stands without a port
	}
	k := keyCheck{d: d, t: t, name: name, known: db.HostKeys(name), check: db.HostKeyCallback()}
	verify := func(_ string, remote net.Addr, key ssh.PublicKey) error {
		*refused = k.verify(addrOf(remote, name), key)
		return *refused
	}
	algorithms := slices.DeleteFunc(db.HostKeyAlgorithms(name), func(a string) bool { return a == "" })
	for _, a := range ssh.SupportedAlgorithms().HostKeys {
		if !slices.Contains(algorithms, a) {
			algorithms = append(algorithms, a)
		}
	}
	return verify, algorithms, nil
}

// knownKeys reads known_hosts files, again only when one has changed. Files that do not exist hold no keys.
func (d *Dialer) knownKeys(paths []string) (*knownhosts.HostKeyDB, error) {
	var files []string
	var state strings.Builder
	for _, f := range paths {
		if fi, err := os.Stat(f); err == nil {
			files = append(files, f)
			fmt.Fprintf(&state, "%s\x00%d\x00%d\n", f, fi.Size(), fi.ModTime().UnixNano())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if db := d.known[state.String()]; db != nil {
		return db, nil
	}
	db, err := knownhosts.NewDB(files...)
	if err == nil {
		d.known[state.String()] = db
	}
	return db, err
}

// addrOf gives the check an address that it can split; a proxy has none.
func addrOf(a net.Addr, name string) net.Addr {
	if _, ok := a.(*net.TCPAddr); ok {
		return a
	}
	return proxyAddr(name)
}

// keyCheck judges the key that a host shows.
type keyCheck struct {
	d     *Dialer
	t     settings
	name  string // host:port as known_hosts has it
	known []knownhosts.PublicKey
	check ssh.HostKeyCallback
}

// verify accepts a certificate of a trusted authority, else a known key. As in OpenSSH, a certificate that nobody
// vouches for counts as the key it holds; a revoked key is refused in every form.
func (k keyCheck) verify(remote net.Addr, key ssh.PublicKey) error {
	forms := []ssh.PublicKey{key}
	cert, isCert := key.(*ssh.Certificate)
	if isCert {
		forms = []ssh.PublicKey{cert.Key, cert.SignatureKey}
	}
	for _, f := range forms {
		var revoked *xknownhosts.RevokedError
		if err := k.check(k.name, remote, f); errors.As(err, &revoked) {
			return &Error{
				Phase: PhaseHostKey, Summary: fmt.Sprintf("%s shows a key that is marked @revoked (%s)", k.plain(), show(f)), Err: err,
				Advice: []string{fmt.Sprintf("do not connect; give the host a new key (the mark is at %s:%d)", revoked.Revoked.Filename, revoked.Revoked.Line)},
			}
		}
	}
	if isCert {
		err := k.check(k.name, remote, cert)
		if err == nil {
			return nil
		}
		key = cert.Key
		if len(k.plainKeys()) == 0 && k.authority(cert.SignatureKey) {
			return &Error{
				Phase: PhaseHostKey, Summary: fmt.Sprintf("the certificate of %s does not hold: %v", k.plain(), err), Err: err,
				Advice: []string{"sign the host's key anew, for this name"},
			}
		}
	}
	return k.plainKey(remote, key)
}

// plainKey judges a key that stands for itself.
func (k keyCheck) plainKey(remote net.Addr, key ssh.PublicKey) error {
	known := k.plainKeys()
	for _, p := range known {
		if bytes.Equal(p.Marshal(), key.Marshal()) {
			return nil
		}
	}
	err := k.check(k.name, remote, key)
	if err == nil { // it is the key of an authority, which is no host's own key
		err = &xknownhosts.KeyError{}
	}
	if len(known) > 0 {
		return k.changed(key, err)
	}
	if k.t.strict != "accept-new" {
		return &Error{
			Phase: PhaseHostKey, Summary: fmt.Sprintf("the host key of %s is not known (%s)", k.plain(), show(key)), Err: err,
			Advice: []string{fmt.Sprintf("compare the fingerprint and connect once: ssh -p %s %s@%s", k.t.port, k.t.user, k.t.host), "for freshly imaged hosts: --host-keys accept-new"},
		}
	}
	if len(k.t.knownHosts) == 0 {
		return nil // UserKnownHostsFile none: nothing is to be noted
	}
	file := k.t.knownHosts[0]
	if err := remember(file, k.plain(), key); err != nil {
		return &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("the key of %s could not be noted: %v", k.plain(), err), Err: err, Advice: []string{"make " + file + " writable"}}
	}
	return nil
}

// changed refuses a key that is not the one that was known.
func (k keyCheck) changed(key ssh.PublicKey, err error) error {
	e := &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("the host key of %s has changed (now %s): the host was imaged anew, or somebody is in between", k.plain(), show(key)), Err: err}
	var files []string
	var keyErr *xknownhosts.KeyError
	if errors.As(err, &keyErr) {
		for _, w := range keyErr.Want {
			if !slices.Contains(files, w.Filename) {
				files = append(files, w.Filename)
			}
		}
	}
	for _, f := range files {
		e.Advice = append(e.Advice, fmt.Sprintf("when you know why it changed: ssh-keygen -R '%s' -f %s", k.plain(), f))
	}
	return e
}

// plainKeys are the known keys that are not those of an authority.
func (k keyCheck) plainKeys() []knownhosts.PublicKey {
	return slices.DeleteFunc(slices.Clone(k.known), func(p knownhosts.PublicKey) bool { return p.Cert })
}

func (k keyCheck) authority(key ssh.PublicKey) bool {
	return slices.ContainsFunc(k.known, func(p knownhosts.PublicKey) bool { return p.Cert && bytes.Equal(p.Marshal(), key.Marshal()) })
}

func (k keyCheck) plain() string { return knownhosts.Normalize(k.name) }

func show(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// remember adds a line to known_hosts, in one write.
func remember(file, name string, key ssh.PublicKey) error {
	writing.Lock()
	defer writing.Unlock()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	line := knownhosts.Line([]string{name}, key) + "\n"
	old, err := os.ReadFile(file)
	if err == nil && len(old) > 0 && old[len(old)-1] != '\n' {
		line = "\n" + line
	}
	if strings.Contains("\n"+string(old), "\n"+strings.TrimSpace(line)+"\n") {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
