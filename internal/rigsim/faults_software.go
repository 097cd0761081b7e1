package rigsim

// The kinds of faults of memory, of software beside the driver, and of limits.
const (
	EmptyNode        Kind = "empty-node"
	FewChannels      Kind = "few-channels"
	TorchBroken      Kind = "torch-broken"
	TorchCPU         Kind = "torch-cpu"
	TorchNewerCUDA   Kind = "torch-newer-cuda"
	TorchNoArch      Kind = "torch-no-arch"
	TorchHidden      Kind = "torch-hidden"
	TorchForeignNCCL Kind = "torch-foreign-nccl"
	NoToolkit        Kind = "no-toolkit"
	StaleCDI         Kind = "stale-cdi"
	SmallShm         Kind = "small-shm"
	LowMemlock       Kind = "low-memlock"
	PortBusy         Kind = "port-busy"
	PortEphemeral    Kind = "port-ephemeral"
)

// softwareFaults leave their traces where real hosts have them: SMBIOS and nodes, torch/version.py and what Python
// says, daemon.json, /dev/shm, /proc/self/limits and /proc/net/tcp.
func softwareFaults() []Fault {
	soft := func(k Kind, words, check string, change func(*machine)) Fault {
		return Fault{Kind: k, Words: words, Checks: []string{check}, shape: change}
	}
	return []Fault{
		{Kind: EmptyNode, Words: "the second processor has no memory of its own", Checks: []string{"topology.numa"}, Traces: []string{"ram.channels"}, shape: func(m *machine) {
			m.Board = boards["as-4124gs"]
			m.CPU = cpuModels[m.Board.CPU]
			m.Cores, m.DIMMsUsed = m.CPU.Cores, 8
			m.DIMMGiB = max(m.DIMMGiB, m.RAMGiB/8)
		}, plant: func(m *machine) { m.last().Socket = m.Board.Sockets - 1 }},
		soft(FewChannels, "a quarter of the memory channels is empty", "ram.channels", func(m *machine) {
			m.DIMMsUsed, m.DIMMGiB = m.DIMMsUsed*3/4, m.DIMMGiB*2
		}),
		soft(TorchBroken, "torch cannot be imported", "runtime.torch", func(m *machine) {
			m.Soft.TorchFails = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
		}),
		soft(TorchCPU, "torch is built without CUDA", "runtime.torch", func(m *machine) { m.Soft.Torch, m.Soft.TorchCUDA = "2.7.1+cpu", "" }),
		soft(TorchNewerCUDA, "torch is built for a CUDA that wants a newer driver", "runtime.torch", func(m *machine) {
			m.Soft.Torch, m.Soft.TorchCUDA, m.Soft.NoCUDA = "2.11.0+cu130", "13.0", true
		}),
		soft(TorchNoArch, "torch has no code for the cards", "runtime.torch", func(m *machine) { m.Soft.Archs = "sm_90 sm_100 sm_120" }),
		soft(TorchHidden, "CUDA_VISIBLE_DEVICES is left over in the login's environment", "runtime.torch", func(m *machine) { m.Soft.Visible, m.Soft.Devices = "0", 1 }),
		soft(TorchForeignNCCL, "LD_LIBRARY_PATH puts an older NCCL before torch's own", "runtime.torch", func(m *machine) { m.Soft.NCCLLoaded = "2.18.3" }),
		soft(NoToolkit, "Docker without nvidia-container-toolkit", "container.runtime", func(m *machine) { m.Soft.Runtime, m.Soft.Toolkit = false, "" }),
		soft(StaleCDI, "the CDI specification is of the driver before", "container.runtime", func(m *machine) { m.Soft.CDIDriver = "550.90.07" }),
		soft(SmallShm, "a container with Docker's 64 MiB of shared memory", "container.shm", func(m *machine) { m.Soft.Container, m.Soft.ShmMiB = true, 64 }),
		soft(LowMemlock, "InfiniBand, and 64 KiB of locked memory", "host.memlock", func(m *machine) { m.Soft.RDMA, m.Soft.Memlock = []string{"mlx5_0"}, "65536" }),
		soft(PortBusy, "a left-over process listens on port 29500", "host.ports", func(m *machine) { m.Soft.Listen = append(m.Soft.Listen, 29500) }),
		soft(PortEphemeral, "the kernel gives ports from 1024 on to connections", "host.ports", func(m *machine) { m.Soft.Ephemeral = "1024\t65535" }),
	}
}
