package accept

import (
	"bytes"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace keeps a signature of a bundle from being taken for one of anything else (PROTOCOL.sshsig of OpenSSH).
const Namespace = "preflight-accept"

// Sign signs a manifest as `ssh-keygen -Y sign -n preflight-accept` does, with SHA-512.
func Sign(manifest []byte, key ssh.Signer) ([]byte, error) {
	s, err := sshsig.Sign(bytes.NewReader(manifest), key, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", ManifestName, err)
	}
	return sshsig.Armor(s), nil
}

// VerifySignature says which key signed a manifest. That it is the key of the one who should have signed is a question of
// its own: see Signers.
func VerifySignature(manifest, armored []byte) (ssh.PublicKey, error) {
	s, err := sshsig.Unarmor(armored)
	if err != nil {
		return nil, fmt.Errorf("%s is no SSH signature: %w", SignatureName, err)
	}
	if s.Namespace != Namespace {
		return nil, fmt.Errorf("%s was made for %q, not for %q", SignatureName, s.Namespace, Namespace)
	}
	if err := sshsig.Verify(bytes.NewReader(manifest), s, s.PublicKey, s.HashAlgorithm, Namespace); err != nil {
		return nil, fmt.Errorf("the signature does not fit %s: one of them was changed: %w", ManifestName, err)
	}
	return s.PublicKey, nil
}
