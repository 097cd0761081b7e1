package collect

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Talk runs a script with a shell of this machine and hands its standard input and output to talk, as the remote Talk
// does. When talk returns, the input is closed; what then still runs is ended after a moment.
func (s Shell) Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error {
	argv := s.Argv
	if len(argv) == 0 {
		argv = []string{"/bin/sh"}
	}
	argv = append(withoutStdin(argv), "-c", string(script))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return errors.Join(err, w.Close())
	}
	_ = w.Close()
	stop := context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Now()) })
	defer stop()
	err = talk(in, out)
	_ = in.Close()
	ended := time.AfterFunc(5*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer ended.Stop()
	_ = cmd.Wait() // the script's exit status is its own affair
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// withoutStdin drops the -s that tells a shell to read its script from standard input.
func withoutStdin(argv []string) []string {
	var out []string
	for _, a := range argv {
		if strings.TrimSpace(a) != "-s" {
			out = append(out, a)
		}
	}
	return out
}
