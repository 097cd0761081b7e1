package rigsim

import (
	"fmt"
	"path/filepath"
	"strings"
)

// softPlan is what runs on a rig beside the driver. Its zero value is completed by softDefaults.
type softPlan struct {
	Torch      string   // version of torch, with its build
	TorchCUDA  string   // "" for a build without CUDA
	Archs      string   // as torch._C._cuda_getArchFlags() gives them
	NCCL       string   // the NCCL that torch brings
	NCCLLoaded string   // the one that is loaded; "" for the same
	Visible    string   // CUDA_VISIBLE_DEVICES of the session
	NoCUDA     bool     // torch finds no CUDA at run time
	Devices    int      // -1: as many as answer
	TorchFails string   // what the import ends with
	TorchHangs bool     // the import never returns
	Docker     string   // version; "" for none
	Runtime    bool     // docker's daemon.json registers nvidia
	Toolkit    string   // version of nvidia-ctk; "" for none
	CDIDriver  string   // version of the driver in the CDI specification; "" for none
	Memlock    string   // soft limit of the session, bytes or "unlimited"
	RDMA       []string // InfiniBand devices
	Listen     []int    // TCP ports in LISTEN
	Ephemeral  string   // ip_local_port_range
	Container  bool     // the login is inside a container
	ShmMiB     int      // of /dev/shm; 0: half of the memory
}

func softDefaults() softPlan {
	return softPlan{
		Torch: "2.7.1+cu128", TorchCUDA: "12.8", Archs: "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120", NCCL: "2.26.2", Devices: -1,
		Docker: "27.5.1", Runtime: true, Toolkit: "1.17.4", Memlock: "8388608", Listen: []int{22}, Ephemeral: "32768\t60999",
	}
}

// torchHome is where a rig keeps its torch.
const torchHome = "opt/conda"

// writeSoftware lays out limits, ports, container engines and a Python with torch.
func writeSoftware(t *tree, m *machine) {
	s := m.Soft
	t.file("proc/self/limits", fmt.Sprintf("%-26s%-21s%-21s%s\n%-26s%-21s%-21s%s\n%-26s%-21s%-21s%s",
		"Limit", "Soft Limit", "Hard Limit", "Units", "Max open files", "1024", "1048576", "files", "Max locked memory", s.Memlock, s.Memlock, "bytes"))
	t.file("proc/sys/net/ipv4/ip_local_port_range", s.Ephemeral)
	t.file("proc/sys/net/ipv4/ip_local_reserved_ports", "\n")
	t.file("proc/net/tcp", tcpTable(s.Listen))
	for _, name := range s.RDMA {
		t.mkdir("sys/class/infiniband/" + name)
	}
	if s.Docker != "" {
		conf := "{\n    \"log-driver\": \"json-file\"\n}"
		if s.Runtime {
			conf = "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n            \"path\": \"nvidia-container-runtime\"\n        }\n    }\n}"
		}
		t.file("etc/docker/daemon.json", conf)
	}
	if s.Toolkit != "" {
		t.file("etc/nvidia-container-runtime/config.toml", "disable-require = false\n\n[nvidia-container-cli]\nload-kmods = true\n#no-cgroups = false\n\n[nvidia-container-runtime]\nmode = \"auto\"\n")
	}
	if s.CDIDriver != "" {
		lib := "/usr/lib/x86_64-linux-gnu/libcuda.so." + s.CDIDriver
		t.file("etc/cdi/nvidia.yaml", "---\ncdiVersion: 0.5.0\ncontainerEdits:\n  mounts:\n  - containerPath: "+lib+"\n    hostPath: "+lib+"\nkind: nvidia.com/gpu\n")
	}
	if s.Container {
		t.file(".dockerenv", "")
	}
	writeTorch(t, m)
}

// tcpTable is /proc/net/tcp with a socket in LISTEN for each port, and the SSH connection that looks.
func tcpTable(ports []int) string {
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, p := range ports {
		fmt.Fprintf(&b, "%4d: 00000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000000000000000 100 0 0 10 0\n", i, p, 41000+i)
	}
	fmt.Fprintf(&b, "%4d: 0100007F:0016 0100007F:D3F2 01 00000000:00000000 02:000A7214 00000000     0        0 52113 2 0000000000000000 20 4 31 10 -1\n", len(ports))
	return b.String()
}

// writeTorch lays out a conda environment: what the collector may read, and an interpreter that says of its torch what
// a real one would.
func writeTorch(t *tree, m *machine) {
	s := m.Soft
	if s.Torch == "" {
		return
	}
	cuda := "None"
	if s.TorchCUDA != "" {
		cuda = "'" + s.TorchCUDA + "'"
	}
	t.file(torchHome+"/lib/python3.12/site-packages/torch/version.py", fmt.Sprintf("from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n"+
		"__version__ = '%s'\ndebug = False\ncuda: Optional[str] = %s\ngit_version = '134179474539648ba7dee1317959529fbd0e7f89'\nhip: Optional[str] = None\nxpu: Optional[str] = None\n", s.Torch, cuda))
	t.bytes(torchHome+"/bin/python3", []byte(pythonStub(m)), 0o755)
}

func pythonStub(m *machine) string {
	s := m.Soft
	lines := []string{"#!/bin/sh", "# Stands in for a Python with torch on a simulated rig."}
	say := func(key, value string) { lines = append(lines, fmt.Sprintf("echo '%s %s'", key, value)) }
	if s.Visible != "" {
		say("visible", s.Visible)
	}
	lines = append(lines, trainingStub(m))
	if s.TorchHangs {
		return strings.Join(append(lines, "trap '' TERM INT HUP", "while :; do sleep 5; done", ""), "\n")
	}
	if s.TorchFails != "" {
		say("error", s.TorchFails)
		return strings.Join(append(lines, "exit 1", ""), "\n")
	}
	devices, works := s.Devices, "True"
	if devices < 0 {
		devices = len(m.answering())
	}
	if m.SMIError != "" || m.SMIHang || s.TorchCUDA == "" || s.NoCUDA {
		devices, works = 0, "False"
	}
	say("version", s.Torch)
	say("cuda", s.TorchCUDA)
	if s.TorchCUDA != "" {
		say("archs", s.Archs)
		say("nccl_bundled", s.NCCL)
		say("nccl", or(s.NCCLLoaded, s.NCCL))
		at := filepath.Join("/", torchHome, "lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2")
		if s.NCCLLoaded != "" {
			at = "/usr/lib/x86_64-linux-gnu/libnccl.so." + s.NCCLLoaded
		}
		say("nccl_path", at)
	}
	say("devices", fmt.Sprint(devices))
	say("works", works)
	return strings.Join(append(lines, ""), "\n")
}

// stubVersions writes stubs for the programs of container engines: what is not on the rig must not be found on the
// machine that simulates it either.
func stubVersions(t *tree, m *machine) {
	s := m.Soft
	text := map[string]string{
		"docker": "Docker version " + s.Docker + ", build 9f9e405", "nvidia-ctk": "NVIDIA Container Toolkit CLI version " + s.Toolkit + "\ncommit: 14edd11571193c374a5b00b02447b4bec9e5b7f7",
		"podman": "", "containerd": "",
	}
	if s.Docker == "" {
		text["docker"] = ""
	}
	if s.Toolkit == "" {
		text["nvidia-ctk"] = ""
	}
	runtimes := `{"io.containerd.runc.v2":{"path":"runc"},"runc":{"path":"runc"}}`
	if s.Runtime {
		runtimes = `{"io.containerd.runc.v2":{"path":"runc"},"nvidia":{"path":"nvidia-container-runtime"},"runc":{"path":"runc"}}`
	}
	for name, version := range text {
		body := "#!/bin/sh\n# Stands in for " + name + " on a simulated rig.\n"
		switch {
		case version == "":
			body += "exit 127\n"
		case name == "docker":
			body += "if [ \"$1\" = info ]; then\n    echo 'version " + s.Docker + "'\n    echo 'cgroup systemd'\n    echo 'default runc'\n    echo 'runtimes " + runtimes + "'\nelse\n    echo '" + version + "'\nfi\n"
		default:
			body += "echo '" + version + "'\n"
		}
		t.bytes(filepath.Join(binDir, name), []byte(body), 0o755)
	}
}
