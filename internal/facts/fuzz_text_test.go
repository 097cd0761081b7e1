package facts

import "testing"

// Each parser of text alone, without the host around it: many more inputs a second.

func dumpOf(text string) dumpFile { return dumpFile{name: "fuzz", text: text} }

func FuzzLspci(f *testing.F) {
	f.Add(lspciRoot)
	f.Add("01:00.0 0300: 10de:2684\n00: de 10 84 26\n10: 00\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range parseLspci(dumpOf(text), nil).devices {
			if w := d.Link.Width.Value; w < 0 || w > 63 || d.Link.Speed.Value < 0 {
				t.Errorf("%+v", d.Link)
			}
		}
	})
}

func FuzzTree(f *testing.F) {
	f.Add("-+-[0000:60]-+-00.0\n |           \\-01.2-[01-09]----00.0-[02-09]--+-00.0-[03]----00.0\n")
	f.Add(" |  +-09.0-[46]----00.0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range parseTree(dumpOf(text)) {
			if len(d.Chain) > maxBridges {
				t.Errorf("%d bridges above %s", len(d.Chain), d.BDF)
			}
		}
	})
}

func FuzzDMI(f *testing.F) {
	f.Add("Handle 0x1, DMI type 9, 17 bytes\nSystem Slot Information\n\tType: x16 PCI Express\n\tBus Address: 0000:41:00.0\n\tPitch: 20.32 mm\n")
	f.Add("Memory Device\nSize: 999999999 TB\nProcessor Information\nStatus: Populated\nCore Count: -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		b := (&builder{}).side()
		for _, r := range parseDMI(dumpOf(text)) {
			dmiReaders[r.title](b, r, "fuzz:record")
		}
		b.sumDIMMs()
		if b.host.CPU.Cores.Value < 0 {
			t.Errorf("%d cores", b.host.CPU.Cores.Value)
		}
		for _, d := range b.host.Memory.DIMMs {
			if d.SizeMiB < 0 {
				t.Errorf("%d MiB", d.SizeMiB)
			}
		}
	})
}

func FuzzSMITable(f *testing.F) {
	f.Add("| NVIDIA-SMI 550.1  Driver Version: 550.1  CUDA Version: 12.4 |\n|   0  A  On  | 00000000:01:00.0 Off | Off |\n|ERR! 25C P8 20W / 450W | 2MiB / 24564MiB | 0% Default |\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, cards := parseSMITable(dumpOf(text))
		for _, c := range cards {
			if !bdfPattern.MatchString(c.BDF) || c.MemoryMiB.Value < 0 || c.PowerLimit.Value < 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}

func FuzzTextTools(f *testing.F) {
	f.Add("Architecture: x86_64\nSocket(s): 2\nCore(s) per socket: 32\nNUMA node0 CPU(s): 0-31\n")
	f.Add("available: 2 nodes (0-1)\nnode 0 size: 1 MB\n  0: 10 32\nGRUB_CMDLINE_LINUX=\"a\"\n")
	f.Add("Device: 0, A, pciBusID: 41, pciDeviceID: 0, pciDomainID:0\nDevice=0 CAN Access Peer Device=0\n")
	f.Add("Device 0: \"A\"\n Device PCI Domain ID / Bus ID / location ID: 0 / 65 / 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := dumpOf(text)
		if _, c, _ := parseLscpu(d); c.Cores.Value < 0 {
			t.Errorf("%d cores", c.Cores.Value)
		}
		parseNumactl(d)
		parseGrub(d)
		for _, c := range parseCUDASample(d).cards {
			if !bdfPattern.MatchString(c.BDF) {
				t.Errorf("a card is called %q", c.BDF)
			}
		}
		(&builder{}).side().collectEnv(d)
	})
}
