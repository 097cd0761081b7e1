package remote

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// attempt is one authentication: what was offered, and why a key could not sign, for the error.
type attempt struct {
	d     *Dialer
	t     settings
	clock *clock

	offered []string
	refused error // a key that the server wanted could not sign

	mu     sync.Mutex
	agent  net.Conn
	closed bool
}

// close ends the connection to the agent. It may be called while the agent is being waited for.
func (a *attempt) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.agent != nil {
		_ = a.agent.Close()
	}
}

// methods are public keys, then what a person types when there is one to ask.
func (a *attempt) methods() []ssh.AuthMethod {
	var out []ssh.AuthMethod
	if !a.t.without["publickey"] {
		out = append(out, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return a.signers(a.held()), nil }))
	}
	if a.d.o.Prompt == nil {
		return out
	}
	if !a.t.without["keyboard-interactive"] {
		out = append(out, ssh.RetryableAuthMethod(ssh.KeyboardInteractive(a.answer), passphraseTries))
	}
	if !a.t.without["password"] {
		out = append(out, ssh.RetryableAuthMethod(ssh.PasswordCallback(a.password), passphraseTries))
	}
	return out
}

// answer asks what the server wants to know. Its text is made harmless for a terminal.
func (a *attempt) answer(_, instruction string, questions []string, echos []bool) ([]string, error) {
	defer a.clock.pause()()
	answers := make([]string, len(questions))
	for i, q := range questions {
		a.note("keyboard-interactive")
		text, err := a.d.secret.each(fmt.Sprintf("%s@%s %s ", a.t.user, a.t.host, plain(instruction+" "+q)), echos[i])
		if err != nil {
			return nil, err
		}
		answers[i] = text
	}
	return answers, nil
}

func (a *attempt) password() (string, error) {
	defer a.clock.pause()()
	a.note("password")
	return a.d.secret.each(fmt.Sprintf("password of %s@%s: ", a.t.user, a.t.host), false)
}

func (a *attempt) note(what string) {
	for _, o := range a.offered {
		if o == what {
			return
		}
	}
	a.offered = append(a.offered, what)
}

// held are the keys in the agent.
func (a *attempt) held() []ssh.Signer {
	socket := a.t.identityAgent
	switch socket {
	case "none":
		return nil
	case "", "SSH_AUTH_SOCK":
		socket = pick(a.d.o.AgentSocket, a.d.o.getenv("SSH_AUTH_SOCK"))
	}
	if socket == "" {
		return nil
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		a.d.warnOnce("the SSH agent at " + socket + " does not answer: " + err.Error())
		return nil
	}
	a.mu.Lock()
	a.agent = conn
	if a.closed {
		_ = conn.Close()
	}
	a.mu.Unlock()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		a.d.warnOnce("the SSH agent at " + socket + " gives no keys: " + err.Error())
	}
	return signers
}

// signers orders what is offered. Named key files come first, each with its certificates; then the agent's keys, unless
// IdentitiesOnly. Default key files come after the agent, as nobody chose them.
func (a *attempt) signers(held []ssh.Signer) []ssh.Signer {
	var out, files []ssh.Signer
	used := map[string]bool{}
	add := func(s ssh.Signer, what string) {
		if blob := string(s.PublicKey().Marshal()); !used[blob] {
			used[blob] = true
			out = append(out, s)
			a.note(what)
		}
	}
	addFiles := func() {
		for i, s := range files {
			for _, cert := range a.certificates(a.t.identityFiles[i]+"-cert.pub", s) {
				add(cert, "a certificate of "+a.t.identityFiles[i])
			}
			if s != nil {
				add(s, a.t.identityFiles[i])
			}
		}
	}
	for _, path := range a.t.identityFiles {
		files = append(files, a.keyFile(path, held))
	}
	if a.t.named {
		addFiles()
	}
	for _, s := range held {
		if a.t.identitiesOnly && !sameKey(files, s) {
			continue
		}
		for _, cert := range a.certificates("", s) {
			add(cert, "a certificate of an agent key")
		}
		add(s, "agent key "+ssh.FingerprintSHA256(s.PublicKey()))
	}
	addFiles()
	return out
}

func sameKey(list []ssh.Signer, s ssh.Signer) bool {
	for _, l := range list {
		if l != nil && bytes.Equal(l.PublicKey().Marshal(), s.PublicKey().Marshal()) {
			return true
		}
	}
	return false
}

// keyFile gives the signer of a key file, nil when there is none to offer. A key that the agent holds is signed by the
// agent, so that no passphrase is asked; an encrypted one asks only when the server wants its signature.
func (a *attempt) keyFile(path string, held []ssh.Signer) ssh.Signer {
	if path == "none" {
		return nil
	}
	inAgent := func(pub ssh.PublicKey) ssh.Signer {
		for _, s := range held {
			if pub != nil && bytes.Equal(s.PublicKey().Marshal(), pub.Marshal()) {
				return s
			}
		}
		return nil
	}
	pub := publicHalf(path)
	if s := inAgent(pub); s != nil {
		return s
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		if a.t.named || !errors.Is(err, os.ErrNotExist) {
			a.d.warnOnce(fmt.Sprintf("key %s: %v", path, err))
		}
		return nil
	}
	s, err := ssh.ParsePrivateKey(raw)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return s
	case !errors.As(err, &locked):
		a.d.warnOnce(fmt.Sprintf("key %s: %v", path, err))
		return nil
	case locked.PublicKey != nil:
		pub = locked.PublicKey
	}
	if s := inAgent(pub); s != nil {
		return s
	}
	if a.d.o.Prompt == nil {
		a.note(path + " (not used: it is encrypted, and nobody can be asked)")
		return nil
	}
	open := func() (ssh.Signer, error) {
		defer a.clock.pause()() // before waiting for a person who is busy with another rig's question
		s, err := a.d.keys.unlock(path, raw, &a.d.secret)
		if err != nil {
			a.refused = err
		}
		return s, err
	}
	if pub == nil { // an old PEM file without its .pub: only opening it tells which key it is
		s, _ := open()
		return s
	}
	return &lockedKey{pub: pub, open: open}
}

// certificates are those in a file and the named ones that are for this key.
func (a *attempt) certificates(file string, s ssh.Signer) []ssh.Signer {
	if s == nil {
		return nil
	}
	var out []ssh.Signer
	for _, path := range append([]string{file}, a.t.certificates...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			if path != file {
				a.d.warnOnce(fmt.Sprintf("certificate %s: %v", path, err))
			}
			continue
		}
		k, _, _, _, err := ssh.ParseAuthorizedKey(raw)
		cert, ok := k.(*ssh.Certificate)
		if err != nil || !ok || !bytes.Equal(cert.Key.Marshal(), s.PublicKey().Marshal()) {
			continue
		}
		if c, err := ssh.NewCertSigner(cert, s); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// lockedKey shows its public half and opens the private one when it must sign.
type lockedKey struct {
	pub  ssh.PublicKey
	open func() (ssh.Signer, error)
}

func (k *lockedKey) PublicKey() ssh.PublicKey { return k.pub }

func (k *lockedKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(rand.Reader, data, "")
}

// SignWithAlgorithm implements ssh.AlgorithmSigner, which RSA keys need for SHA-2 signatures.
func (k *lockedKey) SignWithAlgorithm(r io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := k.open()
	if err != nil {
		return nil, err
	}
	if a, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return a.SignWithAlgorithm(r, data, algorithm)
	}
	return s.Sign(r, data)
}
