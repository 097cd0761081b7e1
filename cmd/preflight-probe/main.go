//go:build linux

// Command preflight-probe is the helper that preflight sends to a host to measure its cards through libcuda and
// libnccl, which it loads at run time. It is no tool for people: it reads requests and writes lines as package wire
// defines them, and leaves nothing behind.
//
// The process that talks to the controller (supervise.go) loads no foreign code. For each request it starts workers
// (worker.go) by /proc/self/exe, which do: a worker that hangs in the driver is killed and its phase is told; one that
// crashes takes nothing with it; one that cannot be killed is abandoned.
//
// Its life ends with the end of its standard input, with the death of its parent, with SIGTERM, or by an alarm; a
// worker's with its supervisor's. With --unlink it removes its own file first, and the folder around it when that is
// empty and named preflight-*.
//
// Exit codes: 0 the last request succeeded, 2 usage, 3 it ended with an error, 4 a phase hung, 5 a worker crashed, 6 a
// worker is stuck in the kernel, 7 the input ended during a request.
package main

import (
	"fmt"
	"os"
	"runtime"

	"preflight/internal/probe/wire"
)

// The first thread starts all workers, and must live as long as they: PDEATHSIG is bound to the thread that forked.
// CUDA's current context and NCCL's groups belong to a thread as well, so a worker keeps its first one too.
func init() { runtime.LockOSThread() }

func main() { os.Exit(command(os.Args[1:])) }

// workerArg starts a worker; only the helper itself uses it.
const workerArg = "worker"

func command(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("preflight-probe protocol", wire.Protocol, runtime.GOARCH)
		return 0
	case len(args) == 1 && args[0] == workerArg:
		return work()
	case len(args) == 1 && args[0] == "--unlink":
		unlinkSelf()
		return serve(os.Stdin, os.Stdout)
	case len(args) == 0:
		return serve(os.Stdin, os.Stdout)
	}
	fmt.Fprintln(os.Stderr, "usage: preflight-probe [--unlink] (requests on standard input), or --version")
	return 2
}
