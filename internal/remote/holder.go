package remote

import (
	"sync"

	"golang.org/x/crypto/ssh"
)

// holder keeps the session of a script, so that another goroutine can end it.
type holder struct {
	mu      sync.Mutex
	session *ssh.Session
	dropped bool
}

// hold keeps the session for drop; it is false when drop came first.
func (r *holder) hold(s *ssh.Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
	return !r.dropped
}

// opened says whether the host has opened the session.
func (r *holder) opened() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session != nil
}

// drop ends the session: the shell is told to end, and its pipes close under whatever does not.
func (r *holder) drop() {
	r.mu.Lock()
	s := r.session
	r.dropped = true
	r.mu.Unlock()
	if s != nil {
		_ = s.Signal(ssh.SIGTERM)
		_ = s.Close()
	}
}
