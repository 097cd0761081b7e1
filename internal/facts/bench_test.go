package facts

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// bigSnapshot is a host of n PCI functions, eight of them cards, with nvidia-smi, SMBIOS-free, as root.
func bigSnapshot(n int) *Snapshot {
	files := map[string]string{"proc/cpuinfo": strings.Repeat("processor\t: 0\nmodel name\t: AMD EPYC 7542 32-Core Processor\nphysical id\t: 0\ncore id\t\t: 0\n\n", 128), "proc/meminfo": "MemTotal:       527924480 kB\n"}
	var smi strings.Builder
	smi.WriteString(xmlHead)
	for i := range n {
		bdf, port := fmt.Sprintf("0000:%02x:%02x.0", 1+i/30, i%30), fmt.Sprintf("0000:%02x:%02x.1", 0x40+i/30, i%30)
		for k, v := range cardFiles(bdf, port, nil) {
			if strings.Contains(k, port) {
				continue
			}
			files[k] = v
		}
		if i >= 8 {
			files[pciDevices+bdf+"/class"], files[pciDevices+bdf+"/vendor"] = "0x080600\n", "0x1022\n"
			files[pciDevices+bdf+"/modalias"] = "pci:v00001022d00001484sv00001022sd00001484bc08sc06i00\n"
			continue
		}
		files[pciDevices+bdf+"/config"] = string(configImage(0, 4|16<<4, 1|16<<4, acs(0), rebar(0xffc0, 15, 1)))
		fmt.Fprintf(&smi, `<gpu id="0000%s"><product_name>NVIDIA GeForce RTX 4090</product_name><fb_memory_usage><total>24564 MiB</total></fb_memory_usage>%s</gpu>`,
			bdf, strings.Repeat("<supported_clocks><value>10501 MHz</value></supported_clocks>", 400))
	}
	smi.WriteString("</nvidia_smi_log>")
	files["cmd/nvidia-smi-q.xml"] = smi.String()
	s := snap(files)
	s.Manifest.Schema = SnapshotSchema
	return s
}

func BenchmarkFactsFrom300Devices(b *testing.B) {
	s := bigSnapshot(300)
	b.ReportAllocs()
	for b.Loop() {
		if h := FromSnapshot(s); len(h.Cards) != 8 {
			b.Fatalf("%d cards", len(h.Cards))
		}
	}
}

func BenchmarkArchive300Devices(b *testing.B) {
	s := bigSnapshot(300)
	for b.Loop() {
		var buf bytes.Buffer
		if err := Save(&buf, s); err != nil {
			b.Fatal(err)
		}
		if _, err := Load(&buf); err != nil {
			b.Fatal(err)
		}
	}
}
