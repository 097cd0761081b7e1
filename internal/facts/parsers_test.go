package facts

import (
	"encoding/binary"
	"strings"
	"testing"
)

// configImage builds 4096 bytes: PCIe capability at 78h, and extended capabilities from 100h on.
func configImage(portType uint16, capWord uint32, status uint16, ext ...[]byte) []byte {
	c := make([]byte, 4096)
	binary.LittleEndian.PutUint32(c, 0x268410de)
	c[6], c[0x34] = 0x10, 0x60
	c[0x60], c[0x61] = 0x01, 0x78 // power management, next
	c[0x78] = 0x10
	binary.LittleEndian.PutUint16(c[0x7a:], portType<<4|2|0x100)
	binary.LittleEndian.PutUint32(c[0x78+0x0c:], capWord)
	binary.LittleEndian.PutUint16(c[0x78+0x12:], status)
	binary.LittleEndian.PutUint16(c[0x78+0x1a:], 0x40)
	at := 0x100
	for i, e := range ext {
		next := 0
		if i+1 < len(ext) {
			next = at + 0x40
		}
		copy(c[at:], e)
		binary.LittleEndian.PutUint32(c[at:], binary.LittleEndian.Uint32(e)&0xffff|1<<16|uint32(next)<<20)
		at += 0x40
	}
	return c
}

func rebar(sizes uint32, current, bar uint32) []byte {
	e := make([]byte, 12)
	binary.LittleEndian.PutUint32(e, extReBAR)
	binary.LittleEndian.PutUint32(e[4:], sizes<<4)
	binary.LittleEndian.PutUint32(e[8:], bar|1<<5|current<<8)
	return e
}

func acs(control uint16) []byte {
	e := make([]byte, 8)
	binary.LittleEndian.PutUint32(e, extACS)
	binary.LittleEndian.PutUint16(e[6:], control)
	return e
}

func TestConfig(t *testing.T) {
	c := ParseConfig(configImage(4, 4|16<<4, 1|8<<4, acs(0x1d), rebar(0xffc0, 8, 1)))
	if c.PortType != "root" || c.LnkCap.Speed != 16 || c.LnkCap.Width != 16 || c.LnkSta.Speed != 2.5 || c.LnkSta.Width != 8 {
		t.Errorf("link: %+v %+v %s", c.LnkCap, c.LnkSta, c.PortType)
	}
	if c.ACS == nil || *c.ACS != 0x1d || c.Presence == nil || !*c.Presence {
		t.Errorf("acs %v presence %v", c.ACS, c.Presence)
	}
	if n := len(c.ReBAR1); n == 0 || c.ReBAR1[n-1] != 32768 || c.ReBARCur != 256 {
		t.Errorf("sizes %v current %d", c.ReBAR1, c.ReBARCur)
	}
	if s := ParseConfig(configImage(0, 0, 0)[:64]); s.LnkCap != nil || s.Extended {
		t.Error("64 bytes end before any capability")
	}
	dead := []byte(strings.Repeat("\xff", 256))
	if !ParseConfig(dead).Dead {
		t.Error("all ones is a device that does not answer")
	}
}

// record builds one SMBIOS structure.
func record(kind byte, body []byte, text ...string) []byte {
	r := append([]byte{kind, byte(4 + len(body)), 0, 0}, body...)
	for _, s := range text {
		r = append(append(r, s...), 0)
	}
	if len(text) == 0 {
		r = append(r, 0)
	}
	return append(r, 0)
}

func dimm(size uint16, big uint32) []byte {
	b := make([]byte, 0x24)
	binary.LittleEndian.PutUint16(b[0x0c-4:], size)
	binary.LittleEndian.PutUint32(b[0x1c-4:], big)
	b[0x10-4] = 1
	return record(17, b, "P0_Node0_Channel0_Dimm0")
}

func TestSMBIOS(t *testing.T) {
	psu := make([]byte, 0x12)
	psu[6-4] = 1
	binary.LittleEndian.PutUint16(psu[0x0c-4:], 2000)
	binary.LittleEndian.PutUint16(psu[0x0e-4:], 2)
	slot := make([]byte, 0x11-4)
	slot[0], slot[2], slot[3] = 1, 13, 4
	slot[0x0f-4], slot[0x10-4] = 0x41, 0
	var table []byte
	for _, r := range [][]byte{dimm(0x7fff, 65536), dimm(32768-1, 0), dimm(0, 0), dimm(0xffff, 0), record(39, psu, "PWS-2K05A-1R"), record(9, slot, "CPU1 SLOT1 PCI-E 4.0 X16"), record(127, nil)} {
		table = append(table, r...)
	}
	h := FromSnapshot(snap(map[string]string{"sys/firmware/dmi/tables/DMI": string(table)}))
	if v := h.Memory.InstalledMiB.Value; v != 65536+32768 && v != 65536 {
		t.Errorf("installed %d MiB, sockets %d", v, len(h.Memory.DIMMs))
	}
	if len(h.PSUs) != 1 || h.PSUs[0].Watts != 2000 || !h.PSUs[0].Present {
		t.Errorf("supplies %+v", h.PSUs)
	}
	if len(h.Slots) != 1 || h.Slots[0].BDF != "0000:41:00.0" || h.Slots[0].Width != 16 || !*h.Slots[0].InUse {
		t.Errorf("slots %+v", h.Slots)
	}
	if _, err := parseSMBIOS([]byte{17, 200, 0, 0, 1}); err == nil || !strings.Contains(err.Error(), "offset 0") {
		t.Errorf("a structure longer than the table must be named: %v", err)
	}
}

func TestKernelLog(t *testing.T) {
	text := strings.Join([]string{
		"[    0.5] pci_bus 0000:40: root bus resource [mem 0x10030000000-0x1007fffffff window]",
		"[    1.0] pci 0000:41:00.0: BAR 1: no space for [mem size 0x800000000 64bit pref]",
		"[    1.0] pci 0000:61:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space",
		"[    1.1] pci 0000:61:00.0: BAR 1 [mem 0x20000000000-0x207ffffffff 64bit pref]: assigned",
		"[    1.1] pci 0000:02:00.0: BAR 7: no space for [mem size 0x00100000 64bit]",
		"[    1.1] pci 0000:02:00.0: VF BAR 0 [mem size 0x00100000]: can't assign; no space",
		"[    1.1] pci 0000:00:1c.0: BAR 13: no space for [io  size 0x1000]",
		"[    9.0] NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
		"[    9.1] NVRM: The NVIDIA GPU 0000:01:00.0",
		"[    9.1] NVRM: (PCI ID: 10de:2684) installed in this system has",
		"[    9.1] NVRM: fallen off the bus and is not responding to commands.",
		"[    9.2] NVRM: The NVIDIA GPU 0000:05:00.0 (PCI ID: 10de:1b06)",
		"[    9.2] NVRM: installed in this system is not supported by the NVIDIA 595.58.03 driver",
	}, "\n")
	h := FromSnapshot(snap(map[string]string{"cmd/dmesg.txt": text}))
	var got []string
	for _, e := range h.Log.Events {
		got = append(got, e.Kind+" "+e.BDF)
	}
	want := "bar 0000:41:00.0|xid 0000:2b:00.0|off-bus 0000:01:00.0"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("events\n got %s\nwant %s", s, want)
	}
	if len(h.Windows) != 1 || h.Windows[0].Bus != "0000:40" {
		t.Errorf("windows %+v", h.Windows)
	}
}

func TestNCCLText(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		ranks      int
		busbw      float64
		wrong      int64
		hung       bool
	}{
		{"v2.13 and later", "# Using devices\n#  Rank  0 Group  0 Pid 1 on h device  0 [0000:01:00] X\n#  Rank  1 Group  0 Pid 1 on h device  1 [0000:41:00] X\n#  algbw\n   67108864   16777216   float   sum   -1   8399.7   3.99   3.90   0   8398.7   4.00   4.00   0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2.0\n", 2, 4, 0, false},
		{"old error column", "#   Rank  0 Pid 1 on h device  0 [0x41] A40\n#  algbw\n  8388608  2097152  float  sum  162.0  51.79  90.63  2e-07  160.0  52.44  91.77  N/A\n", 1, 91.77, 0, false},
		{"not checked", "#  algbw\n  8388608  2097152  float  sum -1 162.0  51.79  90.63  N/A  160.0  52.44  91.77  N/A\n", 0, 91.77, -1, false},
		{"wrong values", "#  algbw\n  8  2  float  sum -1 162.0  51.79  90.63  4  160.0  52.44  91.77  0\n# Out of bounds values : 108 FAILED\n", 0, 91.77, 108, false},
		{"header and no row: a hang", "# Using devices\n#  Rank  0 Group  0 Pid 1 on h device  0 [0000:01:00] X\n#  algbw\n", 1, 0, -1, true},
		{"torn by log lines", "#  algbw\n   8388608   2097152   float   sum   -1h:1:2 [1] NCCL INFO AllReduce: opCount 0\nh:1:2 [0] NCCL INFO x 1 2 3\n   77.96  107.60  107.60   0h:1:2 [0] NCCL INFO y\n   78.1  107.4  107.4   0\n", 0, 107.6, 0, false},
		{"mpirun tags", "[1,0]<stdout>:#  algbw\n[1,0]<stdout>:  8388608  2097152  float  sum -1 162.0  51.79  90.63  0  160.0  52.44  91.77  0\n", 0, 91.77, 0, false},
	} {
		r := ParseNCCLTests(tc.text, "t")
		row, _ := r.Plateau()
		if r.Ranks != tc.ranks || row.BusBW != tc.busbw || r.Wrong != tc.wrong || r.Hung != tc.hung {
			t.Errorf("%s: ranks %d busbw %v wrong %d hung %v", tc.name, r.Ranks, row.BusBW, r.Wrong, r.Hung)
		}
	}
}

func TestNCCLJSONNeverKeepsTheEnvironment(t *testing.T) {
	r, err := ParseNCCLTestsJSON([]byte(`{"version":"2.17.6","env":["SECRET=hunter2"],"devices":[{"rank":0,"device_hex":"0x01"}],
		"results":[{"size":268435456,"out_of_place":{"time":1.5,"alg_bw":8.1,"bus_bw":14.2,"nwrong":0},"in_place":{"time":1.6,"alg_bw":8,"bus_bw":14,"nwrong":3}}],"out_of_bounds":{"count":3,"okay":"false"}}`), "t")
	if err != nil || r.Wrong != 3 || len(r.Rows) != 1 || r.Rows[0].BusBW != 14.2 {
		t.Errorf("%+v %v", r, err)
	}
	for _, d := range append(r.Devices, r.Tool, r.Library, r.Error) {
		if strings.Contains(d, "hunter2") {
			t.Error("the environment leaked")
		}
	}
}

func TestNCCLDebug(t *testing.T) {
	for line, want := range map[string]string{
		"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read":                           "P2P",
		"h:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct":                                   "SHM",
		"h:1:2 [0] NCCL INFO Channel 00 : 0[1000] -> 1[41000] via direct shared memory":                         "SHM",
		"h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0":                               "NET",
		"h:1:2 [0] NCCL INFO Channel 01/0 : 1[1] -> 2[0] via P2P/IPC\nChannel 00 : 0[0] -> 1[1] via SHM/direct": "SHM",
	} {
		if got := ParseNCCLDebug(line).Transport; got != want {
			t.Errorf("%s: got %q want %q", line, got, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(configImage(4, 4|16<<4, 1|8<<4, acs(0x1d), rebar(0xffc0, 8, 1)))
	f.Add([]byte(strings.Repeat("\xff", 300)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := ParseConfig(b)
		if len(c.ReBAR1) > 64 {
			t.Error("more sizes than bits")
		}
	})
}

func FuzzSMBIOS(f *testing.F) {
	f.Add(append(dimm(0x7fff, 65536), record(127, nil)...))
	f.Add([]byte{17, 200, 0, 0, 1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		FromSnapshot(&Snapshot{Files: map[string][]byte{"sys/firmware/dmi/tables/DMI": b}})
	})
}

func FuzzSMI(f *testing.F) {
	f.Add([]byte(xmlHead + `<gpu id="00000000:41:00.0"><product_name>NVIDIA GeForce RTX 4090</product_name></gpu></nvidia_smi_log>`))
	f.Add([]byte("Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		FromSnapshot(&Snapshot{Files: map[string][]byte{"cmd/nvidia-smi-q.xml": b}})
	})
}

func FuzzText(f *testing.F) {
	f.Add("#  algbw\n  8388608  2097152  float  sum -1 162.0  51.79  90.63  0  160.0  52.44  91.77  0\n")
	f.Add("\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X\n")
	f.Add("[ 1.0] pci 0000:41:00.0: BAR 1: no space for [mem size 0x800000000 64bit pref]")
	f.Fuzz(func(_ *testing.T, s string) {
		FromSnapshot(&Snapshot{Files: map[string][]byte{
			"cmd/topo-m.txt": []byte(s), "cmd/p2p-r.txt": []byte(s), "cmd/dmesg.txt": []byte(s), "proc/iomem": []byte(s), "proc/cpuinfo": []byte(s),
			"proc/meminfo": []byte(s), ProbeTextPath: []byte(s), ProbeDebugPath: []byte(s), "cmd/gpu-samples.csv": []byte(s), ProbeNCCLPath: []byte(s), ProbeLinksPath: []byte(s),
		}})
	})
}
