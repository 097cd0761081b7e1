package facts

import (
	"encoding/json"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// maxTorch bounds the Python environments of one host.
const maxTorch = 32

// readSoftware reads what the collector found of Python environments with torch, and of container engines.
func readSoftware(b *builder) {
	b.readTorchFiles()
	b.readTorchRuns()
	b.readEngines()
}

var (
	torchFile = regexp.MustCompile(`^(/?[^:]+)/torch/version\.py:\s*(__version__|cuda)\b[^=]*=\s*(.*)$`)
	envOfFile = regexp.MustCompile(`^(.*)/lib(?:64)?/python3[^/]*/(?:site|dist)-packages$`)
)

// readTorchFiles takes version and CUDA build from torch/version.py, which needs no Python to run: lines
// "PREFIX/torch/version.py:__version__ = '2.7.0+cu128'". A prefix below lib/python3.x names its interpreter.
func (b *builder) readTorchFiles() {
	t, ok := b.text("cmd/torch-files.txt")
	it, seen := b.items["cmd/torch-files.txt"]
	if !ok && !(seen && it.Status == StatusOK) {
		return
	}
	b.host.Software.PythonSought = Of("usual places", "cmd:torch-files")
	at := map[string]int{}
	for _, line := range strings.Split(t, "\n") {
		if name, ok := strings.CutPrefix(line, "declared "); ok {
			b.host.Software.PythonSought = Of(strings.TrimSpace(name), "inventory:python")
			continue
		}
		m := torchFile.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || len(at) >= maxTorch {
			continue
		}
		python := interpreterOf(m[1])
		i, known := at[python]
		if !known {
			i = len(b.host.Software.Torch)
			at[python] = i
			b.host.Software.Torch = append(b.host.Software.Torch, Torch{Python: python, Devices: -1, Source: "file:" + m[1] + "/torch/version.py"})
		}
		value := strings.Trim(strings.TrimSpace(strings.SplitN(m[3], "#", 2)[0]), `"'`)
		switch e := &b.host.Software.Torch[i]; m[2] {
		case "__version__":
			e.Version = value
		case "cuda":
			if value != "None" {
				e.CUDA = value
			}
		}
	}
}

// interpreterOf names the Python of a packages directory: that of its environment, else (a user's or the system's own
// packages) python3 of the system.
func interpreterOf(packages string) string {
	packages = "/" + strings.TrimPrefix(packages, "/")
	m := envOfFile.FindStringSubmatch(packages)
	if m == nil {
		return packages
	}
	switch prefix := m[1]; {
	case strings.HasSuffix(prefix, "/.local"), strings.HasPrefix(prefix, "/usr") && strings.HasSuffix(packages, "/dist-packages"):
		return "/usr/bin/python3"
	default:
		return prefix + "/bin/python3"
	}
}

// readTorchRuns takes what each Python said of its torch: cmd/torch-N.txt, "key value" lines.
func (b *builder) readTorchRuns() {
	var names []string
	for name := range b.items {
		if strings.HasPrefix(name, "cmd/torch-run-") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if len(b.host.Software.Torch) < maxTorch {
			b.addTorchRun(name, b.items[name])
		}
	}
}

func (b *builder) addTorchRun(name string, it Item) {
	t, _ := b.text(name)
	said := Torch{Devices: -1, Source: "cmd:" + path.Base(strings.TrimSuffix(name, ".txt")), Hung: it.Status == StatusTimeout}
	for _, line := range strings.Split(t, "\n") {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
		said.set(key, value)
	}
	if said.Python == "" {
		return
	}
	if said.Error == "" && !said.Hung && said.Version == "" {
		said.Error = firstNonEmpty(it.Detail, "python ended with exit status "+strconv.Itoa(it.RC))
	}
	for i := range b.host.Software.Torch {
		if old := &b.host.Software.Torch[i]; old.Python == said.Python {
			said.Version, said.CUDA = firstNonEmpty(said.Version, old.Version), firstNonEmpty(said.CUDA, old.CUDA)
			*old = said
			return
		}
	}
	b.host.Software.Torch = append(b.host.Software.Torch, said)
}

// set takes one "key value" line of what Python printed; other lines are noise of imported packages.
func (t *Torch) set(key, value string) {
	switch key {
	case "python":
		t.Python = value
	case "version":
		t.Version = value
	case "cuda":
		t.CUDA = value
	case "archs":
		t.Archs = strings.Fields(value)
	case "devices":
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && n <= maxCards {
			t.Devices = n
		}
	case "works":
		t.Works = Of(value == "True", t.Source)
	case "visible":
		t.Visible = &value
	case "nccl":
		t.NCCL = value
	case "nccl_bundled":
		t.NCCLBuilt = value
	case "nccl_path":
		t.NCCLLoaded = value
	case "error":
		t.Error = value
	}
}

var (
	versionWord = regexp.MustCompile(`\b(\d+\.\d+(?:\.\d+)*)`)
	cdiLibrary  = regexp.MustCompile(`libcuda\.so\.(\d{3}\.\d+(?:\.\d+)?)`)
)

// readEngines takes cmd/engines.txt, lines "NAME TEXT" with what each program printed of its version, and what the
// engines' own files say of NVIDIA.
func (b *builder) readEngines() {
	t, ok := b.text("cmd/engines.txt")
	if it, seen := b.items["cmd/engines.txt"]; !ok && !(seen && it.Status == StatusOK) {
		return
	}
	s := &b.host.Software
	s.EnginesSeen = Of(true, "cmd:engines")
	hook := false
	for _, line := range strings.Split(t, "\n") {
		name, text, _ := strings.Cut(line, " ")
		version := versionWord.FindString(text)
		switch name {
		case "docker", "containerd", "podman":
			if version == "" && text != "installed" {
				continue // the program could not be run
			}
			s.Engines = append(s.Engines, Engine{Name: name, Version: version, Source: "cmd:engines"})
		case "nvidia-ctk":
			if version == "" {
				continue
			}
			hook = true
			s.Toolkit = append(s.Toolkit, Named{Name: "nvidia-container-toolkit", Value: version, Source: "cmd:nvidia-ctk --version"})
		case "hook":
			hook = true
		}
	}
	cdi := b.readCDI()
	if raw, ok := b.text("etc/nvidia-container-runtime/config.toml"); ok {
		s.NoCgroups = Of(tomlTrue(raw, "no-cgroups"), "file:etc/nvidia-container-runtime/config.toml")
	}
	for i := range s.Engines {
		e := &s.Engines[i]
		switch e.Name {
		case "docker":
			b.readDocker(e)
		case "containerd":
			b.readContainerd(e)
		}
		if hook && e.Name == "docker" {
			e.NVIDIA = append(e.NVIDIA, "hook")
		}
		if cdi {
			e.NVIDIA = append(e.NVIDIA, "cdi")
		}
	}
}

// readCDI says whether a specification for nvidia.com/gpu lies in a CDI directory, and notes its driver version.
func (b *builder) readCDI() bool {
	found := false
	for _, dir := range []string{"etc/cdi", "var/run/cdi"} {
		for _, name := range b.snap.Dirs[dir] {
			found = found || strings.Contains(strings.ToLower(name), "nvidia")
		}
	}
	t := b.picked("etc/cdi/", "var/run/cdi/")
	if m := cdiLibrary.FindStringSubmatch(t); m != nil {
		b.host.Software.CDIDriver = Of(m[1], "file:etc/cdi")
		found = true
	}
	return found
}

// readDocker reads daemon.json, and what `docker info` said where the login may ask the daemon.
func (b *builder) readDocker(e *Engine) {
	has := map[string]bool{}
	if raw, ok := b.read("etc/docker/daemon.json"); ok {
		var conf struct {
			Default  string                     `json:"default-runtime"`
			Runtimes map[string]json.RawMessage `json:"runtimes"`
			Exec     []string                   `json:"exec-opts"`
		}
		if json.Unmarshal(raw, &conf) == nil {
			_, has["runtime"] = conf.Runtimes["nvidia"]
			has["default-runtime"] = conf.Default == "nvidia"
			for _, o := range conf.Exec {
				if d, ok := strings.CutPrefix(o, "native.cgroupdriver="); ok {
					e.Cgroup = d
				}
			}
		}
	}
	it, asked := b.items["cmd/docker-info.txt"]
	t, _ := b.text("cmd/docker-info.txt")
	for _, line := range strings.Split(t, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "version":
			e.Version = firstNonEmpty(versionWord.FindString(value), e.Version)
		case "cgroup":
			e.Cgroup = firstNonEmpty(value, e.Cgroup)
		case "default":
			has["default-runtime"] = value == "nvidia"
		case "runtimes":
			has["runtime"] = has["runtime"] || strings.Contains(value, `"nvidia"`)
		}
	}
	switch {
	case asked && it.Status == StatusTimeout:
		e.Error = "the daemon did not answer in time"
	case asked && (it.RC != 0 || it.Status == StatusError):
		e.Error = firstNonEmpty(it.Detail, "docker info failed")
	}
	for _, name := range []string{"runtime", "default-runtime"} {
		if has[name] {
			e.NVIDIA = append(e.NVIDIA, name)
		}
	}
}

var containerdDefault = regexp.MustCompile(`default_runtime_name\s*=\s*"nvidia`)

// readContainerd takes the lines of containerd's configuration that the collector picked: those about NVIDIA and the
// cgroup driver, since the rest may hold credentials of registries.
func (b *builder) readContainerd(e *Engine) {
	t := b.picked("etc/containerd/", "var/lib/rancher/")
	if strings.Contains(t, "nvidia-container-runtime") || strings.Contains(t, "runtimes.nvidia") || strings.Contains(t, `runtimes."nvidia"`) {
		e.NVIDIA = append(e.NVIDIA, "runtime")
	}
	if containerdDefault.MatchString(t) {
		e.NVIDIA = append(e.NVIDIA, "default-runtime")
	}
	switch {
	case tomlTrue(t, "SystemdCgroup"):
		e.Cgroup = "systemd"
	case strings.Contains(t, "SystemdCgroup"):
		e.Cgroup = "cgroupfs"
	}
}

// tomlTrue says whether a line sets key to true; commented lines do not count.
func tomlTrue(text, key string) bool {
	for _, line := range strings.Split(text, "\n") {
		if i := strings.Index(line, key); i >= 0 && !strings.Contains(line[:i], "#") {
			_, v, _ := strings.Cut(line[i:], "=")
			if v, _, _ = strings.Cut(v, "#"); strings.TrimSpace(v) == "true" {
				return true
			}
		}
	}
	return false
}
