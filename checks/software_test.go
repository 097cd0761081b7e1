package checks

import (
	"fmt"
	"strings"
	"testing"

	"preflight/internal/facts"
)

// addSoftware completes goodHost: every channel filled, cards spread over two sockets by halves (two cards on one),
// one torch that fits, Docker with its runtime, nothing on port 29500.
func addSoftware(h *facts.Host, n int) {
	for socket := range 2 {
		for c := range 8 {
			h.Memory.DIMMs = append(h.Memory.DIMMs, facts.DIMM{Locator: fmt.Sprintf("P%d-DIMM%c1", socket+1, 'A'+c), Bank: fmt.Sprintf("P%d_Node0_Channel%d_Dimm0", socket, c), SizeMiB: 32 << 10, MTs: 3200, Kind: "DDR4", Source: src})
		}
		h.CPU.NUMA = append(h.CPU.NUMA, facts.NUMANode{ID: socket, CPUs: fmt.Sprintf("%d-%d", 32*socket, 32*socket+31), MemMiB: 256 << 10, Socket: socket, Source: src})
	}
	h.CPU.Nodes = of(2)
	for i := range h.Cards {
		setDevice(h, h.Cards[i].BDF, func(d *facts.Device) { d.NUMA = of(half(i, n)) })
	}
	works := of(true)
	h.Software = facts.Software{
		PythonSought: of("usual places"), EnginesSeen: of(true),
		Torch: []facts.Torch{{
			Python: "/opt/conda/bin/python3", Version: "2.7.1+cu128", CUDA: "12.8", Archs: strings.Fields("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"), Devices: n, Works: works,
			NCCL: "2.26.2", NCCLBuilt: "2.26.2", Source: src,
		}},
		Engines: []facts.Engine{{Name: "docker", Version: "27.5.1", NVIDIA: []string{"runtime", "hook"}, Source: src}},
		Toolkit: []facts.Named{{Name: "nvidia-container-toolkit", Value: "1.17.4", Source: src}},
	}
	h.Limits = facts.Limits{Memlock: of(int64(8192)), RDMA: of([]string{}), Listening: of([]int{22}), MasterBusy: of(false), PortLow: of(32768), PortHigh: of(60999), Reserved: of("")}
}

// half spreads more than two cards over two sockets.
func half(i, n int) int {
	if n > 2 && i >= n/2 {
		return 1
	}
	return 0
}

func dimms(list ...facts.DIMM) func(*rg, *ho) {
	return func(_ *rg, h *ho) { h.Memory.DIMMs = list }
}

// modules names equal modules by locators.
func modules(bank string, locators ...string) []facts.DIMM {
	var out []facts.DIMM
	for _, l := range locators {
		out = append(out, facts.DIMM{Locator: l, Bank: bank, SizeMiB: 32 << 10, MTs: 3200, Kind: "DDR4", Source: src})
	}
	return out
}

func withCPU(model string, sockets int, list []facts.DIMM) func(*rg, *ho) {
	return func(_ *rg, h *ho) { h.CPU.Model, h.CPU.Sockets, h.Memory.DIMMs = of(model), of(sockets), list }
}

func TestRAMChannels(t *testing.T) {
	banks := func(letters string) []facts.DIMM {
		var out []facts.DIMM
		for _, l := range letters {
			out = append(out, modules(fmt.Sprintf("P0 CHANNEL %c", l), "DIMM 0")...)
		}
		return out
	}
	speeds := modules("NODE 1", "DIMM_A1", "DIMM_B1")
	speeds[1].MTs = 2666
	const wx, ryzen, x299, i9, cascade = "AMD Ryzen Threadripper PRO 5955WX 16-Cores", "AMD Ryzen 9 7950X 16-Core Processor", "Intel(R) Core(TM) i9-7960X CPU @ 2.80GHz", "13th Gen Intel(R) Core(TM) i9-13900K", "Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz"
	runRows(t, "ram.channels", []row{
		{"16 of 16", 8, nil, Pass, ""},
		{"second socket bare", 8, func(_ *rg, h *ho) { h.Memory.DIMMs = h.Memory.DIMMs[:8] }, Warn, "ram.channels/empty"},
		{"banks name the channel, 8 of 8", 2, withCPU(wx, 1, banks("ABCDEFGH")), Pass, ""},
		{"banks name the channel, 4 of 8", 2, withCPU(wx, 1, banks("CDGH")), Warn, "ram.channels/empty"},
		{"nodes within a socket are no channels lost", 4, withCPU(cascade, 1, modules("P0_Node0_Channel0_Dimm0", "P1-DIMMA1", "P1-DIMMB1", "P1-DIMMC1", "P1-DIMMD1", "P1-DIMME1", "P1-DIMMF1")), Pass, ""},
		{"two modules a channel", 2, withCPU(x299, 1, modules("NODE 1", "DIMM_A1", "DIMM_A2", "DIMM_B1", "DIMM_B2", "DIMM_C1", "DIMM_C2", "DIMM_D1", "DIMM_D2")), Pass, ""},
		{"three in two channels", 2, withCPU(ryzen, 1, modules("BANK 0", "DIMM_A1", "DIMM_A2", "DIMM_B1")), Warn, "ram.channels/unequal"},
		{"two controllers with a channel each", 2, withCPU(i9, 1, modules("BANK 0", "Controller0-ChannelA-DIMM0", "Controller1-ChannelA-DIMM0")), Pass, ""},
		{"both in one controller", 2, withCPU(i9, 1, modules("BANK 0", "Controller0-ChannelA-DIMM0", "Controller0-ChannelA-DIMM1")), Warn, "ram.channels/empty"},
		{"names of two processors that do not say which", 2, withCPU(cascade, 2, append(modules("NODE 1", "DIMM_A1", "DIMM_B1", "DIMM_C1", "DIMM_D1", "DIMM_E1", "DIMM_F1"), modules("NODE 2", "DIMM_A1", "DIMM_B1", "DIMM_C1", "DIMM_D1", "DIMM_E1", "DIMM_F1")...)), Unknown, ""},
		{"letters that run on over two processors", 2, withCPU(cascade, 2, modules("NODE 1", "DIMM_A1", "DIMM_B1", "DIMM_C1", "DIMM_D1", "DIMM_E1", "DIMM_F1", "DIMM_G1", "DIMM_H1", "DIMM_I1", "DIMM_J1", "DIMM_K1", "DIMM_L1")), Pass, ""},
		{"two speeds", 2, withCPU(ryzen, 1, speeds), Warn, "ram.channels/unequal"},
		{"names tell nothing, too few", 2, withCPU(wx, 1, modules("BANK4", "DIMM5", "DIMM6", "DIMM7", "DIMM8")), Warn, "ram.channels/empty"},
		{"names tell nothing, enough", 2, withCPU(wx, 1, modules("", "DIMM1", "DIMM2", "DIMM3", "DIMM4", "DIMM5", "DIMM6", "DIMM7", "DIMM8")), Unknown, ""},
		{"processor unknown", 2, withCPU("Some CPU", 1, modules("", "ChannelA-DIMM0", "ChannelB-DIMM0")), Unknown, ""},
		{"no list", 2, dimms(), Unknown, ""},
		{"guest", 2, func(_ *rg, h *ho) { h.Kind = of("vm") }, Unknown, ""},
	})
}

func TestNUMAPlacement(t *testing.T) {
	spread := func(nodes ...int) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			for i, n := range nodes {
				setDevice(h, h.Cards[i].BDF, func(d *facts.Device) { d.NUMA = of(n) })
			}
		}
	}
	matrix := func(levels ...string) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			spread(-1, -1)(nil, h)
			h.CPU.NUMA, h.CPU.Sockets, h.CPU.Nodes, h.Topo = nil, facts.Fact[int]{}, facts.Fact[int]{}, nil
			for i, l := range levels {
				h.Topo = append(h.Topo, facts.TopoPair{A: "GPU0", B: fmt.Sprint("GPU", i+1), Level: l, Source: src})
			}
		}
	}
	runRows(t, "topology.numa", []row{
		{"two on one socket", 2, nil, Pass, ""},
		{"four and four", 8, nil, Pass, ""},
		{"two on two sockets", 2, spread(0, 1), Warn, "topology.numa/split"},
		{"one of eight in the input", 1, func(r *rg, h *ho) { r.Cards, h.Driver.Attached = nil, of(8) }, Unknown, ""},
		{"two processors shown as one node", 2, func(r *rg, h *ho) { spread(0, 0)(r, h); h.CPU.Nodes, h.CPU.NUMA = of(1), h.CPU.NUMA[:1] }, Unknown, ""},
		{"a guest of one node", 2, func(_ *rg, h *ho) { h.CPU.Nodes, h.CPU.NUMA, h.Kind = of(1), nil, of("vm") }, Unknown, ""},
		{"NPS4 on two processors, by the nodes alone", 4, func(r *rg, h *ho) { spread(0, 1, 4, 6)(r, h); h.CPU.NUMA, h.CPU.Nodes = nil, of(8) }, Pass, ""},
		{"two nodes of one socket (NPS4)", 2, func(r *rg, h *ho) { spread(0, 1)(r, h); h.CPU.NUMA[1].Socket = 0 }, Pass, ""},
		{"three and one", 4, spread(0, 0, 0, 1), Warn, "topology.numa/uneven"},
		{"two on two sockets, joined by NVLink", 2, func(r *rg, h *ho) {
			spread(0, 1)(r, h)
			h.Topo = []facts.TopoPair{{A: "GPU0", B: "GPU1", Level: "NV4", Source: src}}
		}, Pass, ""},
		{"a socket without memory", 8, func(_ *rg, h *ho) { h.CPU.NUMA[1].MemMiB = 0 }, Warn, "topology.numa/no-memory"},
		{"memory of the other node not read", 8, func(_ *rg, h *ho) { h.CPU.NUMA[1].MemMiB = -1 }, Pass, ""},
		{"one socket, -1 everywhere", 4, func(r *rg, h *ho) {
			spread(-1, -1, -1, -1)(r, h)
			h.CPU.Sockets, h.CPU.NUMA = of(1), h.CPU.NUMA[:1]
		}, Pass, ""},
		{"two sockets, firmware tells nothing", 4, spread(-1, -1, -1, -1), Unknown, ""},
		{"matrix alone, SYS", 2, matrix("SYS"), Warn, "topology.numa/split"},
		{"matrix alone, PHB", 2, matrix("PHB"), Pass, ""},
		{"affinities: one and three", 4, func(r *rg, h *ho) {
			spread(-1, -1, -1, -1)(r, h)
			h.CPU.NUMA, h.CPU.Sockets, h.CPU.Nodes, h.Cards, h.Topo = nil, facts.Fact[int]{}, facts.Fact[int]{}, nil, nil
			for i, level := range []string{"SYS", "SYS", "SYS", "PHB", "NODE", "NODE"} {
				pair := [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}[i]
				h.Topo = append(h.Topo, facts.TopoPair{A: fmt.Sprint("GPU", pair[0]), B: fmt.Sprint("GPU", pair[1]), Level: level, Source: src})
			}
		}, Warn, "topology.numa/uneven"},
		{"SYS everywhere on one node", 4, func(r *rg, h *ho) {
			h.CPU.NUMA, h.CPU.Sockets, h.CPU.Nodes, h.Cards, h.Topo = nil, facts.Fact[int]{}, facts.Fact[int]{}, nil, nil
			for i := range 4 {
				h.TopoNodes = append(h.TopoNodes, facts.TopoNode{Card: fmt.Sprint("GPU", i), Node: 0, Source: src})
				for j := i + 1; j < 4; j++ {
					h.Topo = append(h.Topo, facts.TopoPair{A: fmt.Sprint("GPU", i), B: fmt.Sprint("GPU", j), Level: "SYS", Source: src})
				}
			}
		}, Pass, ""},
		{"one card", 1, nil, Skip, ""},
	})
}

func TestContainerShm(t *testing.T) {
	inside := func(total, free int64) func(*rg, *ho) {
		return func(_ *rg, h *ho) { h.Kind, h.OS.ShmTotal, h.OS.ShmFree = of("container"), of(total), of(free) }
	}
	failed := func(text string) func(*rg, *ho) {
		return func(_ *rg, h *ho) { h.NCCL = []facts.NCCLRun{{Engine: "torch", Error: text, Exit: 1, Source: src}} }
	}
	runRows(t, "container.shm", []row{
		{"metal", 4, nil, Skip, ""},
		{"Docker's 64 MiB, four cards", 4, inside(64, 64), Fail, "container.shm/small"},
		{"Docker's 64 MiB, one card", 1, inside(64, 64), Warn, "container.shm/small"},
		{"512 MiB", 4, inside(512, 512), Warn, "container.shm/small"},
		{"64 GiB", 4, inside(64<<10, 60<<10), Pass, ""},
		{"full of left-overs", 4, inside(2048, 12), Warn, "container.shm/full"},
		{"not told", 4, func(_ *rg, h *ho) { h.Kind = of("container") }, Unknown, ""},
		{"NCCL says full", 4, failed("NCCL WARN Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 bytes"), Fail, "container.shm/small"},
		{"NCCL failed otherwise", 4, failed("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 9637888), error: invalid argument"), Unknown, ""},
		{"another rank's words come first", 4, func(_ *rg, h *ho) {
			failed("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-K (size 5967872)")(nil, h)
			h.Software.ShmErrors = []facts.Named{{Value: "Error: failed to extend /dev/shm/nccl-f to 5967876 bytes", Source: src}}
		}, Fail, "container.shm/small"},
		{"kind not known", 4, func(_ *rg, h *ho) { h.Kind = facts.Fact[string]{} }, Unknown, ""},
	})
}

func TestMemlock(t *testing.T) {
	rdma := func(soft, hard int64) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			h.Limits.RDMA, h.Limits.Memlock, h.Limits.MemlockHard = of([]string{"mlx5_0"}), of(soft), of(hard)
		}
	}
	runRows(t, "host.memlock", []row{
		{"8 MiB, no adapter", 2, nil, Pass, ""},
		{"8 MiB, InfiniBand", 8, rdma(8192, 8192), Warn, "host.memlock/low"},
		{"unlimited, InfiniBand", 8, rdma(facts.Unlimited, facts.Unlimited), Pass, ""},
		{"soft below an unlimited hard limit", 8, rdma(64, facts.Unlimited), Warn, "host.memlock/low"},
		{"InfiniBand seen on the bus alone", 2, func(_ *rg, h *ho) {
			h.Limits.RDMA = facts.Fact[[]string]{}
			h.PCI = append(h.PCI, facts.Device{BDF: "0000:e1:00.0", Class: "020700"})
		}, Warn, "host.memlock/low"},
		{"adapter not known", 2, func(_ *rg, h *ho) { h.Limits.RDMA = facts.Fact[[]string]{} }, Unknown, ""},
		{"limit not known", 8, func(r *rg, h *ho) { rdma(0, 0)(r, h); h.Limits.Memlock = facts.Fact[int64]{} }, Unknown, ""},
	})
}

func TestPorts(t *testing.T) {
	runRows(t, "host.ports", []row{
		{"free", 2, nil, Pass, ""},
		{"in LISTEN", 2, func(_ *rg, h *ho) { h.Limits.Listening = of([]int{22, 29500}) }, Warn, "host.ports/busy"},
		{"held by a connection", 2, func(_ *rg, h *ho) { h.Limits.MasterBusy = of(true) }, Warn, "host.ports/ephemeral"},
		{"inside the ephemeral range", 2, func(_ *rg, h *ho) { h.Limits.PortLow = of(1024) }, Warn, "host.ports/ephemeral"},
		{"inside, but reserved", 2, func(_ *rg, h *ho) { h.Limits.PortLow, h.Limits.Reserved = of(1024), of("8080,29400-29500") }, Pass, ""},
		{"the range is not told", 2, func(_ *rg, h *ho) { h.Limits.PortLow = facts.Fact[int]{} }, Unknown, ""},
		{"not told", 2, func(_ *rg, h *ho) { h.Limits = facts.Limits{} }, Unknown, ""},
	})
}

func TestContainerRuntime(t *testing.T) {
	engine := func(e facts.Engine, change ...func(*ho)) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			e.Source = src
			h.Software.Engines = []facts.Engine{e}
			for _, c := range change {
				c(h)
			}
		}
	}
	bare := func(h *ho) { h.Software.Toolkit = nil }
	runRows(t, "container.runtime", []row{
		{"docker with the runtime", 2, nil, Pass, ""},
		{"docker with the hook alone", 2, engine(facts.Engine{Name: "docker", NVIDIA: []string{"hook"}, Cgroup: "systemd"}), Pass, ""},
		{"docker without the toolkit", 2, engine(facts.Engine{Name: "docker"}, bare), Warn, "container.runtime/no-toolkit"},
		{"podman, toolkit, no specification", 2, engine(facts.Engine{Name: "podman"}), Warn, "container.runtime/not-registered"},
		{"podman with CDI", 2, engine(facts.Engine{Name: "podman", NVIDIA: []string{"cdi"}}), Pass, ""},
		{"CDI of the driver before", 2, engine(facts.Engine{Name: "podman", NVIDIA: []string{"cdi"}}, func(h *ho) { h.Software.CDIDriver = of("535.183.01") }), Warn, "container.runtime/stale-cdi"},
		{"no-cgroups", 2, engine(facts.Engine{Name: "docker", NVIDIA: []string{"runtime"}}, func(h *ho) { h.Software.NoCgroups = of(true) }), Warn, "container.runtime/no-cgroups"},
		{"docker's own containerd is not judged", 2, func(_ *rg, h *ho) {
			h.Software.Engines = append(h.Software.Engines, facts.Engine{Name: "containerd", Source: src})
		}, Pass, ""},
		{"containerd alone", 2, engine(facts.Engine{Name: "containerd"}, bare), Warn, "container.runtime/no-toolkit"},
		{"none", 2, func(_ *rg, h *ho) { h.Software.Engines = nil }, Skip, ""},
		{"inside a container", 2, func(_ *rg, h *ho) { h.Kind = of("container") }, Skip, ""},
		{"not looked", 2, func(_ *rg, h *ho) { h.Software = facts.Software{} }, Unknown, ""},
	})
}

func TestTorch(t *testing.T) {
	env := func(change func(*facts.Torch)) func(*rg, *ho) {
		return func(_ *rg, h *ho) { change(&h.Software.Torch[0]) }
	}
	all := "all"
	blackwell := func(h *ho) {
		for i := range h.Cards {
			h.Cards[i].Product, h.Cards[i].Name, h.Cards[i].MemoryMiB = "2b85", of("GeForce RTX 5090"), of(int64(32607))
		}
	}
	runRows(t, "runtime.torch", []row{
		{"fits", 4, nil, Pass, ""},
		{"import fails", 2, env(func(e *facts.Torch) {
			*e = facts.Torch{Python: "/p", Error: "ImportError: libcudnn.so.9: cannot open shared object file", Devices: -1, Source: src}
		}), Fail, "runtime.torch/broken"},
		{"no torch in the declared Python", 2, func(r *rg, h *ho) {
			r.Python = "/p"
			h.Software.Torch[0] = facts.Torch{Python: "/p", Error: "ModuleNotFoundError: No module named 'torch'", Devices: -1, Source: src}
		}, Fail, "runtime.torch/missing"},
		{"import hangs", 2, env(func(e *facts.Torch) { *e = facts.Torch{Python: "/p", Hung: true, Devices: -1, Source: src} }), Unknown, ""},
		{"without CUDA", 2, env(func(e *facts.Torch) { e.CUDA, e.Version, e.Works, e.Devices = "", "2.7.1+cpu", of(false), 0 }), Fail, "runtime.torch/cpu-build"},
		{"12.8 on a 12.2 driver is fine", 2, func(_ *rg, h *ho) { h.Driver.Version, h.Driver.CUDA = of("535.183.01"), of("12.2") }, Pass, ""},
		{"13 on a 550 driver", 2, func(_ *rg, h *ho) {
			h.Software.Torch[0].CUDA, h.Software.Torch[0].Version, h.Software.Torch[0].Works = "13.0", "2.11.0+cu130", of(false)
		}, Fail, "runtime.torch/driver-old"},
		{"13 on a 550 driver, with cuda-compat", 2, env(func(e *facts.Torch) { e.CUDA = "13.0" }), Pass, ""},
		{"no code for Blackwell", 2, func(_ *rg, h *ho) { blackwell(h); h.Software.Torch[0].Archs = strings.Fields("sm_80 sm_86 sm_90") }, Fail, "runtime.torch/arch"},
		{"Blackwell by PTX", 2, func(_ *rg, h *ho) {
			blackwell(h)
			h.Software.Torch[0].Archs, h.Driver.CUDA = strings.Fields("sm_80 sm_90 compute_90"), of("12.8")
		}, Pass, ""},
		{"PTX newer than the driver", 2, func(_ *rg, h *ho) {
			blackwell(h)
			h.Software.Torch[0].Archs, h.Driver.CUDA = strings.Fields("sm_80 sm_90 compute_90"), of("12.4")
		}, Fail, "runtime.torch/arch"},
		{"sm_86 code on 8.9", 2, env(func(e *facts.Torch) { e.Archs = []string{"sm_86"} }), Pass, ""},
		{"sm_90a runs on 9.0 only", 2, env(func(e *facts.Torch) { e.Archs = []string{"sm_90a"} }), Fail, "runtime.torch/arch"},
		{"not run, CUDA before Blackwell", 2, func(_ *rg, h *ho) {
			blackwell(h)
			h.Software.Torch[0] = facts.Torch{Python: "/p", Version: "2.5.1+cu124", CUDA: "12.4", Devices: -1, Source: src}
		}, Fail, "runtime.torch/arch"},
		{"not run, nothing against it", 2, env(func(e *facts.Torch) {
			*e = facts.Torch{Python: "/p", Version: "2.7.1+cu128", CUDA: "12.8", Devices: -1, Source: src}
		}), Unknown, ""},
		{"ended before it said whether CUDA is available", 2, env(func(e *facts.Torch) { e.Works = facts.Fact[bool]{} }), Unknown, ""},
		{"a fourth Python is not run", 2, func(_ *rg, h *ho) {
			good := h.Software.Torch[0]
			h.Software.Torch = append(h.Software.Torch, good, good, facts.Torch{Python: "/q", Version: "2.7.1+cu128", CUDA: "12.8", Devices: -1, Source: src})
		}, Pass, ""},
		{"the second of two was not reached", 2, func(_ *rg, h *ho) {
			h.Software.Torch = append(h.Software.Torch, facts.Torch{Python: "/q", Version: "2.7.1+cu128", CUDA: "12.8", Devices: -1, Source: src})
		}, Unknown, ""},
		{"packages left by the Python of the release before", 2, env(func(e *facts.Torch) {
			*e = facts.Torch{Python: "/usr/bin/python3", Version: "2.1.0", CUDA: "12.1", Error: "ModuleNotFoundError: No module named 'torch'", Devices: -1, Source: src}
		}), Skip, ""},
		{"NCCL linked in, and a wheel of it beside", 2, env(func(e *facts.Torch) { e.NCCL, e.NCCLLoaded = "2.19.3", "" }), Pass, ""},
		{"NCCL of another CUDA's wheel", 2, env(func(e *facts.Torch) {
			e.NCCL, e.NCCLLoaded = "2.21.5", "/opt/conda/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
		}), Pass, ""},
		{"fewer devices", 4, env(func(e *facts.Torch) { e.Devices = 3 }), Fail, "runtime.torch/fewer"},
		{"CUDA_VISIBLE_DEVICES", 4, env(func(e *facts.Torch) { e.Devices, e.Visible = 2, &[]string{"0,1"}[0] }), Warn, "runtime.torch/visible"},
		{"CUDA_VISIBLE_DEVICES with all", 4, env(func(e *facts.Torch) { e.Visible = &all }), Pass, ""},
		{"slices of a card", 2, func(_ *rg, h *ho) { h.Cards[0].MIG, h.Software.Torch[0].Devices = of(true), 1 }, Pass, ""},
		{"CUDA not available", 2, env(func(e *facts.Torch) { e.Works, e.Devices = of(false), 0 }), Fail, "runtime.torch/no-cuda"},
		{"the driver does not answer", 2, func(_ *rg, h *ho) { h.Software.Torch[0].Works, h.Driver.SMIExit = of(false), of(9) }, Unknown, ""},
		{"another NCCL is loaded", 2, env(func(e *facts.Torch) { e.NCCL, e.NCCLLoaded = "2.19.3", "/usr/lib/libnccl.so.2" }), Warn, "runtime.torch/nccl-override"},
		{"2.26.2.post1 is 2.26.2", 2, env(func(e *facts.Torch) { e.NCCLBuilt = "2.26.2.post1" }), Pass, ""},
		{"broken beside a good one", 2, func(_ *rg, h *ho) {
			h.Software.Torch = append(h.Software.Torch, facts.Torch{Python: "/q", Version: "2.5.1+cpu", Devices: 0, Source: src})
		}, Warn, "runtime.torch/cpu-build"},
		{"none", 2, func(_ *rg, h *ho) { h.Software.Torch = nil }, Skip, ""},
		{"not looked", 2, func(_ *rg, h *ho) { h.Software = facts.Software{} }, Unknown, ""},
	})
}

func TestNoTorchIsToldFromABrokenOne(t *testing.T) {
	for text, missing := range map[string]bool{
		"ModuleNotFoundError: No module named 'torch'":                                                true,
		"sh: 12: /opt/x/bin/python: not found":                                                        true,
		"/bin/sh: /opt/x/bin/python: No such file or directory":                                       true,
		"ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory":       false,
		"ModuleNotFoundError: No module named 'torch._C'; 'torch' is not a package":                   false,
		"OSError: libnccl.so.2: undefined symbol: ncclCommWindowRegister, version not found in torch": false,
	} {
		if noTorch.MatchString(text) != missing {
			t.Errorf("%s: missing %t", text, !missing)
		}
	}
}
