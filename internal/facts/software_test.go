package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snapshotOf is a snapshot of whole items: path, content.
func snapshotOf(pairs ...string) *Snapshot {
	s := &Snapshot{Files: map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		s.Files[pairs[i]] = []byte(pairs[i+1])
		s.Manifest.Items = append(s.Manifest.Items, Item{Name: pairs[i], Status: StatusOK, Bytes: int64(len(pairs[i+1]))})
	}
	return s
}

const versionPy = `opt/conda/lib/python3.12/site-packages/torch/version.py:__version__ = '2.7.1+cu128'
opt/conda/lib/python3.12/site-packages/torch/version.py:cuda: Optional[str] = '12.8'
/home/x/.local/lib/python3.10/site-packages/torch/version.py:__version__ = '2.5.1+cpu'
/home/x/.local/lib/python3.10/site-packages/torch/version.py:cuda: Optional[str] = None
`

func TestTorch(t *testing.T) {
	none := ""
	for _, row := range []struct {
		name string
		in   []string
		want []Torch
	}{
		{"files alone", []string{"cmd/torch-files.txt", versionPy}, []Torch{
			{Python: "/opt/conda/bin/python3", Version: "2.7.1+cu128", CUDA: "12.8", Devices: -1, Source: "file:opt/conda/lib/python3.12/site-packages/torch/version.py"},
			{Python: "/usr/bin/python3", Version: "2.5.1+cpu", Devices: -1, Source: "file:/home/x/.local/lib/python3.10/site-packages/torch/version.py"},
		}},
		{"a run tells more", []string{"cmd/torch-files.txt", strings.SplitAfter(versionPy, "'12.8'\n")[0], "cmd/torch-run-1.txt", "python /opt/conda/bin/python3\nvisible \n" +
			"some package's noise\nversion 2.7.1+cu128\ncuda 12.8\narchs sm_80 sm_90 compute_90\nnccl_bundled 2.26.2\nnccl 2.19.3\nnccl_path /usr/lib/libnccl.so.2\ndevices 8\nworks True\n"}, []Torch{{
			Python: "/opt/conda/bin/python3", Version: "2.7.1+cu128", CUDA: "12.8", Archs: []string{"sm_80", "sm_90", "compute_90"}, Devices: 8, NCCL: "2.19.3", NCCLBuilt: "2.26.2",
			NCCLLoaded: "/usr/lib/libnccl.so.2", Works: Of(true, "cmd:torch-run-1"), Visible: &none, Source: "cmd:torch-run-1",
		}}},
		{"an import that fails", []string{"cmd/torch-run-1.txt", "python /opt/v/bin/python\nerror ImportError: libcudnn.so.9: cannot open shared object file\n"}, []Torch{{
			Python: "/opt/v/bin/python", Devices: -1, Error: "ImportError: libcudnn.so.9: cannot open shared object file", Source: "cmd:torch-run-1",
		}}},
		{"nothing sought", nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := FromSnapshot(snapshotOf(row.in...))
			if diff := cmp.Diff(row.want, h.Software.Torch); diff != "" {
				t.Error(diff)
			}
			if h.Software.PythonSought.Known() != strings.Contains(strings.Join(row.in, " "), "torch-files") {
				t.Errorf("sought: %+v", h.Software.PythonSought)
			}
		})
	}
}

func TestEngines(t *testing.T) {
	s := snapshotOf("cmd/engines.txt", "docker installed\npodman \nnvidia-ctk NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 14ed\n",
		"etc/docker/daemon.json", `{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}, "exec-opts": ["native.cgroupdriver=cgroupfs"]}`,
		"etc/nvidia-container-runtime/config.toml", "[nvidia-container-cli]\n#no-cgroups = true\nno-cgroups = true # rootless\n",
		"cmd/picked.txt", "etc/cdi/nvidia.yaml:  - containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07\n")
	s.Manifest.Items = append(s.Manifest.Items, Item{Name: "cmd/docker-info.txt", Status: StatusOK, RC: 1, Detail: "permission denied while trying to connect"})
	h := FromSnapshot(s)
	want := []Engine{{Name: "docker", NVIDIA: []string{"runtime", "default-runtime", "hook", "cdi"}, Cgroup: "cgroupfs", Error: "permission denied while trying to connect", Source: "cmd:engines"}}
	if diff := cmp.Diff(want, h.Software.Engines); diff != "" {
		t.Error(diff)
	}
	if h.Software.CDIDriver.Value != "550.90.07" || !h.Software.NoCgroups.Value || h.Software.Toolkit[0].Value != "1.17.4" {
		t.Errorf("%+v", h.Software)
	}
}

func TestLimits(t *testing.T) {
	self := "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         8388608              unlimited            bytes     \n"
	s := snapshotOf("proc/self/limits", strings.Replace(self, "8388608  ", "unlimited", 1), "cmd/login-limits.txt", self, "proc/sys/net/ipv4/ip_local_port_range", "1024\t65535\n",
		"proc/sys/net/ipv4/ip_local_reserved_ports", "\n", "cmd/ports.txt", "listen 0016\nlisten 733C\nlisten 0016\nused 733C\n",
		"cmd/picked.txt", "etc/systemd/system.conf:DefaultLimitMEMLOCK=64K\netc/systemd/system.conf.d/a.conf:DefaultLimitMEMLOCK=16M:infinity\n")
	s.Dirs["sys/class/infiniband"] = []string{"mlx5_0"}
	l := FromSnapshot(s).Limits
	if l.Memlock.Value != 8192 || l.MemlockHard.Value != Unlimited || l.MemlockService.Value != 16<<10 {
		t.Errorf("memlock: %+v", l)
	}
	if l.PortLow.Value != 1024 || l.PortHigh.Value != 65535 || !l.Reserved.Known() || !l.MasterBusy.Value {
		t.Errorf("ports: %+v", l)
	}
	if diff := cmp.Diff([]int{22, MasterPort}, l.Listening.Value); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"mlx5_0"}, l.RDMA.Value); diff != "" {
		t.Error(diff)
	}
	if jobs := FromSnapshot(snapshotOf("cmd/slurm-jobs.txt", "4711\n4712_3\n")).Software.SlurmJobs; !cmp.Equal(jobs.Value, []string{"4711", "4712_3"}) {
		t.Errorf("jobs of Slurm: %+v", jobs)
	}
	if l := FromSnapshot(snapshotOf("cmd/ulimit.txt", "memlock_kib unlimited\nopen_files 1024\n")).Limits; l.Memlock.Value != Unlimited || l.Listening.Known() || l.RDMA.Known() {
		t.Errorf("by ulimit alone: %+v", l)
	}
}

func TestNUMANodes(t *testing.T) {
	h := FromSnapshot(snapshotOf("proc/cpuinfo", "processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 4\nphysical id : 1\ncore id : 0\n",
		"sys/devices/system/node/node0/cpulist", "0-3\n", "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1048576 kB\n", "sys/devices/system/node/node0/distance", "10 32\n",
		"sys/devices/system/node/node1/cpulist", "4-7\n", "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       0 kB\n", "sys/devices/system/node/node2/cpulist", "\n"))
	want := []NUMANode{
		{ID: 0, CPUs: "0-3", MemMiB: 1024, Distance: []int{10, 32}, Socket: 0, Source: "sysfs:sys/devices/system/node/node0/"},
		{ID: 1, CPUs: "4-7", MemMiB: 0, Socket: 1, Source: "sysfs:sys/devices/system/node/node1/"},
		{ID: 2, MemMiB: -1, Socket: -1, Source: "sysfs:sys/devices/system/node/node2/"},
	}
	if diff := cmp.Diff(want, h.CPU.NUMA); diff != "" {
		t.Error(diff)
	}
}

func TestHomesAreBlanked(t *testing.T) {
	s := snapshotOf("cmd/torch-run-1.txt", "python /home/alice/venv/bin/python3\nerror ImportError: /home/alice/venv/lib/x.so\n")
	Redact(s)
	if got := string(s.Files["cmd/torch-run-1.txt"]); strings.Contains(got, "alice") || !strings.Contains(got, "/home/xxxxx/venv/bin/python3") {
		t.Error(got)
	}
}

func FuzzSoftware(f *testing.F) {
	f.Add(versionPy, "python /x\nversion 1\ndevices 99999999999\n", "docker installed\n", `{"runtimes": null}`, "listen FFFFF\nused\n", "etc/systemd/system.conf:DefaultLimitMEMLOCK=99999999999999999999T\n")
	f.Fuzz(func(t *testing.T, files, run, engines, daemon, ports, systemd string) {
		h := FromSnapshot(snapshotOf("cmd/torch-files.txt", files, "cmd/torch-run-1.txt", run, "cmd/engines.txt", engines, "etc/docker/daemon.json", daemon, "cmd/ports.txt", ports,
			"cmd/picked.txt", systemd, "proc/self/limits", systemd, "sys/devices/system/node/node0/meminfo", systemd))
		for _, p := range h.Limits.Listening.Value {
			if p < 0 || p > 65535 {
				t.Errorf("port %d", p)
			}
		}
		if len(h.Software.Torch) > maxTorch {
			t.Errorf("%d environments", len(h.Software.Torch))
		}
	})
}
