package facts

import (
	"strconv"
	"strings"
	"testing"
)

func TestOnlyTheLastBootOfALogIsThisBoot(t *testing.T) {
	const (
		load  = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05"
		lost  = "NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus."
		fault = "NVRM: Xid (PCI:0000:81:00): 48, pid=1, Double Bit ECC Error"
		first = "Linux version 6.8.0 (gcc)"
	)
	rows := map[string]struct {
		lines        []string
		now, earlier string // addresses
	}{
		"one boot":                     {[]string{"[    0.000000] " + first, "[   90.000000] " + fault}, "81", ""},
		"journal with its mark":        {[]string{"Nov 19 10:00:00 h kernel: " + lost, "-- Boot 0123456789abcdef0123456789abcdef --", "Nov 20 10:00:00 h kernel: " + fault}, "81", "41"},
		"older journal's mark":         {[]string{"Nov 19 10:00:00 h kernel: " + lost, "-- Reboot --", "Nov 20 10:00:00 h kernel: " + fault}, "81", "41"},
		"syslog: the clock goes back":  {[]string{"Nov 19 10:00:00 h kernel: [ 9000.000000] " + lost, "Nov 20 10:00:00 h kernel: [   12.000000] " + fault}, "81", "41"},
		"lines a little out of order":  {[]string{"Nov 19 10:00:00 h kernel: [    9.200000] " + lost, "Nov 19 10:00:00 h kernel: [    9.100000] " + fault}, "41 81", ""},
		"two greps pasted, no dates":   {[]string{"[ 9000.000000] " + lost, "[   12.000000] " + fault}, "41 81", ""},
		"a module loaded again":        {[]string{"Nov 19 10:00:00 h kernel: [   50.000000] " + lost, "Nov 19 10:01:00 h kernel: [  110.000000] " + load}, "41", ""},
		"grepped, no clock":            {[]string{"Nov 19 10:00:00 h kernel: " + lost, "Nov 20 10:00:00 h kernel: " + load, "Nov 20 10:00:01 h kernel: " + fault}, "81", "41"},
		"dmesg of two boots, appended": {[]string{"[    0.000000] " + first, "[   50.000000] " + lost, "[    0.000000] " + first, "[   12.000000] " + fault}, "81", "41"},
		"nothing since the last boot":  {[]string{"2026-11-19T10:00:00+01:00 h kernel: " + lost, "-- Reboot --", "2026-11-20T10:00:00+01:00 h kernel: " + load}, "", "41"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			h := FromSnapshot(rawSnapshot(map[string]string{"cmd/dmesg.txt": strings.Join(row.lines, "\n") + "\n"}))
			if got := buses(h.Log.Events); got != row.now {
				t.Errorf("this boot: %q, want %q", got, row.now)
			}
			if got := buses(h.Log.Earlier); got != row.earlier {
				t.Errorf("earlier: %q, want %q", got, row.earlier)
			}
			for _, e := range h.Log.Events { // lines keep their numbers
				if !strings.HasSuffix(e.Source, ":"+strconv.Itoa(lineOf(row.lines, e.Text))) {
					t.Errorf("%s for %q", e.Source, e.Text)
				}
			}
		})
	}
}

func buses(events []LogEvent) string {
	var out []string
	for _, e := range events {
		out = append(out, strings.Split(e.BDF, ":")[1])
	}
	return strings.Join(out, " ")
}

func lineOf(lines []string, text string) int {
	for i, l := range lines {
		if strings.TrimSpace(l) == text {
			return i + 1
		}
	}
	return 0
}

// Domains above 0000 (VMD, several segments) are not cut to four digits.
func TestLogAddressesKeepTheirDomain(t *testing.T) {
	rows := map[string]string{
		"[ 1.000000] NVRM: Xid (PCI:10000:01:00): 79, pid=1, GPU has fallen off the bus.":                                                 "10000:01:00.0",
		"[ 1.000000] NVRM: GPU at 00000000:01:00.0 has fallen off the bus.":                                                               "0000:01:00.0",
		"[ 1.000000] nvme 10000:e1:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)":                          "10000:e1:00.0",
		"[ 1.000000] pcieport 0002:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)":          "0002:00:01.0",
		"[ 1.000000] pci 10001:41:00.0: BAR 1: no space for [mem size 0x800000000 64bit pref]":                                            "10001:41:00.0",
		"[ 1.000000] DMAR: [DMA Read NO_PASID] Request device [41:00.0] fault addr 0x1000 [fault reason 0x06] PTE Read access is not set": "0000:41:00.0",
	}
	for line, want := range rows {
		if ev, ok := logEvent(line); !ok || ev.BDF != want {
			t.Errorf("%v %q, want %q: %s", ok, ev.BDF, want, line)
		}
	}
	if got := smiBDF("00010000:01:00.0"); got != "10000:01:00.0" {
		t.Errorf("nvidia-smi's long domain became %q", got)
	}
}

// Logs come with the stamps of many tools and tongues; prose that has the words in it is no log.
func TestLogLinesAreKnownByTheirStamps(t *testing.T) {
	const say = "NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus."
	for _, stamp := range []string{
		"[   12.345678] ", "[   12.345678] rig kernel: ", "[Wed Nov 18 10:00:00 2026] ", "[Mi Nov 18 10:00:00 2026] ", "[三 11月 18 10:00:00 2026] ", "[mer. nov. 18 10:00:00 2026] ",
		"<4>[   12.345678] ", "kern  :warn  : [   12.345678] ", "[Nov18 10:00] ", "[  +0.000123] ", "2026-11-18T10:00:00,123456+01:00 ", "Nov 18 10:00:00 rig kernel: ",
		"Nov 18 10:00:00.123456 rig kernel: ", "2026-11-18T10:00:00+0100 rig kernel: ", "2026-11-18T10:00:00.123456+01:00 rig kernel: ", "Wed 2026-11-18 10:00:00 CET rig kernel: ",
		"11月 18 10:00:00 rig kernel: ", "18 nov. 10:00:00 rig kernel: ", "nov. 18 10:00:00 rig kernel: ", "Dez 18 10:00:00 rig kernel: ", "1795000000.123456 rig kernel: ",
		"2026-11-18T10:00:00.123456789Z [   12.345678] ", "2026-11-18T10:00:00.123456789Z stdout F [   12.345678] ", "Nov 18 10:00:00 rig kernel: [   12.345678] ",
	} {
		if k := kindByLine(stamp + say); k != dumpLog {
			t.Errorf("%q is taken for %q", stamp, k)
		}
	}
	for _, line := range []string{"Running on kernel: 6.8.0", "My kernel: 6.8", "at 10:00 I saw a kernel: panic", "[INFO] 2026 hello", "[2026-11-18 10:00:00] epoch 3"} {
		if k := kindByLine(line); k == dumpLog {
			t.Errorf("%q is taken for a kernel's log", line)
		}
	}
}

// That a few pasted lines hold no Xid says nothing; what they hold counts.
func TestAnExcerptIsNoLog(t *testing.T) {
	rows := map[string]struct {
		text   string
		read   bool
		events int
	}{
		"two lines":       {"[  100.000000] usb 1-1: new device\n[  101.000000] NVRM: Xid (PCI:0000:41:00): 79, pid=1\n", false, 1},
		"from the boot":   {"[    0.000000] Linux version 6.8.0\n[  101.000000] usb 1-1: new device\n", true, 0},
		"a driver's grep": {"Nov 18 10:00:00 rig kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05\n", true, 0},
		"a long tail":     {strings.Repeat("[  100.000000] usb 1-1: new device\n", 300), true, 0},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			d := NewDumps()
			if err := d.Add("dmesg.txt", []byte(row.text)); err != nil {
				t.Fatal(err)
			}
			h := FromSnapshot(d.Snapshot())
			if h.Log.Read.Known() != row.read || len(h.Log.Events) != row.events {
				t.Errorf("read %v, %d events; gap %q", h.Log.Read.Known(), len(h.Log.Events), h.Gaps[KindLog])
			}
		})
	}
}
