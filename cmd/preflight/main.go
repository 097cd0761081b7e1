// Command preflight checks GPU rigs over SSH and says what to mend. See the README.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"preflight/checks"
	"preflight/internal/report"
)

// version is set by the linker (make build, make release).
var version = "dev"

func main() {
	debug.SetGCPercent(400) // short runs over many hosts: collecting less often is worth a few MB
	os.Exit(run())
}

// run is main with an exit code, so that the tests can call it as a command.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process, whatever it waits for
	// A reader that left (| head) makes writes fail instead of ending the process, so that temporary folders go.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	env := &environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	root := newRoot(env)
	err := root.ExecuteContext(ctx)
	var e exit
	switch {
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	case errors.As(err, &e):
		if e.err != nil {
			_, _ = fmt.Fprintln(env.stderr, "preflight: "+shown(e.err))
		}
		return e.code
	case err != nil:
		_, _ = fmt.Fprintln(env.stderr, "preflight: "+shown(err))
		return checks.ExitUsage
	}
	return checks.ExitOK
}

// shown is an error as a terminal may have it: names of files and words of hosts in it may hold control codes.
func shown(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		lines[i] = report.Safe(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// exitPipe is what a shell reports of a command whose reader left: 128 + SIGPIPE.
const exitPipe = 141

// exit carries an exit code out of a command; a nil err means that everything was said already.
type exit struct {
	code int
	err  error
}

func (e exit) Unwrap() error { return e.err }

func (e exit) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("exit %d", e.code)
}

// failed is a failure of the tool itself.
func failed(err error) error { return exit{checks.ExitTool, err} }

// usage is a mistake of the user.
func usage(format string, args ...any) error {
	return exit{checks.ExitUsage, fmt.Errorf(format, args...)}
}
