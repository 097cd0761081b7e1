package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// selfExe starts this program again although its file is gone.
const selfExe = "/proc/self/exe"

// unlinkSelf removes the helper's file, and its folder when the controller made that for it alone.
func unlinkSelf() {
	path, err := os.Executable()
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return
	}
	_ = os.Remove(path)
	if dir := filepath.Dir(path); strings.HasPrefix(filepath.Base(dir), "preflight-") {
		_ = unix.Rmdir(dir) // refuses a folder that holds anything else
	}
}

// dieWithParent asks for a signal at the death of the parent, and says whether the parent is still there.
func dieWithParent(sig unix.Signal, parent int) bool {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(sig), 0, 0, 0)
	return parent == 0 || os.Getppid() == parent
}

// noCore keeps a crash of foreign code from writing a core file.
func noCore() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

// alarm ends the process after d by SIGALRM with the kernel's default action, so that it needs no thread of ours to
// run. Go's runtime would catch the signal and drop it.
func alarm(d time.Duration) {
	var dfl [64]byte // struct sigaction of the kernel, all zero: SIG_DFL, no flags, empty mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGALRM), uintptr(unsafe.Pointer(&dfl[0])), 0, 8, 0, 0)
	_, _ = unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Value: unix.NsecToTimeval(d.Nanoseconds())})
}

// logFile is a file without a name: NCCL writes its log through /proc/self/fd, and nothing can be left behind even
// when every process is killed. Where the kernel has no memfd, a temporary file is unlinked while open.
func logFile() (*os.File, error) {
	if fd, err := unix.MemfdCreate("preflight-log", unix.MFD_CLOEXEC); err == nil {
		return os.NewFile(uintptr(fd), "log"), nil
	}
	f, err := os.CreateTemp("", "preflight-log")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// stuckInKernel says whether any thread of a process is in state D: it ignores SIGKILL until the driver lets it go.
func stuckInKernel(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(tasks, func(path string) bool {
		raw, err := os.ReadFile(path)
		return err == nil && taskState(string(raw)) == 'D'
	})
}

// taskState is the state letter of a line of /proc/PID/stat, whose second field may hold any character; see proc(5).
func taskState(stat string) byte {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 || i+2 >= len(stat) {
		return 0
	}
	return stat[i+2]
}

// sharedSegments are the files of NCCL in /dev/shm that a process has mapped. A killed process leaves them there.
func sharedSegments(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	return ncclSegments(string(raw))
}

// segmentPrefix begins the name of every segment that NCCL makes.
const segmentPrefix = "/dev/shm/nccl-"

func ncclSegments(maps string) []string {
	var out []string
	for line := range strings.SplitSeq(maps, "\n") {
		i := strings.Index(line, segmentPrefix)
		if i < 0 {
			continue
		}
		path := line[i:]
		// Of a segment that is unlinked already the kernel says so behind its name.
		if strings.ContainsAny(path[len(segmentPrefix):], " /") || slices.Contains(out, path) {
			continue
		}
		out = append(out, path)
	}
	return out
}
