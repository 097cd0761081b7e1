package remote

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// writing serialises additions to known_hosts within this process.
var writing sync.Mutex

// hostKeys gives the check of a host's key and the algorithms to ask for, so that a host known by one kind of key is
// not refused for showing another. Why a key was refused is left in *refused.
func (d *Dialer) hostKeys(t settings, refused *error) (ssh.HostKeyCallback, []string, error) {
	var files []string
	for _, f := range t.knownHosts {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, nil, &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("known_hosts cannot be read: %v", err), Err: err, Advice: []string{"correct or remove the line"}}
	}
	name := t.hostPort()
	if t.hostKeyAlias != "" {
		name = net.JoinHostPort(t.hostKeyAlias, "22") // an alias stands without a port
	}
	check := db.HostKeyCallback()
	verify := func(_ string, remote net.Addr, key ssh.PublicKey) error {
		err := check(name, addrOf(remote, name), key)
		if err == nil {
			return nil
		}
		err = d.judgeKey(t, name, key, err)
		*refused = err
		return err
	}
	return verify, db.HostKeyAlgorithms(name), nil
}

// addrOf gives the check an address that it can split; a proxy has none.
func addrOf(a net.Addr, name string) net.Addr {
	if _, ok := a.(*net.TCPAddr); ok {
		return a
	}
	return proxyAddr(name)
}

// judgeKey tells a changed key from a revoked and an unknown one. Only an unknown key can be accepted, and only by
// accept-new.
func (d *Dialer) judgeKey(t settings, name string, key ssh.PublicKey, err error) error {
	plain := knownhosts.Normalize(name)
	file := first(t.knownHosts)
	print := key.Type() + " " + ssh.FingerprintSHA256(key)
	var revoked *xknownhosts.RevokedError
	switch {
	case errors.As(err, &revoked):
		return &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("%s shows a key that is marked @revoked (%s)", plain, print), Err: err, Advice: []string{"do not connect; give the host a new key"}}
	case knownhosts.IsHostKeyChanged(err):
		return &Error{
			Phase: PhaseHostKey, Summary: fmt.Sprintf("the host key of %s has changed (now %s): the host was imaged anew, or somebody is in between", plain, print), Err: err,
			Advice: []string{"when you know why it changed: ssh-keygen -R '" + plain + "' -f " + file},
		}
	case !knownhosts.IsHostUnknown(err):
		return &Error{Phase: PhaseHostKey, Summary: err.Error(), Err: err}
	case t.strict != "accept-new":
		return &Error{
			Phase: PhaseHostKey, Summary: fmt.Sprintf("the host key of %s is not known (%s)", plain, print), Err: err,
			Advice: []string{fmt.Sprintf("compare the fingerprint and connect once: ssh -p %s %s@%s", t.port, t.user, t.host), "for freshly imaged hosts: --host-keys accept-new"},
		}
	}
	if err := remember(file, plain, key); err != nil {
		return &Error{Phase: PhaseHostKey, Summary: fmt.Sprintf("the key of %s could not be noted: %v", plain, err), Err: err, Advice: []string{"make " + file + " writable"}}
	}
	return nil
}

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
	if strings.Contains(string(old), strings.TrimSpace(line)) {
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
