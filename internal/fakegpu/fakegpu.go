// Package fakegpu is a libcuda and a libnccl without a GPU, for tests and simulated rigs: host memory stands for the
// cards', copies and all-reduces are real and take the time that links of given rates would, and faults happen on
// demand. They are written in C from the public ABIs and built where they are used, with the host's C compiler; they
// share nothing with the helper that talks to them.
//
// What never lives here: anything that a real host runs.
package fakegpu

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed source
var sources embed.FS

// Cards are what the libraries pretend, by the environment of the process that loads them.
type Cards struct {
	BDFs  []string
	Name  string
	Links []float64 // GB/s one way, of each card
	Ring  float64   // bus bandwidth of an all-reduce, GB/s; 0: a default
	P2P   bool
	Fault string // comma list, see the C sources
	Root  string // tree of files in which Wake holds, see the C sources
	Wake  string
	Busy  string // a folder for the cards that are under load
	Speed string // a file that tells what is left of each card's speed
}

// Env is the environment for a process that is to load the libraries of a directory.
func (c Cards) Env(dir string) []string {
	var links []string
	for _, l := range c.Links {
		links = append(links, strconv.FormatFloat(l, 'f', 2, 64))
	}
	env := []string{
		"LD_LIBRARY_PATH=" + dir, "FAKE_GPU_LAZY=1", "FAKE_GPU_COUNT=" + strconv.Itoa(len(c.BDFs)), "FAKE_GPU_BDFS=" + strings.Join(c.BDFs, ","),
		"FAKE_GPU_LINKS=" + strings.Join(links, ","), "FAKE_GPU_NAME=" + c.Name, "FAKE_GPU_FAULT=" + c.Fault,
	}
	if c.Ring > 0 {
		env = append(env, "FAKE_GPU_RING="+strconv.FormatFloat(c.Ring, 'f', 3, 64))
	}
	if c.Wake != "" {
		env = append(env, "FAKE_GPU_ROOT="+c.Root, "FAKE_GPU_WAKE="+c.Wake)
	}
	if c.Busy != "" {
		env = append(env, "FAKE_GPU_BUSY="+c.Busy, "FAKE_GPU_SPEED="+c.Speed)
	}
	if c.P2P {
		env = append(env, "FAKE_GPU_P2P=1")
	}
	return env
}

// Build compiles libcuda.so.1 and libnccl.so.2 into a directory with cc. Flags go to the compiler. The error says what
// the compiler said, or that there is none.
func Build(dir string, flags ...string) error {
	for _, lib := range []string{"libcuda.so.1", "libnccl.so.2"} {
		name, _, _ := strings.Cut(lib, ".")
		text, err := sources.ReadFile("source/" + name + ".c")
		if err != nil {
			return err
		}
		part, err := sources.ReadFile("source/libcuda_burn.c") // libcuda.c includes it
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "libcuda_burn.c"), part, 0o600); err != nil {
			return err
		}
		source := filepath.Join(dir, name+".c")
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return err
		}
		args := append([]string{"-shared", "-fPIC", "-O2", "-Wl,-soname," + lib, "-o", filepath.Join(dir, lib), source}, flags...)
		out, err := exec.Command("cc", append(args, "-lpthread", "-lrt", "-ldl")...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cc %s: %w\n%s", source, err, out)
		}
		if err := errors.Join(os.Remove(source), os.Remove(filepath.Join(dir, "libcuda_burn.c"))); err != nil {
			return err
		}
	}
	return nil
}
