package facts

// Software is what runs on the host beside the driver.
type Software struct {
	Torch     []Torch        `json:"torch,omitempty"` // every Python with torch that was found
	Engines   []Engine       `json:"container_engines,omitempty"`
	NCCL      []Named        `json:"nccl,omitempty"`      // libnccl outside Python: name is the file, value the version
	SlurmJobs Fact[[]string] `json:"slurm_jobs,omitzero"` // jobs that Slurm runs on this node
	Toolkit   []Named        `json:"toolkit,omitempty"`   // nvidia-container-toolkit, CUDA toolkit: name and version

	ShmErrors []Named `json:"shm_errors,omitempty"` // what NCCL said of /dev/shm

	PythonSought Fact[string] `json:"python_sought,omitzero"`            // where torch was looked for: the declared interpreter, or "usual places"
	EnginesSeen  Fact[bool]   `json:"container_engines_sought,omitzero"` // container engines were looked for
	CDIDriver    Fact[string] `json:"cdi_driver,omitzero"`               // driver version that the CDI specification was written for
	NoCgroups    Fact[bool]   `json:"no_cgroups,omitzero"`               // nvidia-container-runtime/config.toml: no-cgroups = true
}

// Torch is one Python environment that has torch, as it described itself. Empty fields were not told.
type Torch struct {
	Python  string   `json:"python"`
	Version string   `json:"version"`
	CUDA    string   `json:"cuda"` // torch.version.cuda; "" for a CPU build
	Archs   []string `json:"archs,omitempty"`
	Devices int      `json:"devices"` // torch.cuda.device_count(), -1 unknown
	NCCL    string   `json:"nccl"`    // version of the libnccl that was loaded
	Error   string   `json:"error,omitempty"`

	Hung       bool       `json:"hung,omitempty"`         // the import ran past its deadline
	Works      Fact[bool] `json:"works,omitzero"`         // torch.cuda.is_available()
	Visible    *string    `json:"visible,omitempty"`      // CUDA_VISIBLE_DEVICES of the session; nil: not set or not told
	NCCLBuilt  string     `json:"nccl_bundled,omitempty"` // version of the NCCL package beside torch
	NCCLLoaded string     `json:"nccl_path,omitempty"`    // file that was loaded
	Source     string     `json:"source"`
}

// Engine is one container engine. NVIDIA says whether containers get cards there: a runtime, a CDI specification.
type Engine struct {
	Name    string   `json:"name"` // docker, containerd, podman
	Version string   `json:"version"`
	NVIDIA  []string `json:"nvidia,omitempty"`        // "runtime", "default-runtime", "cdi", "hook"
	Cgroup  string   `json:"cgroup_driver,omitempty"` // systemd or cgroupfs
	Error   string   `json:"error,omitempty"`         // why the engine could not be asked
	Source  string   `json:"source"`
}

// Named is a name with its value and where it was read.
type Named struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Limits is what the system allows a login's processes. Memory locks are KiB; -1 is unlimited.
type Limits struct {
	Memlock     Fact[int64]  `json:"memlock,omitzero" unit:"KiB"`      // soft limit of the session that looked
	MemlockHard Fact[int64]  `json:"memlock_hard,omitzero" unit:"KiB"` // its hard limit
	PortLow     Fact[int]    `json:"ephemeral_low,omitzero"`           // ip_local_port_range
	PortHigh    Fact[int]    `json:"ephemeral_high,omitzero"`          //
	Reserved    Fact[string] `json:"reserved_ports,omitzero"`          // ip_local_reserved_ports as printed
	Listening   Fact[[]int]  `json:"listening,omitzero"`               // TCP ports in LISTEN
	MasterBusy  Fact[bool]   `json:"port_29500_connected,omitzero"`    // a connection holds port 29500 as its local port

	MemlockService Fact[int64]    `json:"memlock_services,omitzero" unit:"KiB"` // systemd's DefaultLimitMEMLOCK (soft)
	RDMA           Fact[[]string] `json:"rdma,omitzero"`                        // names below sys/class/infiniband
}

// Conflict is one fact about which two sources of the input disagree; the first was used.
type Conflict struct {
	Path    string `json:"path"` // "cards[0000:41:00.0].bar1"
	Used    Leaf   `json:"used"`
	Ignored Leaf   `json:"ignored"`
}
