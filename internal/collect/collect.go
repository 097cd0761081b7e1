package collect

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"preflight/internal/facts"
)

// Access says with which rights a script ran.
type Access struct {
	Root string // "root", "sudo" or "none"
	Why  string // why not root, when it is "none"
}

// Runner runs a script with /bin/sh on some host and copies its standard output. It returns when the script has
// ended, when ctx is done, or when stdout refuses to take more.
type Runner interface {
	Run(ctx context.Context, script []byte, stdout io.Writer) (Access, error)
}

// Collect reads one host through a runner and gives its snapshot, without serials unless the request keeps them.
//
// A host that stops half-way gives a snapshot whose Manifest.Cut says why. An error means that there is nothing to
// judge: the runner failed before the first frame, or the stream was not the collector's.
func Collect(ctx context.Context, r Runner, req Request) (*facts.Snapshot, error) {
	if req.Nonce == "" {
		req.Nonce = NewNonce()
	}
	start := time.Now()
	if req.At.IsZero() {
		req.At = start
	}
	deadline := req.Deadline
	if deadline == 0 {
		deadline = DefaultDeadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("the collector ran longer than %s", deadline))
	defer cancel()

	pr, pw := io.Pipe()
	type ran struct {
		access Access
		err    error
	}
	done := make(chan ran, 1)
	go func() {
		access, err := r.Run(ctx, Script(req), pw)
		_ = pw.CloseWithError(err) // nil closes with EOF
		done <- ran{access, err}
	}()
	snap, err := Parse(pr, req)
	_ = pr.CloseWithError(io.ErrClosedPipe) // a runner that still writes must stop
	if err != nil {
		cancel()
	}
	result := <-done
	if err != nil {
		return nil, err
	}
	finishManifest(&snap.Manifest, result.access, result.err, context.Cause(ctx), time.Since(start))
	facts.Redact(snap)
	return snap, nil
}

func finishManifest(m *facts.Manifest, access Access, err, cause error, took time.Duration) {
	m.Millis = took.Milliseconds()
	if access.Root != "" {
		m.Root, m.RootWhy = access.Root, access.Why
	}
	if m.UID != 0 {
		m.Root = "none"
	}
	for i := range m.Items {
		if m.UID == 0 {
			m.Items[i].Via = m.Root
		}
	}
	if err == nil || m.Cut == "" {
		return
	}
	if cause != nil {
		err = cause
	}
	if why := err.Error(); !strings.Contains(m.Cut, why) {
		m.Cut += ": " + why
	}
}

// Local reads the machine that preflight itself runs on, through the same script.
func Local(ctx context.Context, req Request) (*facts.Snapshot, error) {
	return Collect(ctx, Shell{}, req)
}

// Shell runs scripts with a shell of this machine, in a session of its own, which ends with the context. A session has
// no terminal: a shell with job control would be stopped by the one that preflight runs on, and wait for ever.
type Shell struct {
	Argv []string // default: /bin/sh -s
	Env  []string // default: that of this process
}

// Run implements [Runner].
func (s Shell) Run(ctx context.Context, script []byte, stdout io.Writer) (Access, error) {
	argv := s.Argv
	if len(argv) == 0 {
		argv = []string{"/bin/sh", "-s"}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Access{}, err
	}
	defer func() { _ = r.Close() }()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.Env
	cmd.Stdout = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		_ = w.Close()
		return Access{}, err
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return Access{}, fmt.Errorf("start %s: %w", argv[0], err)
	}
	_ = w.Close()
	go func() {
		_, _ = stdin.Write(script) // a shell that ended early shows in its output
		_ = stdin.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now().Add(3 * time.Second)) })
	defer stop()
	_, copyErr := io.Copy(stdout, r)
	if copyErr != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return Access{}, context.Cause(ctx)
		}
		return Access{}, fmt.Errorf("%s: %w", argv[0], err)
	}
	return Access{Root: rootOf(os.Geteuid())}, copyErr
}

func rootOf(uid int) string {
	if uid == 0 {
		return "root"
	}
	return "none"
}
