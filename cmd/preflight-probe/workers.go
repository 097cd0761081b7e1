//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"preflight/internal/probe/wire"
)

// job is what a worker gets on its standard input: a request, and its part of it.
type job struct {
	Request wire.Request `json:"request"`
	Limit   float64      `json:"limit"` // seconds until its alarm
	Parent  int          `json:"parent"`
	// Of a rank: its number, how many there are, its card, and the id of the job ("" makes one).
	Rank  int    `json:"rank"`
	Ranks int    `json:"ranks"`
	Card  int    `json:"card"`
	ID    string `json:"id,omitempty"`
	// Of the copies between cards: what is done already, and the paths that hung too often.
	Done   []pairKey `json:"done,omitempty"`
	GiveUp []string  `json:"give_up,omitempty"`
	// Login is what the worker's environment was cleared of.
	Login map[string]string `json:"login,omitempty"`
}

// worker is a process that loads the libraries.
type worker struct {
	job      job
	cmd      *exec.Cmd
	stdin    io.Closer
	log      *os.File
	said     *tail
	phase    *wire.Line // open; nil between phases
	deadline time.Time
	ended    bool // it exited, and everything that it said was read
	killed   bool
	segments []string
}

// Files that a worker inherits beside the standard three.
const (
	logFD   = 3
	linesFD = 4
)

// launch starts a worker. A failure to do so is told as the request's error.
func (s *supervisor) launch(j job) {
	j.Request, j.Limit, j.Parent = s.request, time.Until(s.end).Seconds(), os.Getpid()
	j.Login = steering(os.Environ())
	w, lines, err := startWorker(j)
	if err != nil {
		s.say(wire.Line{Phase: wire.PhaseRequest, State: wire.StateError, Error: &wire.Error{Key: wire.KeyHelper, API: "helper", Text: "cannot start a worker: " + err.Error()}})
		s.worsen(wire.OutcomeError)
		s.hurry()
		return
	}
	w.between(s.request)
	s.workers = append(s.workers, w)
	go func() {
		defer lines.Close()
		scan := bufio.NewScanner(lines)
		scan.Buffer(nil, lineLimit)
		for scan.Scan() {
			var l wire.Line
			if json.Unmarshal(scan.Bytes(), &l) == nil {
				s.events <- event{from: w, line: &l}
			}
		}
		_ = w.cmd.Wait()
		s.events <- event{from: w, ended: true}
	}()
}

func startWorker(j job) (*worker, *os.File, error) {
	order, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	log, err := logFile()
	if err != nil {
		return nil, nil, err
	}
	lines, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	defer theirs.Close()
	w := &worker{job: j, log: log, said: &tail{}}
	w.cmd = exec.Command(selfExe, workerArg)
	w.cmd.Env = environment(j.Request, os.Environ())
	w.cmd.Stdout, w.cmd.Stderr, w.cmd.WaitDelay = w.said, w.said, time.Second
	w.cmd.ExtraFiles = []*os.File{log, theirs}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := w.cmd.StdinPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err == nil {
		_, err = stdin.Write(append(order, '\n')) // at most a few KiB: fits into the pipe
	}
	if err != nil {
		return nil, nil, errors.Join(err, lines.Close(), log.Close())
	}
	w.stdin = stdin
	return w, lines, nil
}

// settings of every worker. Cards are numbered as the bus has them; NCCL writes its log to a file without a name,
// since what it writes to standard output is never flushed; nothing is cached in the home folder; no port is opened
// for NCCL's status service.
var settings = map[string]string{
	"CUDA_DEVICE_ORDER":  "PCI_BUS_ID",
	"CUDA_CACHE_DISABLE": "1",
	"NCCL_RAS_ENABLE":    "0",
	"NCCL_DEBUG":         "INFO",
	"NCCL_DEBUG_SUBSYS":  "INIT,BOOTSTRAP,ENV,NET,P2P,SHM",
	"NCCL_DEBUG_FILE":    fmt.Sprintf("/proc/self/fd/%d", logFD),
	"GOTRACEBACK":        "none",
}

// dropped says which variables of the login a probe does not inherit.
func dropped(name string) bool {
	return strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "CUDA_")
}

// steering are the variables of the login that would steer CUDA and NCCL.
func steering(login []string) map[string]string {
	out := map[string]string{}
	for _, kv := range login {
		if k, v, ok := strings.Cut(kv, "="); ok && dropped(k) {
			out[k] = v
		}
	}
	return out
}

// environment of a worker: the login's without what steers CUDA and NCCL, then settings, then what the request sets.
func environment(r wire.Request, login []string) []string {
	set := map[string]string{}
	for _, kv := range login {
		if k, v, ok := strings.Cut(kv, "="); ok && !dropped(k) {
			set[k] = v
		}
	}
	for k, v := range settings {
		set[k] = v
	}
	for k, v := range r.Env {
		set[k] = v
	}
	if r.Command == wire.CommandAcross && r.Across.Interface != "" {
		set["NCCL_SOCKET_IFNAME"] = "=" + r.Across.Interface // exact; without it the name is a prefix
	}
	out := make([]string, 0, len(set))
	for k, v := range set {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// between notes that a worker is in no phase; it must begin one or end soon.
func (w *worker) between(r wire.Request) {
	w.phase = nil
	w.deadline = time.Now().Add(seconds(wire.PhaseLimit(r, wire.PhaseExit)))
}

// where is a line of the phase in which a worker is.
func (w *worker) where(state string) wire.Line {
	l := wire.Line{Phase: wire.PhaseExit}
	if w.phase != nil {
		l = *w.phase
	}
	if w.job.Ranks > 0 {
		l.Rank = &w.job.Rank
	}
	l.State, l.Limit = state, 0
	return l
}

// killWait is how long a killed worker may take to leave: the driver frees its memory on the way.
const killWait = 10 * time.Second

// stopAll ends all workers and says whether they are gone. One that is stuck in the kernel is told and abandoned.
func (s *supervisor) stopAll() bool {
	for _, w := range s.workers {
		if w.ended {
			continue
		}
		w.segments = sharedSegments(w.cmd.Process.Pid)
		w.killed = true
		_ = w.cmd.Process.Kill()
	}
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	for late := false; s.running() > 0 && !late; {
		select {
		case e := <-s.events:
			e.from.ended = e.from.ended || e.ended
		case <-timer.C:
			late = true
		}
	}
	for _, w := range s.workers {
		for _, path := range w.segments {
			_ = os.Remove(path)
		}
		w.segments = nil
	}
	return s.running() == 0 || s.abandon()
}

// abandon tells of the workers that did not die, and gives them up.
func (s *supervisor) abandon() bool {
	for _, w := range s.workers {
		if w.ended {
			continue
		}
		w.ended = true
		pid := w.cmd.Process.Pid
		l, outcome := w.where(wire.StateError), wire.OutcomeTimeout
		l.Error = &wire.Error{Key: wire.KeyHang, API: "helper", Text: fmt.Sprintf("process %d has not ended %g s after SIGKILL", pid, killWait.Seconds())}
		if stuckInKernel(pid) {
			outcome = wire.OutcomeWedged
			l.Error.Key, l.Error.Text = wire.KeyWedged, fmt.Sprintf("process %d ignores SIGKILL: a thread of it is stuck in the kernel (state D)", pid)
		}
		s.say(l)
		s.worsen(outcome)
	}
	return false
}

// exit is how a worker ended: its code, and what to say of it.
func (w *worker) exit() (int, string) {
	state := w.cmd.ProcessState
	if state == nil {
		return -1, "the process could not be waited for"
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int(ws.Signal()), "the process died of " + ws.Signal().String()
	}
	return state.ExitCode(), w.said.reason(state.ExitCode())
}

// tail keeps the first and the last KiB that a worker wrote to its output.
type tail struct {
	mu          sync.Mutex
	first, last []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := tailBytes - len(t.first); room > 0 {
		t.first = append(t.first, p[:min(room, len(p))]...)
	}
	t.last = append(t.last, p...)
	t.last = append([]byte{}, t.last[max(0, len(t.last)-tailBytes):]...)
	return len(p), nil
}

// reason finds the words of a crash. Go's runtime catches SIGSEGV even of foreign code and ends with code 2.
func (t *tail) reason(code int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.first) + "\n" + string(t.last)
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "[signal SIG") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "panic:") {
			return fmt.Sprintf("the process died: %s", strings.Trim(line, "[]"))
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(fmt.Sprintf("the process ended with code %d %s", code, line))
}
