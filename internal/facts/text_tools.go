package facts

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// readLscpu adds what lscpu, numactl -H and the boot loader's defaults say of processors and kernel options.
func readLscpu(b *builder) {
	for _, d := range b.dumps(dumpLscpu) {
		os, cpu, guest := parseLscpu(d)
		b.merge("os", &b.host.OS, &os)
		b.merge("cpu", &b.host.CPU, &cpu)
		b.host.Hypervisor = First(b.host.Hypervisor, guest)
		if cpu.Model.Known() {
			b.filled(KindCPU)
		}
	}
	for _, d := range b.dumps(dumpNumactl) {
		cpu := parseNumactl(d)
		b.merge("cpu", &b.host.CPU, &cpu)
	}
	for _, d := range b.dumps(dumpGrub) {
		b.host.OS.Cmdline = First(b.host.OS.Cmdline, parseGrub(d))
	}
}

// readCollectEnv adds what PyTorch's and vLLM's collect_env say.
func readCollectEnv(b *builder) {
	for _, d := range b.dumps(dumpCollectEnv) {
		b.collectEnv(d)
	}
}

// lscpuWords are the lines of lscpu that are read, in German, French and Chinese (util-linux's translations; two where
// they changed).
var lscpuWords = map[string]string{
	"Architektur": "Architecture", "架构": "Architecture",
	"Modellname": "Model name", "Nom de modèle": "Model name", "型号名称": "Model name",
	"Hypervisor-Anbieter": "Hypervisor vendor", "Hypervisor-Hersteller": "Hypervisor vendor", "Constructeur d'hyperviseur": "Hypervisor vendor", "超管理器厂商": "Hypervisor vendor",
	"Processeur(s)": "CPU(s)", "CPU": "CPU(s)",
	"Sockel": "Socket(s)", "座": "Socket(s)",
	"Kern(e) pro Socket": "Core(s) per socket", "Kern(e) pro Sockel": "Core(s) per socket", "Cœur(s) par socket": "Core(s) per socket", "每个座的核数": "Core(s) per socket",
	"NUMA-Knoten": "NUMA node(s)", "Nœud(s) NUMA": "NUMA node(s)", "NUMA 节点": "NUMA node(s)",
}

var lscpuNode = regexp.MustCompile(`^(?:NUMA node|NUMA-Knoten|NUMA 节点)(\d+) CPU(?:\(s\))?$|^Processeur\(s\) du nœud NUMA (\d+)$`)

// parseLscpu reads lscpu, also the copy of it that collect_env prints. Cores are physical ones of all sockets.
func parseLscpu(d dumpFile) (OS, CPU, Fact[bool]) {
	var os OS
	var c CPU
	var guest Fact[bool]
	num := map[string]int{}
	for _, line := range d.lines() {
		k, v, ok := strings.Cut(strings.Replace(line, "：", ":", 1), ":")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || v == "" {
			continue
		}
		if english, translated := lscpuWords[k]; translated {
			k = english
		}
		switch k {
		case "Architecture":
			os.Arch = First(os.Arch, Of(v, d.src(k)))
		case "Model name":
			c.Model = First(c.Model, Of(strings.Join(strings.Fields(v), " "), d.src(k)))
		case "Hypervisor vendor":
			guest = Of(true, d.src(k))
		case "CPU(s)", "Socket(s)", "Core(s) per socket", "NUMA node(s)":
			if n, err := strconv.Atoi(v); err == nil && n > 0 && n < 1<<16 && num[k] == 0 {
				num[k] = n
			}
		}
		if m := lscpuNode.FindStringSubmatch(k); m != nil && len(c.NUMA) < maxCards {
			if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
				c.NUMA = append(c.NUMA, NUMANode{ID: n, CPUs: v, Socket: -1, Source: d.src(k)})
			}
		}
	}
	c.Threads, c.Sockets = known(num["CPU(s)"], d.src("CPU(s)")), known(num["Socket(s)"], d.src("Socket(s)"))
	c.Cores = known(num["Socket(s)"]*num["Core(s) per socket"], d.src("Core(s) per socket"))
	c.Nodes = known(num["NUMA node(s)"], d.src("NUMA node(s)"))
	return os, c, guest
}

var (
	numaAvailable = regexp.MustCompile(`^available: (\d+) nodes`)
	numaCPUs      = regexp.MustCompile(`^node (\d+) cpus:(.*)$`)
	numaSize      = regexp.MustCompile(`^node (\d+) size: (\d+) MB$`)
	numaDistance  = regexp.MustCompile(`^\s*(\d+):((?:\s+\d+)+)$`)
)

// parseNumactl reads `numactl -H`: nodes, their processors, memory and distances.
func parseNumactl(d dumpFile) CPU {
	var c CPU
	nodes := map[int]*NUMANode{}
	node := func(s string) *NUMANode {
		id, err := strconv.Atoi(s)
		if err != nil || len(nodes) > maxCards {
			return &NUMANode{}
		}
		if nodes[id] == nil {
			nodes[id] = &NUMANode{ID: id, Socket: -1, Source: d.src("node " + s)}
		}
		return nodes[id]
	}
	for _, line := range d.lines() {
		if m := numaAvailable.FindStringSubmatch(line); m != nil {
			c.Nodes = lspciInt(m[1], 10, d.src("available"))
		} else if m := numaCPUs.FindStringSubmatch(line); m != nil {
			node(m[1]).CPUs = strings.Join(strings.Fields(m[2]), ",")
		} else if m := numaSize.FindStringSubmatch(line); m != nil {
			node(m[1]).MemMiB, _ = strconv.ParseInt(m[2], 10, 64)
		} else if m := numaDistance.FindStringSubmatch(line); m != nil {
			for _, f := range strings.Fields(m[2]) {
				n, _ := strconv.Atoi(f)
				node(m[1]).Distance = append(node(m[1]).Distance, n)
			}
		}
	}
	for _, n := range nodes {
		c.NUMA = append(c.NUMA, *n)
	}
	sort.Slice(c.NUMA, func(i, j int) bool { return c.NUMA[i].ID < c.NUMA[j].ID })
	return c
}

// parseGrub puts the kernel's options together from /etc/default/grub: what the next boot gets, which stands in for the
// running kernel's command line where that is not in the input.
func parseGrub(d dumpFile) Fact[string] {
	var parts []string
	for _, key := range []string{"GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"} {
		if v := shellValue(d.text, key); v != "" {
			parts = append(parts, v)
		}
	}
	return known(strings.Join(parts, " "), d.src("GRUB_CMDLINE_LINUX"))
}

var (
	envPair   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9 /_().-]*?)\s*: (.*)$`)
	envGPU    = regexp.MustCompile(`^GPU \d+: `)
	envNCCL   = regexp.MustCompile(`nvidia-nccl-cu\d+(?:==|\s+)(\d+\.\d+\.\d+)`)
	envCUDA   = regexp.MustCompile(`^\d+\.\d+`)
	envPython = regexp.MustCompile(`^\d+\.\d+(?:\.\d+)?`)
)

// collectEnv reads `python -m torch.utils.collect_env`, and vLLM's collect_env.py, which prints the same with sections.
// Its copies of lscpu and of the topology are parts of their own.
func (b *builder) collectEnv(d dumpFile) {
	t := Torch{Devices: -1, Source: d.src("PyTorch version")}
	var driver Driver
	var os OS
	cards := 0
	for _, line := range d.lines() {
		if envGPU.MatchString(strings.TrimSpace(line)) {
			cards++
		}
		if m := envNCCL.FindStringSubmatch(line); m != nil && t.NCCL == "" {
			t.NCCL = m[1]
		}
		m := envPair.FindStringSubmatch(line)
		if m == nil || m[2] == "N/A" || strings.HasPrefix(m[2], "Could not collect") {
			continue
		}
		value := strings.TrimSpace(m[2])
		switch m[1] {
		case "PyTorch version":
			t.Version = value
		case "CUDA used to build PyTorch":
			t.CUDA = envCUDA.FindString(value)
		case "Python version":
			t.Python = "python " + envPython.FindString(value)
		case "Is CUDA available":
			if value == "False" {
				t.Devices = 0
			}
		case "OS":
			os.Distro = Of(value, d.src("OS"))
		case "Nvidia driver version":
			driver.Version = smiText(d.src("Nvidia driver version"), value)
		}
	}
	if cards > 0 {
		driver.Attached = Of(cards, d.src("GPU models and configuration"))
	}
	if driver.Version.Known() && cards > 0 {
		driver.Loaded = Of(true, d.src("Nvidia driver version"))
	}
	b.merge("driver", &b.host.Driver, &driver)
	b.merge("os", &b.host.OS, &os)
	if t.Version != "" && t.Version != "None" {
		b.host.Software.Torch = append(b.host.Software.Torch, t)
	}
}
