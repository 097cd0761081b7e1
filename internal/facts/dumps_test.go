package facts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
)

// hostOf reads texts, by name, as one machine.
func hostOf(t *testing.T, texts ...string) *Host {
	t.Helper()
	d := NewDumps()
	for i := 0; i+1 < len(texts); i += 2 {
		if err := d.Add(texts[i], []byte(texts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return FromSnapshot(d.Snapshot())
}

// A made-up rig: root port 40:01.1, a 4090 behind it at x8, its list of sizes up to 32 GB.
const lspciRoot = `00:00.0 Host bridge [0600]: Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex [1022:1480]
	Control: I/O- Mem+ BusMaster+

40:01.1 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge [1022:1483] (prog-if 00 [Normal decode])
	Control: I/O+ Mem+ BusMaster+
	Bus: primary=40, secondary=41, subordinate=41, sec-latency=0
	Capabilities: [58] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L1
		LnkSta:	Speed 2.5GT/s, Width x8
		SltCtl:	Enable: AttnBtn- PwrFlt- MRL- PresDet- CmdCplt-
		SltSta:	Status: AttnBtn- PowerFlt- MRL- CmdCplt- PresDet+ Interlock-
	Capabilities: [150 v2] Advanced Error Reporting
		UESta:	DLP- SDES+ TLP- FCP- CmpltTO+ CmpltAbrt-
		CESta:	RxErr- BadTLP+ BadDLLP- Rollover- Timeout- AdvNonFatalErr-
	Capabilities: [2a0 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
	Kernel driver in use: pcieport

41:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1) (prog-if 00 [VGA controller])
	Subsystem: Gigabyte Technology Co., Ltd Device [1458:40bf]
	Control: I/O+ Mem+ BusMaster+
	NUMA node: 1
	Region 0: Memory at f0000000 (32-bit, non-prefetchable) [size=16M]
	Region 1: Memory at 100a0000000 (64-bit, prefetchable) [size=256M]
	Region 3: Memory at 100b0000000 (64-bit, prefetchable) [size=32M]
	Region 5: I/O ports at 4000 [size=128]
	Capabilities: [78] Express (v2) Legacy Endpoint, MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L1
		LnkSta:	Speed 2.5GT/s (downgraded), Width x8 (downgraded)
		LnkCap2: Supported Link Speeds: 2.5-16GT/s, Crosslink- Retimer+
	Capabilities: [bb0 v1] Physical Resizable BAR
		BAR 0: current size: 16MB, supported: 16MB
		BAR 1: current size: 256MB, supported: 64MB 128MB 256MB 512MB 1GB 2GB 4GB 8GB 16GB 32GB
	Capabilities: [bcc v1] Single Root I/O Virtualization (SR-IOV)
		Region 1: Memory at 0000000000000000 (64-bit, prefetchable)
	Capabilities: [c14 v1] Virtual Resizable BAR
		BAR 1: current size: 4GB, supported: 256TB
	Kernel driver in use: nvidia
	Kernel modules: nvidiafb, nouveau, nvidia
`

func TestLspciAsRoot(t *testing.T) {
	h := hostOf(t, "lspci-vvv.txt", lspciRoot)
	if len(h.PCI) != 3 || len(h.Cards) != 1 {
		t.Fatalf("%d functions, %d cards", len(h.PCI), len(h.Cards))
	}
	c, port := h.Cards[0], h.PCI[1]
	if c.BDF != "0000:41:00.0" || c.Class != "030000" || c.Product != "2684" || c.SubVend != "1458" || c.SubDev != "40bf" || c.NUMA.Value != 1 {
		t.Errorf("identity: %+v", c.Device)
	}
	if l := c.Link; l.Width.Value != 8 || l.MaxWidth.Value != 16 || l.Speed.Value != 2.5 || l.MaxSpeed.Value != 16 || l.Width.Source != "lspci-vvv.txt:LnkSta" {
		t.Errorf("link: %+v", l)
	}
	if c.BAR1MiB.Value != 256 || len(c.ReBARMiB.Value) != 10 || c.ReBARMiB.Value[9] != 32768 || len(c.BARs) != 4 {
		t.Errorf("BAR1 %v, sizes %v, %d BARs", c.BAR1MiB, c.ReBARMiB, len(c.BARs))
	}
	if strings.Join(c.Chain, " ") != "0000:40:01.1" || c.RootBus != "0000:40" || c.Driver.Value != "nvidia" || !h.Driver.Loaded.Value {
		t.Errorf("chain %v below %s, driver %v", c.Chain, c.RootBus, c.Driver)
	}
	if port.PortType.Value != "root" || !port.Presence.Value || port.ACS.Value != 0x1d || port.AER.Uncorrectable.Value != 1<<5|1<<14 || port.AER.Correctable.Value != 1<<6 {
		t.Errorf("port: %+v", port)
	}
	for _, k := range []Kind{KindPCI, KindConfig} {
		if why, gap := h.Gaps[k]; gap {
			t.Errorf("%s: %s", k, why)
		}
	}
}

func TestLspciForms(t *testing.T) {
	rows := map[string]struct {
		text string
		want func(*Host) bool
		gaps []Kind
	}{
		"a plain user sees no capabilities, and that is not x0": {
			"01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n\tMemory at b2000000 (32-bit, non-prefetchable) [size=16M]\n\tMemory at 28800000000 (64-bit, prefetchable) [size=32G]\n\tMemory at 28400000000 (64-bit, prefetchable) [size=32M]\n\tCapabilities: <access denied>\n\tKernel driver in use: nvidia\n",
			func(h *Host) bool {
				c := h.Cards[0]
				return c.Product == "2684" && c.BAR1MiB.Value == 32768 && !c.Link.Width.Known() && !c.ReBARMiB.Known() && strings.Contains(h.Gaps[KindConfig], "root")
			},
			[]Kind{KindPCI, KindConfig},
		},
		"numbers alone": {
			"00:00.0 0600: 1022:1480\n01:00.0 0300: 10de:2204 (rev a1)\n02:00.0 0403: 10de:1aef (rev a1)\n",
			func(h *Host) bool { return len(h.Cards) == 1 && h.Cards[0].Product == "2204" },
			[]Kind{KindConfig},
		},
		"a card that left the bus": {
			"01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [10de:2204] (rev ff) (prog-if ff)\n\t!!! Unknown header type 7f\n",
			func(h *Host) bool { return h.Cards[0].Link.Broken.Value },
			[]Kind{KindPCI},
		},
		"no address": {
			"01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330]\n\tRegion 0: Memory at <unassigned> (64-bit, prefetchable) [size=16M]\n",
			func(h *Host) bool { return h.Cards[0].BARs[0].Unassigned },
			[]Kind{KindPCI},
		},
		"cut to the list of sizes": {
			"d8:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n        Capabilities: [bb0 v1] Physical Resizable BAR\n                BAR 1: current size: 256MB, supported: 64MB 128MB 256MB\n",
			func(h *Host) bool {
				c := h.Cards[0]
				return c.BAR1MiB.Value == 256 && c.ReBARMiB.Value[2] == 256 && !c.Link.Width.Known()
			},
			[]Kind{KindPCI},
		},
		"headings of -v show no sizes": {
			"00:00.0 Host bridge: Intel Corporation Device 2020\n1a:00.0 VGA compatible controller: NVIDIA Corporation TU104GL [Quadro RTX 5000] (rev a1)\n\tFlags: bus master, NUMA node 0\n\tCapabilities: [bb0] Resizable BAR <?>\n",
			func(h *Host) bool { return !h.Cards[0].ReBARMiB.Known() && h.Cards[0].NUMA.Known() },
			nil,
		},
		"another domain": {
			"10000:01:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2684]\n",
			func(h *Host) bool { return h.Cards[0].BDF == "10000:01:00.0" },
			[]Kind{KindPCI},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, "paste.txt", row.text)
			if len(h.Cards) == 0 || !row.want(h) {
				t.Errorf("%+v\n%v", h.Cards, h.Gaps)
			}
			for _, k := range row.gaps {
				if h.Gaps[k] == "" {
					t.Errorf("no gap for %s", k)
				}
			}
		})
	}
}

func TestLspciHexIsReadAsConfigurationSpace(t *testing.T) {
	img := configImage(0, 4|16<<4, 1|8<<4, rebar(0xffc0, 8, 1))
	img[0x0b], img[0x0a] = 0x03, 0x00
	var b strings.Builder
	b.WriteString("01:00.0 VGA compatible controller: NVIDIA Corporation Device 2684 (rev a1)\n")
	const digits = "0123456789abcdef"
	for at := 0; at < len(img); at += 16 {
		if at >= 0x100 {
			b.WriteByte(digits[at>>8])
		}
		b.WriteByte(digits[at>>4&15])
		b.WriteString("0:")
		for _, x := range img[at : at+16] {
			b.WriteByte(' ')
			b.WriteByte(digits[x>>4])
			b.WriteByte(digits[x&15])
		}
		b.WriteByte('\n')
	}
	c := hostOf(t, "lspci-xxxx.txt", b.String()).Cards[0]
	if c.Link.Width.Value != 8 || c.Link.MaxSpeed.Value != 16 || len(c.ReBARMiB.Value) == 0 || c.PortType.Value != "endpoint" {
		t.Errorf("%+v, sizes %v", c.Link, c.ReBARMiB)
	}
}

func TestLspciTree(t *testing.T) {
	const tree = `-+-[0000:60]-+-00.0  Advanced Micro Devices, Inc. [AMD] Root Complex [1022:1480]
 |           \-03.1-[61]--+-00.0  NVIDIA Corporation Device [10de:2684]
 |                        \-00.1  NVIDIA Corporation Device [10de:22ba]
 \-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Root Complex [1022:1480]
             +-01.2-[01-09]----00.0-[02-09]--+-00.0-[03]----00.0  NVIDIA Corporation AD102 [GeForce RTX 4090]
             |                               \-01.0-[04]--
             \-18.0  Advanced Micro Devices, Inc. [AMD] Data Fabric
`
	h := hostOf(t, "lspci-tree.txt", tree)
	if len(h.Cards) != 2 {
		t.Fatalf("%d cards of %d functions", len(h.Cards), len(h.PCI))
	}
	if got := strings.Join(h.Cards[0].Chain, " "); h.Cards[0].BDF != "0000:03:00.0" || got != "0000:00:01.2 0000:01:00.0 0000:02:00.0" || h.Cards[0].RootBus != "0000:00" {
		t.Errorf("behind a switch: %s below %s", h.Cards[0].BDF, got)
	}
	if got := strings.Join(h.Cards[1].Chain, " "); h.Cards[1].BDF != "0000:61:00.0" || got != "0000:60:03.1" {
		t.Errorf("direct: %s below %s", h.Cards[1].BDF, got)
	}
	if why, gap := h.Gaps[KindPCI]; gap {
		t.Error(why)
	}
	bare := hostOf(t, "lspci-t.txt", " |           +-01.1-[41]--+-00.0\n |           |            \\-00.1\n \\-[0000:00]-+-00.0\n             \\-01.1-[02]----00.0\n")
	if len(bare.Cards) != 0 || bare.Gaps[KindPCI] == "" {
		t.Errorf("a piece of a drawing without names is no list of cards: %+v", bare.Cards)
	}
	for _, d := range bare.PCI {
		if d.BDF == "0000:41:00.0" && len(d.Chain) != 0 {
			t.Errorf("the way above the cut is not known: %v", d.Chain)
		}
	}
}

func TestDumpsAreKnownByContent(t *testing.T) {
	const smi = "==============NVSMI LOG==============\n\nDriver Version : 550.1\nAttached GPUs : 1\nGPU 00000000:01:00.0\n    Product Name : NVIDIA GeForce RTX 4090\n"
	utf := func(s string, order binary.AppendByteOrder, mark []byte) string {
		for _, u := range utf16.Encode([]rune(s)) {
			mark = order.AppendUint16(mark, u)
		}
		return string(mark)
	}
	quoted := "> " + strings.ReplaceAll(smi, "\n", "\n> ")
	rows := map[string]string{
		"plain":                  smi,
		"CRLF":                   strings.ReplaceAll(smi, "\n", "\r\n"),
		"colours":                strings.ReplaceAll(smi, "Driver", "\x1b[1;32mDriver\x1b[0m"),
		"UTF-16 from PowerShell": utf(strings.ReplaceAll(smi, "\n", "\r\n"), binary.LittleEndian, []byte{0xff, 0xfe}),
		"UTF-16, big end first":  utf(smi, binary.BigEndian, []byte{0xfe, 0xff}),
		"a mark before UTF-8":    "\xef\xbb\xbf" + smi,
		"quoted in a mail":       quoted,
		"quoted twice":           "> " + strings.ReplaceAll(quoted, "\n", "\n> "),
		"a code block":           "Hi, here is mine:\n```text\n" + smi + "```\nThanks!\n",
		"an indented block":      "    " + strings.ReplaceAll(smi, "\n", "\n    "),
		"a prompt":               "user@host:~$ sudo nvidia-smi -q\n" + smi + "user@host:~$ \n",
		"a Windows prompt":       "C:\\Windows\\System32>nvidia-smi -q\n" + smi,
		"hard spaces":            strings.ReplaceAll(smi, "    ", "\u00a0\u00a0\u00a0\u00a0"),
	}
	for name, text := range rows {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, `C:\Users\me\Desktop\output 1.txt`, text)
			if len(h.Cards) != 1 || h.Driver.Version.Value != "550.1" || h.Cards[0].Name.Value != "GeForce RTX 4090" {
				t.Errorf("%+v %+v", h.Driver, h.Cards)
			}
		})
	}
}

func TestOneFileWithSeveralDumps(t *testing.T) {
	text := "$ lscpu\nArchitecture:        x86_64\nModel name:          AMD EPYC 7542 32-Core Processor\nSocket(s):           2\nCore(s) per socket:  32\n" +
		"$ nvidia-smi topo -p2p w\n \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n\n" +
		"$ lspci -vvv\n" + lspciRoot +
		"[    0.000000] Linux version 6.8.0\n[   10.000000] NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n"
	h := hostOf(t, "all.txt", text)
	if h.CPU.Cores.Value != 64 || h.CPU.Sockets.Value != 2 || len(h.Cards) != 1 || len(h.Log.Events) != 1 {
		t.Errorf("cores %v, %d cards, events %v", h.CPU.Cores, len(h.Cards), h.Log.Events)
	}
	if len(h.P2P) != 2 || h.P2P[0].Op != "w" || h.P2P[0].Code != "CNS" {
		t.Errorf("p2p %v", h.P2P)
	}
}

func TestWhatIsNoDump(t *testing.T) {
	rows := map[string]struct{ text, says string }{
		"a screenshot":     {"\x89PNG\r\n\x1a\n\x00\x00", "image"},
		"a web page":       {"<!DOCTYPE html><html><body>01:00.0 VGA</body></html>", "HTML"},
		"JSON":             {`{"gpu": [1, 2]}`, "JSON"},
		"a report":         {`{"schema": "preflight/report/v1"}`, "report of preflight"},
		"binary data":      {strings.Repeat("\x00\x01\x02abc", 1000), "binary"},
		"nothing":          {"  \n\n", "empty"},
		"another log":      {"2026-01-02 10:00:00 INFO start\n2026-01-02 10:00:01 INFO go\n2026-01-02 10:00:02 INFO on\n", "a log"},
		"an inventory":     {"rig \"a\" {\n  cards = 4\n}\n", "-i"},
		"prose":            {"My second card is slow, what can I do?\n", "no output"},
		"another's XML":    {"<?xml version=\"1.0\"?>\n<servers/>\n", "XML"},
		"too large by one": {strings.Repeat("x", DumpLimit+1), "larger than"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			err := NewDumps().Add("input", []byte(row.text))
			if !errors.Is(err, ErrNotADump) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestContradictionsAreKept(t *testing.T) {
	const q = "Driver Version : 550.1\nAttached GPUs : 1\nGPU 00000000:41:00.0\n    Product Name : NVIDIA GeForce RTX 4090\n    FB Memory Usage\n        Total : 24564 MiB\n    BAR1 Memory Usage\n        Total : 32768 MiB\n    Temperature\n        GPU Current Temp : 60 C\n"
	h := hostOf(t, "lspci-vvv.txt", lspciRoot, "nvidia-smi-q.txt", q,
		"nvidia-smi.txt", "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n|   0  NVIDIA GeForce RTX 4090   Off | 00000000:41:00.0 Off |  Off |\n|  0%   28C    P8    20W /  450W |   2MiB /  24564MiB |   0%   Default |\n")
	var got []string
	for _, c := range h.Conflicts {
		got = append(got, c.Path)
	}
	if strings.Join(got, " ") != "cards[0000:41:00.0].bar1 driver.driver_version" && strings.Join(got, " ") != "cards[0000:41:00.0].bar1 driver.version" {
		t.Errorf("contradictions: %v", got)
	}
	if h.Cards[0].BAR1MiB.Value != 256 || h.Driver.Version.Value != "550.1" {
		t.Errorf("used: BAR1 %v, driver %v", h.Cards[0].BAR1MiB, h.Driver.Version)
	}
	if c := h.Conflicts[0]; c.Used.Source != "lspci-vvv.txt:Region 1" || !strings.HasPrefix(c.Ignored.Source, "nvidia-smi-q.txt:") {
		t.Errorf("sources: %+v", c)
	}
}

func FuzzDumps(f *testing.F) {
	f.Add("lspci.txt", []byte(lspciRoot))
	f.Add("a", []byte("-[0000:00]-+-00.0\n           \\-01.0-[01-02]----00.0-[02]--\n"))
	f.Add("nvidia-smi-q.txt", []byte("GPU 00000000:01:00.0\n    Processes\n        Process ID : 1\n            Type : C\n"))
	f.Add("dmi", []byte("Handle 0x1, DMI type 17, 92 bytes\nMemory Device\n\tSize: 32 GB\n"))
	f.Add("x", append([]byte{0xff, 0xfe}, bytes.Repeat([]byte("G\x00P\x00"), 9)...))
	f.Add("nvidia-smi.txt", []byte("| NVIDIA-SMI 1 Driver Version: 1 |\n| 0 A Off | 00000000:01:00.0 Off | 0 |\n"))
	f.Add("collect_env.txt", []byte("PyTorch version: 2.1.0+cu121\nGPU 0: A\nArchitecture: x86_64\n"))
	f.Fuzz(func(_ *testing.T, name string, raw []byte) {
		d := NewDumps()
		if d.Add(name, raw) == nil {
			Tree(FromSnapshot(d.Snapshot()))
		}
	})
}
