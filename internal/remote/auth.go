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

// secrets asks a person, one question at a time, each only once in a run.
type secrets struct {
	prompt Prompt
	mu     sync.Mutex
	known  map[string]string
}

var errNoPrompt = errors.New("nobody can be asked here")

// ask returns an answer given before, else asks. Forget drops one that proved wrong.
func (s *secrets) ask(question string, echo bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.known[question]; ok {
		return v, nil
	}
	if s.prompt == nil {
		return "", errNoPrompt
	}
	v, err := s.prompt(question, echo)
	if err != nil {
		return "", err
	}
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[question] = v
	return v, nil
}

func (s *secrets) forget(question, wrong string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[question] == wrong {
		delete(s.known, question)
	}
}

// keyring keeps decrypted key files for the run.
type keyring struct {
	mu   sync.Mutex
	open map[string]ssh.Signer
}

// auth gives the methods for one host: named keys (through the agent where it holds them), certificates, the rest of
// the agent, then what a person types. Tried names what was offered, for the error.
func (d *Dialer) auth(t settings, p *pauser) (methods []ssh.AuthMethod, tried func() []string, done func()) {
	var offered []string
	held, closeAgent := d.agentSigners(t)
	methods = append(methods, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		var out []ssh.Signer
		out, offered = d.signers(t, held, p)
		return out, nil
	}))
	if d.o.Prompt != nil {
		methods = append(methods, ssh.KeyboardInteractive(func(_, instruction string, questions []string, echos []bool) ([]string, error) {
			defer p.pause()()
			offered = append(offered, "keyboard-interactive")
			answers := make([]string, len(questions))
			for i, q := range questions {
				a, err := d.o.promptLocked(&d.secret, fmt.Sprintf("%s@%s %s%s", t.user, t.host, instruction, q), echos[i])
				if err != nil {
					return nil, err
				}
				answers[i] = a
			}
			return answers, nil
		}), ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) {
			defer p.pause()()
			offered = append(offered, "password")
			return d.o.promptLocked(&d.secret, fmt.Sprintf("password of %s@%s: ", t.user, t.host), false)
		}), 3))
	}
	return methods, func() []string { return offered }, closeAgent
}

// promptLocked asks without keeping the answer: a wrong password must not be sent again.
func (o Options) promptLocked(s *secrets, question string, echo bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.Prompt(question, echo)
}

// agentSigners are the keys that the agent holds.
func (d *Dialer) agentSigners(t settings) ([]ssh.Signer, func()) {
	socket := t.identityAgent
	switch socket {
	case "none":
		return nil, func() {}
	case "", "ssh_auth_sock":
		socket = pick(d.o.AgentSocket, d.o.getenv("SSH_AUTH_SOCK"))
	}
	if socket == "" {
		return nil, func() {}
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		d.warnOnce("the SSH agent at " + socket + " does not answer: " + err.Error())
		return nil, func() {}
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		d.warnOnce("the SSH agent at " + socket + " gives no keys: " + err.Error())
	}
	return signers, func() { _ = conn.Close() }
}

// signers orders what is offered: named keys first, then the agent's others unless IdentitiesOnly.
func (d *Dialer) signers(t settings, held []ssh.Signer, p *pauser) (out []ssh.Signer, offered []string) {
	used := map[string]bool{}
	add := func(s ssh.Signer, what string) {
		blob := string(s.PublicKey().Marshal())
		if !used[blob] {
			used[blob] = true
			out, offered = append(out, s), append(offered, what)
		}
	}
	var named []ssh.Signer
	for _, path := range t.identityFiles {
		if path == "none" {
			continue
		}
		s, err := d.keyFile(t, path, held, p)
		switch {
		case err == nil:
			named = append(named, s)
			for _, cert := range d.certificates(t, path, s) {
				add(cert, path+"-cert.pub")
			}
			add(s, path)
		case errors.Is(err, os.ErrNotExist) && !t.named:
		default:
			d.warnOnce(fmt.Sprintf("key %s: %v", path, err))
		}
	}
	for _, s := range held {
		if !t.identitiesOnly || sameKey(named, s) {
			add(s, "agent key "+ssh.FingerprintSHA256(s.PublicKey()))
		}
	}
	return out, offered
}

func sameKey(list []ssh.Signer, s ssh.Signer) bool {
	for _, l := range list {
		if bytes.Equal(l.PublicKey().Marshal(), s.PublicKey().Marshal()) {
			return true
		}
	}
	return false
}

// keyFile gives the signer of a key file. A key that the agent holds is signed by the agent, so that no passphrase is
// asked; an encrypted one asks only when the server wants its signature.
func (d *Dialer) keyFile(t settings, path string, held []ssh.Signer, p *pauser) (ssh.Signer, error) {
	pub := publicHalf(path)
	for _, s := range held {
		if pub != nil && bytes.Equal(s.PublicKey().Marshal(), pub.Marshal()) {
			return s, nil
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := ssh.ParsePrivateKey(raw)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		return s, err
	}
	if locked.PublicKey != nil {
		pub = locked.PublicKey
	}
	if pub == nil { // an old PEM file without its .pub: it must be opened to know what it is
		return d.unlock(path, raw, p)
	}
	for _, s := range held {
		if bytes.Equal(s.PublicKey().Marshal(), pub.Marshal()) {
			return s, nil
		}
	}
	return &lockedKey{pub: pub, open: func() (ssh.Signer, error) { return d.unlock(path, raw, p) }}, nil
}

// publicHalf reads PATH.pub, or PATH itself when it is a public key (whose private half is in the agent).
func publicHalf(path string) ssh.PublicKey {
	for _, p := range []string{path + ".pub", path} {
		if raw, err := os.ReadFile(p); err == nil {
			if k, _, _, _, err := ssh.ParseAuthorizedKey(raw); err == nil {
				return k
			}
		}
	}
	return nil
}

// unlock decrypts a key file, asking for its passphrase once in a run and at most three times.
func (d *Dialer) unlock(path string, raw []byte, p *pauser) (ssh.Signer, error) {
	d.keys.mu.Lock()
	defer d.keys.mu.Unlock()
	if s, ok := d.keys.open[path]; ok {
		return s, nil
	}
	defer p.pause()()
	question := "passphrase of " + path + ": "
	var err error
	for range 3 {
		var phrase string
		if phrase, err = d.secret.ask(question, false); err != nil {
			return nil, fmt.Errorf("it is encrypted, and its passphrase is not known: %w", err)
		}
		var s ssh.Signer
		if s, err = ssh.ParsePrivateKeyWithPassphrase(raw, []byte(phrase)); err == nil {
			if d.keys.open == nil {
				d.keys.open = map[string]ssh.Signer{}
			}
			d.keys.open[path] = s
			return s, nil
		}
		d.secret.forget(question, phrase)
	}
	return nil, fmt.Errorf("wrong passphrase: %w", err)
}

// certificates are PATH-cert.pub and the named ones, for this key.
func (d *Dialer) certificates(t settings, path string, s ssh.Signer) []ssh.Signer {
	var out []ssh.Signer
	for _, file := range append([]string{path + "-cert.pub"}, t.certificates...) {
		raw, err := os.ReadFile(file)
		if err != nil {
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
