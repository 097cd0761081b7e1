//go:build linux

package integration

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"

	"preflight/internal/remote"
)

// TestHostKeys: who is believed to be the host.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	all := []hostKey{newHostKey(t, "ed25519"), newHostKey(t, "ecdsa"), newHostKey(t, "rsa")}
	s := StartSSHD(t, Options{Keys: all})
	other := newHostKey(t, "ed25519")
	line := func(k hostKey) string { return knownhosts.Line([]string{s.known()}, k.public) + "\n" }
	revoked := "" // every key of the host, for it may show any
	for _, k := range all {
		revoked += "@revoked " + knownhosts.Line([]string{"*"}, k.public) + "\n"
	}
	for name, c := range map[string]struct {
		known  string
		accept bool
		want   []string // in the error; nil when it must work
		noted  bool     // a line is added
	}{
		"known":                           {known: line(all[0])},
		"known by its RSA key alone":      {known: line(all[2])},
		"known by its ECDSA key alone":    {known: line(all[1])},
		"known by a hashed name":          {known: knownhosts.HashHostname(s.known()) + strings.TrimPrefix(line(all[0]), s.known())},
		"unknown":                         {want: []string{"not known", "SHA256:", "accept-new"}},
		"unknown, accept-new":             {accept: true, noted: true},
		"changed":                         {known: line(other), want: []string{"has changed", "ssh-keygen -R '" + s.known() + "'"}},
		"changed, accept-new":             {known: line(other), accept: true, want: []string{"has changed", "ssh-keygen -R '" + s.known() + "'"}},
		"revoked":                         {known: line(all[0]) + revoked, want: []string{"@revoked"}},
		"revoked, accept-new":             {known: revoked, accept: true, want: []string{"@revoked"}},
		"another host's key is not taken": {known: strings.ReplaceAll(line(all[0]), s.known(), "[127.0.0.1]:1"), want: []string{"not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := newClient(t)
			writeFile(t, cl.o.KnownHosts, c.known, 0o600)
			rig := cl.rig(s, s.User)
			if c.accept {
				cl.o.HostKeys = "accept-new"
			}
			out, _, err := cl.say(t, rig, "echo in")
			after, rerr := os.ReadFile(cl.o.KnownHosts)
			must(t, rerr)
			if changed := string(after) != c.known; changed != c.noted {
				t.Errorf("known_hosts changed: %v, want %v\n%s", changed, c.noted, after)
			}
			if c.want != nil {
				refused(t, err, remote.PhaseHostKey, c.want...)
				return
			}
			if err != nil || out != "in" {
				t.Fatalf("output %q, error %v", out, err)
			}
			if c.noted { // from now on it is known, and strict is content
				cl.o.HostKeys = "strict"
				if out, _, err := cl.say(t, rig, "echo in"); err != nil || out != "in" {
					t.Errorf("the second, strict run: output %q, error %v", out, err)
				}
			}
		})
	}
}

// TestChangedKeyAdvice runs the very command that the error gives, and nothing else makes the host acceptable again.
func TestChangedKeyAdvice(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is missing (apt-get install openssh-client)")
	}
	s := StartSSHD(t, Options{Debug: true})
	cl := newClient(t)
	writeFile(t, cl.o.KnownHosts, knownhosts.Line([]string{s.known()}, newHostKey(t, "ed25519").public)+"\n", 0o600)
	cl.o.HostKeys = "accept-new"
	_, _, err := cl.say(t, cl.rig(s, s.User), "echo in")
	refused(t, err, remote.PhaseHostKey, "has changed")
	if strings.Contains(s.log.String(), "Accepted publickey") || strings.Contains(s.log.String(), "userauth-request") {
		t.Error("the client showed who it is to a host whose key has changed")
	}
	command := regexp.MustCompile(`ssh-keygen -R '[^']+' -f [^ ;)]+`).FindString(err.Error())
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
	if out, _, err := cl.say(t, cl.rig(s, s.User), "echo in"); err != nil || out != "in" {
		t.Errorf("after the advice: output %q, error %v", out, err)
	}
}
