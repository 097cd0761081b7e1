package rigsim

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// session runs the one command of a channel through /bin/sh, as sshd does.
func (s *server) session(ctx context.Context, ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer func() { _ = ch.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan uint32, 1)
	running := false
	for {
		select {
		case status := <-done:
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			return
		case r, open := <-reqs:
			if !open { // the client is gone
				cancel()
				if running {
					<-done
				}
				return
			}
			ok := false
			switch r.Type {
			case "env":
				ok = true // taken and ignored, as sshd does with names that it was not told to accept
			case "exec":
				var p struct{ Command string }
				if ok = !running && ssh.Unmarshal(r.Payload, &p) == nil; ok {
					running = true
					go func() { done <- s.run(ctx, p.Command, ch) }()
				}
			}
			if r.WantReply {
				_ = r.Reply(ok, nil)
			}
		}
	}
}

// killGrace is how long a command may take to end after its connection was cut.
const killGrace = 3 * time.Second

// run runs a command in a process group of its own and gives its exit status.
func (s *server) run(ctx context.Context, command string, ch ssh.Channel) uint32 {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env, cmd.Dir = Env(s.rig.Root, s.rig.User), filepath.Join(s.rig.Root, homeDir)
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 255
	}
	if err := s.startCommand(cmd); err != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(stdin, ch) // a command that does not read on ends the copy
		_ = stdin.Close()
	}()
	err = cmd.Wait()
	sleep(s.rig.Root)
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return uint32(exit.ExitCode())
	}
	return 255
}

// startCommand starts a command; on a user's rig without the right to read what the file's mode forbids, which root
// (and so the commands of a server that runs as root) otherwise has.
func (s *server) startCommand(cmd *exec.Cmd) error {
	if !s.user || os.Geteuid() != 0 {
		return cmd.Start()
	}
	result := make(chan error, 1)
	go func() {
		// The thread keeps what was dropped, so it must not go back to the pool: it ends with this goroutine.
		runtime.LockOSThread()
		if err := dropOverride(); err != nil {
			result <- err
			return
		}
		result <- cmd.Start()
	}()
	return <-result
}
