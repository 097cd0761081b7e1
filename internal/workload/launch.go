package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Launch is how the job is started on the rig.
type Launch struct {
	Command string    `json:"command"`
	Env     []Setting `json:"env"`
	Docker  string    `json:"docker,omitempty"`
	Notes   []string  `json:"notes"`
}

// firstPort is what torch takes when nobody says otherwise.
const firstPort = 29500

// shmGB is the shared memory of a container that the builders of such rigs give: data loaders hand batches over in it, and
// without P2P all that cards exchange goes through it.
const shmGB = 64

// launch is the exact line. Serving has as many as there are engines, so it gets none.
func launch(w Workload, r Rig, o *Option) *Launch {
	if w.Serving() {
		return nil
	}
	l := &Launch{Env: []Setting{}, Notes: []string{}}
	words := []string{}
	for _, s := range r.Launch.Env {
		l.Env = append(l.Env, s)
		words = append(words, s.Name+"="+s.Value)
	}
	words = append(words, "torchrun")
	switch port, ok := freePort(r.Launch); {
	case ok:
		words = append(words, "--nnodes=1", fmt.Sprintf("--nproc-per-node=%d", r.Cards), "--master-addr=127.0.0.1", fmt.Sprintf("--master-port=%d", port))
	default:
		words = append(words, "--standalone", fmt.Sprintf("--nproc-per-node=%d", r.Cards))
		l.Notes = append(l.Notes, "--standalone takes a free port by itself; which ports are taken was not seen")
	}
	l.Command = strings.Join(append(words, "train.py"), " ")
	l.Notes = append(l.Notes, fmt.Sprintf("in train.py: micro-batch %d, accumulation %d, strategy %s", o.MicroBatch, o.Accumulation, o.Strategy))
	if r.Cards > 1 || r.Launch.Container {
		l.Docker = fmt.Sprintf("docker run --gpus all --shm-size=%dg --ulimit memlock=-1", shmGB)
	}
	return l
}

// freePort is the first port from 29500 on that nobody listens on.
func freePort(s Surround) (int, bool) {
	if !s.PortsSeen {
		return 0, false
	}
	for p := firstPort; p < firstPort+100; p++ {
		if !slices.Contains(s.Busy, p) {
			return p, true
		}
	}
	return 0, false
}
