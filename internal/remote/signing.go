package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// SigningKey opens the key that signs a document, as `ssh-keygen -Y sign -f PATH` does: the agent is asked when it holds
// the key of PATH.pub or PATH; else PATH is a private key, whose passphrase is asked for when it has one. agentSocket is
// SSH_AUTH_SOCK, "" for none. Close ends the connection to the agent.
func SigningKey(path, agentSocket string, prompt Prompt) (ssh.Signer, io.Closer, error) {
	pub := publicHalf(path)
	why := "no agent answers (SSH_AUTH_SOCK)"
	if pub != nil && agentSocket != "" {
		signer, conn, err := agentKey(agentSocket, pub)
		if err == nil {
			return signer, conn, nil
		}
		why = err.Error()
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.ParsePrivateKey(raw)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return signer, io.NopCloser(nil), nil
	case errors.As(err, &locked):
		if signer, err = openKey(path, raw, &secrets{prompt: prompt}); err != nil {
			return nil, nil, err
		}
		return signer, io.NopCloser(nil), nil
	case pub != nil:
		return nil, nil, fmt.Errorf("%s is a public key, and its private half is in no agent: %s", path, why)
	}
	return nil, nil, fmt.Errorf("%s is no private key: %w", path, err)
}

// agentKey is the agent's signer of one key.
func agentKey(socket string, pub ssh.PublicKey) (ssh.Signer, io.Closer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("the SSH agent at %s does not answer: %w", socket, err)
	}
	held, err := agent.NewClient(conn).Signers()
	if err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("the SSH agent at %s gives no keys: %w", socket, err)
	}
	for _, s := range held {
		if bytes.Equal(s.PublicKey().Marshal(), pub.Marshal()) {
			return s, conn, nil
		}
	}
	_ = conn.Close()
	return nil, nil, fmt.Errorf("the SSH agent at %s does not hold %s", socket, ssh.FingerprintSHA256(pub))
}
