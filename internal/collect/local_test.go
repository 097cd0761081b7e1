package collect

import (
	"os/exec"
	"testing"
	"time"

	"preflight/internal/facts"
)

// TestLocal runs the shipped script on this machine with each shell that is here.
func TestLocal(t *testing.T) {
	for name, argv := range map[string][]string{"sh": {"/bin/sh", "-s"}, "busybox": {"busybox", "ash", "-s"}} {
		t.Run(name, func(t *testing.T) {
			s, err := Collect(t.Context(), Shell{Argv: argv}, Request{At: time.Unix(1, 0)})
			if _, look := exec.LookPath(argv[0]); look != nil {
				t.Skipf("%s is not installed", argv[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Manifest.Cut != "" {
				t.Errorf("cut: %s", s.Manifest.Cut)
			}
			if _, ok := s.Read("proc/meminfo"); !ok {
				t.Error("no proc/meminfo")
			}
			if _, ok := s.Dirs["sys/block"]; !ok {
				t.Error("no listing of sys/block")
			}
			if it, _ := s.Item("cmd/uname.txt"); it.Status != facts.StatusOK || it.Bytes == 0 {
				t.Errorf("uname: %+v", it)
			}
		})
	}
}
