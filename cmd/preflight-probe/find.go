//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"preflight/internal/probe/wire"
)

// disk is a host's file system; a root other than "" is for tests.
type disk struct{ root string }

func (d disk) glob(pattern string) []string {
	found, _ := filepath.Glob(d.root + pattern)
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], d.root)
	}
	return found
}

func (d disk) exists(path string) bool {
	_, err := os.Stat(d.root + path)
	return err == nil
}

// real follows the links of a path.
func (d disk) real(path string) string {
	if p, err := filepath.EvalSymlinks(d.root + path); err == nil {
		return strings.TrimPrefix(p, d.root)
	}
	return path
}

// Where a library came from.
const (
	originRequest = "request"
	originPython  = "python"
	originLoader  = "loader"
	originFolder  = "folder"
)

// cudaFolders hold libcuda.so.1 where the loader's cache does not know it: WSL, NixOS, containers of the NVIDIA
// toolkit. The toolkit's stubs are no place to look: they load and do nothing.
var cudaFolders = []string{
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib/x86_64-linux-gnu/nvidia/current",
}

// findCUDA lists the places of libcuda in the order of trial.
func findCUDA(d disk, r wire.Request) []wire.Library {
	const name, file = "libcuda", "libcuda.so.1"
	if r.LibCUDA != "" {
		return []wire.Library{{Name: name, Path: r.LibCUDA, Origin: originRequest}}
	}
	out := []wire.Library{{Name: name, Path: file, Origin: originLoader}}
	return append(out, inFolders(d, name, file, cudaFolders)...)
}

// ncclFolders hold libnccl.so.2 beside the loader's places.
var ncclFolders = []string{
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64",
	"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/targets/*/lib", "/usr/local/nccl*/lib", "/opt/nccl*/lib", "/opt/nccl*/build/lib",
}

// environments are Python environments of people and of root, tried when none is named or the named has no NCCL.
var environments = []string{
	"/opt/conda", "/opt/miniconda3", "/opt/conda/envs/*", "/opt/venv", "/venv", "/opt/*/venv", "/workspace/venv",
	"/root/miniconda3", "/root/miniconda3/envs/*", "/root/anaconda3/envs/*", "/root/venv", "/root/.venv",
	"/home/*/miniconda3", "/home/*/miniconda3/envs/*", "/home/*/miniforge3/envs/*", "/home/*/anaconda3/envs/*",
	"/home/*/venv", "/home/*/.venv", "/home/*/*/venv", "/home/*/*/.venv", "/home/*/.local", "/root/.local",
	"/usr/local", "/usr",
}

// findNCCL lists the places of libnccl in the order of preference: the request's, that of the named Pythons (it is
// what training loads), the loader's, folders, and at last any Python environment.
func findNCCL(d disk, r wire.Request) []wire.Library {
	const name, file = "libnccl", "libnccl.so.2"
	if r.LibNCCL != "" {
		return []wire.Library{{Name: name, Path: r.LibNCCL, Origin: originRequest}}
	}
	var out []wire.Library
	for _, python := range r.Pythons {
		for _, env := range environmentsOf(d, python) {
			out = append(out, inEnvironment(d, env)...)
		}
	}
	out = append(out, wire.Library{Name: name, Path: file, Origin: originLoader})
	out = append(out, inFolders(d, name, file, ncclFolders)...)
	for _, env := range environments {
		out = append(out, inEnvironment(d, env)...)
	}
	return unique(d, out)
}

func inFolders(d disk, name, file string, folders []string) []wire.Library {
	var out []wire.Library
	for _, folder := range folders {
		for _, path := range d.glob(folder + "/" + file) {
			out = append(out, wire.Library{Name: name, Path: path, Origin: originFolder})
		}
	}
	return out
}

// inEnvironment looks where wheels put NCCL (nvidia-nccl-cu12 and its kin), and where conda does.
func inEnvironment(d disk, env string) []wire.Library {
	var out []wire.Library
	for _, pattern := range []string{"/lib*/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2", "/lib/libnccl.so.2"} {
		for _, path := range d.glob(env + pattern) {
			out = append(out, wire.Library{Name: "libnccl", Path: path, Origin: originPython})
		}
	}
	return out
}

// environmentsOf are the roots whose packages a Python sees: that of the path as given (a venv's python is a link),
// and the base installation when the venv shows system packages. A folder is taken as a root itself.
func environmentsOf(d disk, python string) []string {
	python = filepath.Clean(python)
	if !filepath.IsAbs(python) {
		return nil // the controller resolves names; the helper's PATH is not the user's
	}
	if info, err := os.Stat(d.root + python); err == nil && info.IsDir() {
		return []string{python}
	}
	root := filepath.Dir(filepath.Dir(python))
	out := []string{root}
	cfg, err := os.ReadFile(d.root + root + "/pyvenv.cfg")
	system := err != nil
	for line := range bytes.Lines(cfg) {
		k, v, _ := strings.Cut(string(line), "=")
		if strings.TrimSpace(k) == "include-system-site-packages" && strings.TrimSpace(strings.ToLower(v)) == "true" {
			system = true
		}
	}
	if base := filepath.Dir(filepath.Dir(d.real(python))); system && base != root {
		out = append(out, base)
	}
	if system && root == "/usr" {
		out = append(out, "/usr/local")
	}
	return out
}

// existing keeps what is a file, and the loader's own choice, which only loading can tell.
func existing(d disk, all []wire.Library) []wire.Library {
	return slices.DeleteFunc(all, func(l wire.Library) bool {
		return strings.Contains(l.Path, "/") && !d.exists(l.Path)
	})
}

// unique keeps the first of several names of one file.
func unique(d disk, all []wire.Library) []wire.Library {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(l wire.Library) bool {
		real := d.real(l.Path)
		was := seen[real]
		seen[real] = true
		return was
	})
}
