package fakegpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestBuild(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	if err := Build(dir, "-Wall", "-Werror"); err != nil {
		t.Fatal(err)
	}
	for _, lib := range []string{"libcuda.so.1", "libnccl.so.2"} {
		if _, err := os.Stat(filepath.Join(dir, lib)); err != nil {
			t.Error(err)
		}
	}
}
