package facts

import (
	"strings"
	"testing"
)

// snap builds a snapshot from path → text; a value "-> target" is a link.
func snap(files map[string]string) *Snapshot {
	s := &Snapshot{Files: map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{}}
	for p, v := range files {
		if target, ok := strings.CutPrefix(v, "-> "); ok {
			s.Links[p] = target
			continue
		}
		s.Files[p] = []byte(v)
	}
	return s
}

func cardFiles(bdf, port string, extra map[string]string) map[string]string {
	d, p := pciDevices+bdf+"/", pciDevices+port+"/"
	m := map[string]string{
		pciDevices + bdf:  "-> ../../../devices/pci0000:40/" + port + "/" + bdf,
		pciDevices + port: "-> ../../../devices/pci0000:40/" + port,
		d + "class":       "0x030000\n", d + "vendor": "0x10de\n", d + "device": "0x2684\n",
		d + "subsystem_vendor": "0x1458\n", d + "subsystem_device": "0x40bf\n", d + "revision": "0xa1\n",
		d + "modalias": "pci:v000010DEd00002684sv00001458sd000040BFbc03sc00i00\n", d + "numa_node": "0\n",
		d + "resource": "0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200\n" +
			"0x0000028800000000 0x0000028fffffffff 0x000000000014220c\n0x0 0x0 0x0\n" +
			"0x0000029000000000 0x0000029001ffffff 0x000000000014220c\n0x0 0x0 0x0\n0x4000 0x407f 0x40101\n",
		d + "current_link_width": "16\n", d + "max_link_width": "16\n", d + "current_link_speed": "2.5 GT/s PCIe\n", d + "max_link_speed": "16.0 GT/s PCIe\n",
		d + "driver": "-> ../../../bus/pci/drivers/nvidia",
		p + "class":  "0x060400\n", p + "vendor": "0x1022\n", p + "device": "0x1483\n", p + "modalias": "pci:v00001022d00001483sv00001022sd00001453bc06sc04i00\n",
		p + "current_link_width": "16\n", p + "max_link_width": "16\n", p + "current_link_speed": "2.5 GT/s PCIe\n", p + "max_link_speed": "16.0 GT/s PCIe\n",
		p + "secondary_bus_number": "65\n",
	}
	for k, v := range extra {
		m[k] = v
	}
	return m
}

func TestPCI(t *testing.T) {
	h := FromSnapshot(snap(cardFiles("0000:41:00.0", "0000:40:01.1", nil)))
	if len(h.Cards) != 1 || len(h.PCI) != 2 {
		t.Fatalf("cards %d, functions %d", len(h.Cards), len(h.PCI))
	}
	c := h.Cards[0]
	if c.Driver.Value != "nvidia" || c.RootBus != "0000:40" || len(c.Chain) != 1 || c.Chain[0] != "0000:40:01.1" {
		t.Errorf("driver %q, root bus %q, chain %v", c.Driver.Value, c.RootBus, c.Chain)
	}
	if c.BAR1MiB.Value != 32768 || !c.BARs[1].Mem64 || !c.BARs[1].Prefetch || c.BARs[1].Start < 1<<32 {
		t.Errorf("BAR1: %+v %v", c.BARs[1], c.BAR1MiB)
	}
	if c.Slug.Value != "rtx-4090" || c.Link.Speed.Value != 2.5 || c.Link.MaxSpeed.Value != 16 {
		t.Errorf("slug %q link %+v", c.Slug.Value, c.Link)
	}
	if c.Device.Label == "" {
		t.Error("ghw gave no product name from the catalogue's ids")
	}
}

// NPS4: four nodes on each socket; the socket of a card comes from its local CPUs, not from its node.
func TestSocketOfACard(t *testing.T) {
	cpuinfo := "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 48\nphysical id\t: 1\ncore id\t\t: 0\n\n"
	h := FromSnapshot(snap(cardFiles("0000:41:00.0", "0000:40:01.1", map[string]string{
		"proc/cpuinfo": cpuinfo, pciDevices + "0000:41:00.0/local_cpulist": "48-55,112-119\n", pciDevices + "0000:41:00.0/numa_node": "6\n",
	})))
	if s, ok := h.Cards[0].Socket.Get(); !ok || s != 1 {
		t.Errorf("socket %v %v", s, ok)
	}
}

func TestPCIOffTheBus(t *testing.T) {
	d := pciDevices + "0000:41:00.0/"
	h := FromSnapshot(snap(cardFiles("0000:41:00.0", "0000:40:01.1", map[string]string{d + "current_link_width": "63\n", d + "current_link_speed": "Unknown\n"})))
	l := h.Cards[0].Link
	if !l.Broken.Value || l.Width.Known() || l.Speed.Known() {
		t.Errorf("width 63 must read as a device that left the bus: %+v", l)
	}
}

func TestResourceNULPadding(t *testing.T) {
	d := pciDevices + "0000:41:00.0/"
	h := FromSnapshot(snap(cardFiles("0000:41:00.0", "0000:40:01.1", map[string]string{d + "vendor": "0x10de\n" + strings.Repeat("\x00", 4000)})))
	if len(h.Cards) != 1 {
		t.Error("a NUL-padded vendor file must still read")
	}
}

func TestUnassignedBAR(t *testing.T) {
	bars := parseResource("0x0 0x7ffffffff 0x20140000\n0x0 0x0 0x0\n", "x")
	if len(bars) != 2 || !bars[0].Unassigned || bars[1].Size != 0 {
		t.Errorf("%+v", bars)
	}
}

const xmlHead = `<?xml version="1.0" ?><nvidia_smi_log><driver_version>535.86.05</driver_version><cuda_version>12.2</cuda_version><attached_gpus>1</attached_gpus>`

func TestSMI(t *testing.T) {
	gpu := func(inner string) string {
		return xmlHead + `<gpu id="00000000:41:00.0"><product_name>NVIDIA GeForce RTX 4090</product_name>` + inner + `</gpu></nvidia_smi_log>`
	}
	for _, tc := range []struct {
		name, xml string
		limit     float64
		known     bool
	}{
		{"535 and later", gpu(`<gpu_power_readings><current_power_limit>450.00 W</current_power_limit></gpu_power_readings>`), 450, true},
		{"525 and before", gpu(`<power_readings><enforced_power_limit>350.00 W</enforced_power_limit><power_limit>360 W</power_limit></power_readings>`), 350, true},
		{"padded", gpu(`<gpu_power_readings><current_power_limit> 450.00 W </current_power_limit></gpu_power_readings>`), 450, true},
		{"laptop prints N/A", gpu(`<gpu_power_readings><current_power_limit>N/A</current_power_limit></gpu_power_readings>`), 0, false},
		{"deprecated", gpu(`<gpu_power_readings><current_power_limit>Requested functionality has been deprecated</current_power_limit></gpu_power_readings>`), 0, false},
	} {
		h := FromSnapshot(snap(map[string]string{"cmd/nvidia-smi-q.xml": tc.xml}))
		if len(h.Cards) != 1 {
			t.Fatalf("%s: %d cards, gaps %v", tc.name, len(h.Cards), h.Gaps)
		}
		c := h.Cards[0]
		if v, ok := c.PowerLimit.Get(); ok != tc.known || v != tc.limit {
			t.Errorf("%s: limit %v %v", tc.name, v, ok)
		}
		if c.BDF != "0000:41:00.0" || c.Name.Value != "GeForce RTX 4090" {
			t.Errorf("%s: %s %q", tc.name, c.BDF, c.Name.Value)
		}
	}
}

func TestSMICutIsNotJudged(t *testing.T) {
	h := FromSnapshot(snap(map[string]string{"cmd/nvidia-smi-q.xml": xmlHead + `<gpu id="00000000:41:00.0"><product_name>NV`}))
	if len(h.Cards) != 0 || h.Gaps[KindSMI] == "" {
		t.Errorf("cards %d, gap %q", len(h.Cards), h.Gaps[KindSMI])
	}
}

func TestTopo(t *testing.T) {
	text := "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\nGPU0\t X \tNV4\tSYS\tNODE\t0-15\t0\nGPU1\tNV4\t X \tSYS\tSYS\t\t\nGPU2\tSYS\tSYS\t X \tPHB\nNIC0\tNODE\tSYS\tPHB\t X \n\nLegend:\n\n  X    = Self\n"
	h := FromSnapshot(snap(map[string]string{"cmd/topo-m.txt": text}))
	want := []TopoPair{{A: "GPU0", B: "GPU1", Level: "NV4"}, {A: "GPU0", B: "GPU2", Level: "SYS"}, {A: "GPU1", B: "GPU2", Level: "SYS"}}
	if len(h.Topo) != len(want) {
		t.Fatalf("%+v", h.Topo)
	}
	for i, w := range want {
		if g := h.Topo[i]; g.A != w.A || g.B != w.B || g.Level != w.Level {
			t.Errorf("pair %d: %+v", i, g)
		}
	}
}
