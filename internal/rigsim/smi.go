package rigsim

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// smiGPU is a card as the template of `nvidia-smi -q -x` wants it.
type smiGPU struct {
	*card
	Driver                  string
	Bus, BusLower           string
	MaxGen, HostGen         int
	GSP                     string
	Temp, TLimitLeft        int
	Draw                    float64
	FreeMiB, BAR1FreeMiB    int
	BusID                   string
	SupportedClocks, Serial string
}

func smiGPUs(m *machine) []smiGPU {
	var out []smiGPU
	for i, c := range m.answering() {
		host := c.Port.MaxGen
		for d := c.Port; d != nil; d = d.Parent {
			host = min(host, d.MaxGen)
		}
		g := smiGPU{
			card: c, Driver: m.Driver, Bus: strings.ToUpper(c.BDF[5:7]), BusLower: c.BDF[5:7], BusID: strings.ToUpper(c.BDF[5:]), MaxGen: min(c.Model.Gen, host), HostGen: host, GSP: m.Driver,
			Temp: 34 + i%4, Draw: 21.4 + float64(i%5)*1.37, FreeMiB: c.Model.MemoryMiB - c.Model.ReservedMiB - 2, BAR1FreeMiB: c.BAR1MiB - 1, SupportedClocks: clocks(c.Model), Serial: c.Serial,
		}
		g.TLimitLeft = 83 - g.Temp
		out = append(out, g)
	}
	return out
}

// clocks is the long list that makes the real document large.
func clocks(g gpuModel) string {
	var b strings.Builder
	for _, mem := range []int{g.MemClock, g.MemClock - 250, 5001, 810, 405} {
		fmt.Fprintf(&b, "\t\t\t<supported_mem_clock>\n\t\t\t\t<value>%d MHz</value>\n", mem)
		top := g.MaxClock
		if mem == 405 {
			top = 645
		}
		for c := top; c >= 210; c -= 15 {
			fmt.Fprintf(&b, "\t\t\t\t<supported_graphics_clock>%d MHz</supported_graphics_clock>\n", c)
		}
		b.WriteString("\t\t\t</supported_mem_clock>\n")
	}
	return b.String()
}

// csvColumns are the fields of `nvidia-smi --query-gpu`, idle and while a benchmark runs.
func csvColumns(m *machine, loaded bool) (names []string, rows [][]string) {
	for _, g := range smiGPUs(m) {
		state, util, gen, draw, temp := "P8", "0 %", g.Gen, g.Draw, g.Temp
		fan, core, memory, reasons := "30 %", "210 MHz", "405 MHz", "0x0000000000000001"
		if loaded {
			state, util, gen, draw, temp = "P0", "99 %", g.LoadGen, g.LimitW*0.42, g.Temp+19
			fan, core, memory, reasons = "58 %", "2520 MHz", "10251 MHz", "0x0000000000000000"
		}
		fields := [][2]string{
			{"index", strconv.Itoa(g.Index)},
			{"name", "NVIDIA " + g.Model.Name},
			{"gpu_name", "NVIDIA " + g.Model.Name},
			{"uuid", g.UUID},
			{"gpu_uuid", g.UUID},
			{"pci.bus_id", "00000000:" + g.BusID},
			{"gpu_bus_id", "00000000:" + g.BusID},
			{"driver_version", g.Driver},
			{"vbios_version", g.Model.VBIOS},
			{"pstate", state},
			{"pcie.link.gen.gpucurrent", strconv.Itoa(gen)},
			{"pcie.link.gen.current", strconv.Itoa(gen)},
			{"pcie.link.gen.max", strconv.Itoa(g.MaxGen)},
			{"pcie.link.gen.gpumax", strconv.Itoa(g.Model.Gen)},
			{"pcie.link.gen.hostmax", strconv.Itoa(g.HostGen)},
			{"pcie.link.width.current", strconv.Itoa(g.Width)},
			{"pcie.link.width.max", "16"},
			{"utilization.gpu", util},
			{"utilization.memory", "0 %"},
			{"memory.total", fmt.Sprintf("%d MiB", g.Model.MemoryMiB)},
			{"memory.used", "2 MiB"},
			{"memory.free", fmt.Sprintf("%d MiB", g.FreeMiB)},
			{"temperature.gpu", strconv.Itoa(temp)},
			{"temperature.memory", "N/A"},
			{"fan.speed", fan},
			{"clocks.sm", core},
			{"clocks.mem", memory},
			{"clocks_event_reasons.active", reasons},
			{"clocks_throttle_reasons.active", reasons},
			{"ecc.errors.uncorrected.volatile.total", "[N/A]"},
			{"power.draw", fmt.Sprintf("%.2f W", draw)},
			{"power.limit", fmt.Sprintf("%.2f W", g.LimitW)},
			{"power.default_limit", fmt.Sprintf("%.2f W", g.Model.DefaultW)},
			{"power.min_limit", fmt.Sprintf("%.2f W", g.Model.MinW)},
			{"power.max_limit", fmt.Sprintf("%.2f W", g.Model.MaxW)},
			{"enforced.power.limit", fmt.Sprintf("%.2f W", g.LimitW)},
			{"persistence_mode", g.Health.persistence()},
			{"display_active", "Disabled"},
			{"compute_mode", "Default"},
			{"count", strconv.Itoa(len(m.answering()))},
			{"serial", "[" + g.Serial + "]"},
			{"compute_cap", map[string]string{"Ampere": "8.6"}[g.Model.Arch]},
		}
		names = names[:0]
		row := make([]string, 0, len(fields))
		for _, f := range fields {
			names, row = append(names, f[0]), append(row, f[1])
		}
		rows = append(rows, row)
	}
	return names, rows
}

// level is the word of `topo -m` for the path between two cards.
func level(a, b *card) string {
	switch {
	case a.Port.Parent != nil && a.Port.Parent == b.Port.Parent:
		return "PIX"
	case a.Root == b.Root:
		return "PXB"
	case a.RootBus == b.RootBus:
		return "PHB"
	case a.Socket == b.Socket:
		return "NODE"
	}
	return "SYS"
}

func topo(m *machine) string {
	cards := m.answering()
	var b strings.Builder
	b.WriteString("\t")
	for i := range cards {
		fmt.Fprintf(&b, "\x1b[4mGPU%d\t", i)
	}
	b.WriteString("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n")
	for i, c := range cards {
		fmt.Fprintf(&b, "GPU%d\t", i)
		for j, o := range cards {
			if i == j {
				b.WriteString(" X \t")
			} else {
				b.WriteString(level(c, o) + "\t")
			}
		}
		fmt.Fprintf(&b, "%s\t%d\t\tN/A\n", m.cpuList(c.Socket), m.node(c.Socket))
	}
	b.WriteString("\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n" +
		"  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node\n  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n" +
		"  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n  PIX  = Connection traversing at most a single PCIe bridge\n  NV#  = Connection traversing a bonded set of # NVLinks\n")
	return b.String()
}

func p2p(m *machine) string {
	cards := m.answering()
	var b strings.Builder
	b.WriteString(" \t")
	for i := range cards {
		fmt.Fprintf(&b, "GPU%d\t", i)
	}
	b.WriteString("\n")
	for i := range cards {
		fmt.Fprintf(&b, " GPU%d\t", i)
		for j := range cards {
			if i == j {
				b.WriteString("X\t")
			} else {
				b.WriteString(m.P2P + "\t")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  GNS  = GPU not supported\n  TNS  = Topology not supported\n  NS   = Not supported\n  U    = Unknown\n")
	return b.String()
}

// table is plain `nvidia-smi`.
func table(m *machine) string {
	var b strings.Builder
	line := "+-----------------------------------------+------------------------+----------------------+\n"
	b.WriteString(m.At.Format("Mon Jan _2 15:04:05 2006") + "       \n+-----------------------------------------------------------------------------------------+\n")
	fmt.Fprintf(&b, "| NVIDIA-SMI %-23sDriver Version: %-15sCUDA Version: 12.8     |\n|", m.Driver, m.Driver)
	b.WriteString(line[1:] + "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n")
	b.WriteString("|                                         |                        |               MIG M. |\n|=========================================+========================+======================|\n")
	for _, g := range smiGPUs(m) {
		fmt.Fprintf(&b, "|%4d  %-30s On  |   00000000:%s Off |%21s |\n", g.Index, "NVIDIA "+g.Model.Name, g.BusID, map[bool]string{true: "Off", false: "N/A"}[g.Model.ECC == "Disabled"])
		fmt.Fprintf(&b, "| %3s%%%5dC    P8%15.0fW / %4.0fW |%8dMiB /%6dMiB |%7d%%      Default |\n", strings.TrimSuffix(g.Model.Fan, " %"), g.Temp, g.Draw, g.LimitW, 2, g.Model.MemoryMiB, 0)
		b.WriteString("|                                         |                        |                  N/A |\n" + line)
	}
	b.WriteString("\n+-----------------------------------------------------------------------------------------+\n| Processes:                                                                              |\n" +
		"|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n|        ID   ID                                                               Usage      |\n" +
		"|=========================================================================================|\n|  No running processes found                                                             |\n+-----------------------------------------------------------------------------------------+\n")
	return b.String()
}

// writeTools writes the stubs and what they print.
func writeTools(t *tree, m *machine) error {
	tmpl, err := template.ParseFS(templates, "templates/nvidia-smi-q.xml.tmpl")
	if err != nil {
		return err
	}
	var xml strings.Builder
	err = tmpl.Execute(&xml, struct {
		Timestamp, Driver, CUDA string
		GPUs                    []smiGPU
	}{m.At.Format("Mon Jan _2 15:04:05 2006"), m.Driver, "12.8", smiGPUs(m)})
	if err != nil {
		return err
	}
	data := func(name, text string) { t.bytes(filepath.Join(dataDir, name), []byte(text), 0o644) }
	data("smi-q.xml", xml.String())
	data("topo-m.txt", topo(m))
	data("p2p.txt", p2p(m))
	data("table.txt", table(m))
	data("dmesg.txt", dmesg(m))
	for name, loaded := range map[string]bool{"idle.csv": false, "loaded.csv": true} {
		names, rows := csvColumns(m, loaded)
		text := strings.Join(names, "\t") + "\n"
		for _, r := range rows {
			text += strings.Join(r, "\t") + "\n"
		}
		data(name, text)
	}
	data("burn.csv", burnCSV(m))
	data("links-idle.txt", linkFiles(m, false))
	data("links-loaded.txt", linkFiles(m, true))
	data("ranks.txt", ranks(m))
	data("settings", settings(m))
	if m.SMIError != "" {
		data("smi-error.txt", m.SMIError)
	}
	return writeStubs(t)
}

// settings are shell assignments that the stubs read. Every value is a number or a word of this package.
func settings(m *machine) string {
	uid, hang := 0, 0
	if m.User {
		uid = 1000
	}
	if m.SMIHang {
		hang = 1
	}
	return fmt.Sprintf("SIM_UID=%d\nSIM_SMI_EXIT=%d\nSIM_SMI_HANG=%d\nSIM_NCCL=%s\nSIM_BUSBW=%.3f\nSIM_CARDS=%d\nSIM_KERNEL=%s\nSIM_NAME=%s\nSIM_RAM_KIB=%d\nSIM_SHM_KIB=%d\n",
		uid, m.SMIExit, hang, m.NCCL.Mode, m.NCCL.BusBW, len(m.answering()), m.Kernel, m.Name, m.ramGiB()*1024*1024, or(m.Soft.ShmMiB*1024, m.ramGiB()*512*1024))
}

// linkFiles lists what each link's speed file holds: lines "path<TAB>speed".
func linkFiles(m *machine, loaded bool) string {
	var lines []string
	for _, d := range m.Devs {
		if d.Kind == 0xff || d.Physfn != nil || d.Dead {
			continue
		}
		gen := d.Gen
		if loaded {
			gen = d.LoadGen
		}
		lines = append(lines, d.path()+"/current_link_speed\t"+gts(gen)+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// ranks are the lines in which all_reduce_perf names its devices: "BUS<TAB>NAME".
func ranks(m *machine) string {
	var b strings.Builder
	for _, c := range m.answering() {
		fmt.Fprintf(&b, "%s\tNVIDIA %s\n", strings.TrimSuffix(c.BDF, ".0"), c.Model.Name)
	}
	return b.String()
}

func writeStubs(t *tree) error {
	entries, err := templates.ReadDir("templates/bin")
	if err != nil {
		return err
	}
	for _, e := range entries {
		raw, err := templates.ReadFile("templates/bin/" + e.Name())
		if err != nil {
			return err
		}
		t.bytes(filepath.Join(binDir, e.Name()), raw, os.FileMode(0o755))
	}
	return nil
}
