package remote

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Prompt asks a person; echo says whether the answer may be shown while it is typed.
type Prompt func(question string, echo bool) (string, error)

// secrets asks a person, one question at a time.
type secrets struct {
	prompt Prompt
	mu     sync.Mutex
	known  map[string]answer
}

// answer is what was said; a refusal is remembered too, so that it is not asked again for the next rig.
type answer struct {
	text string
	err  error
}

var errNoPrompt = errors.New("nobody can be asked here")

// once asks a question once in a run.
func (s *secrets) once(question string, echo bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.known[question]; ok {
		return a.text, a.err
	}
	if s.prompt == nil {
		return "", errNoPrompt
	}
	var a answer
	a.text, a.err = s.prompt(question, echo)
	if s.known == nil {
		s.known = map[string]answer{}
	}
	s.known[question] = a
	return a.text, a.err
}

// each asks without keeping the answer: a wrong password must not be sent again.
func (s *secrets) each(question string, echo bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt == nil {
		return "", errNoPrompt
	}
	return s.prompt(question, echo)
}

// keyring keeps decrypted key files for the run, and which ones nobody could open.
type keyring struct {
	mu     sync.Mutex
	open   map[string]ssh.Signer
	failed map[string]error
}

// passphraseTries is how often a passphrase may be mistyped.
const passphraseTries = 3

// unlock decrypts a key file. It asks once in a run, up to three times while the passphrase is wrong; then the file is
// left alone for the rest of the run.
func (k *keyring) unlock(path string, raw []byte, s *secrets) (ssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if signer, ok := k.open[path]; ok {
		return signer, nil
	}
	if err, ok := k.failed[path]; ok {
		return nil, err
	}
	signer, err := openKey(path, raw, s)
	if err != nil {
		if k.failed == nil {
			k.failed = map[string]error{}
		}
		k.failed[path] = err
		return nil, err
	}
	if k.open == nil {
		k.open = map[string]ssh.Signer{}
	}
	k.open[path] = signer
	return signer, nil
}

func openKey(path string, raw []byte, s *secrets) (ssh.Signer, error) {
	var last error
	for range passphraseTries {
		phrase, err := s.each("passphrase of "+path+": ", false)
		if err != nil {
			return nil, fmt.Errorf("%s is encrypted, and its passphrase is not known: %w", path, err)
		}
		secret := []byte(phrase)
		signer, err := ssh.ParsePrivateKeyWithPassphrase(raw, secret)
		clear(secret)
		if err == nil {
			return signer, nil
		}
		last = err
	}
	return nil, fmt.Errorf("%s stays locked, the passphrase was wrong %d times: %w", path, passphraseTries, last)
}

// publicHalf reads PATH.pub, or PATH itself when it is a public key whose private half is in the agent.
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
