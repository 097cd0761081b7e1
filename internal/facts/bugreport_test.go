package facts

import (
	"errors"
	"io"
	"strings"
	"testing"
)

const ruler = "____________________________________________\n"

// A made-up report, much shorter than real ones, with the forms of heading that they have.
func bugReport() string {
	return ruler + "\nStart of NVIDIA bug report log file.  Please include this file, along\nwith a detailed description of your problem.\n\n" +
		"nvidia-bug-report.sh Version: 34084042\n\nDate: Thu Nov 16 08:58:34 UTC 2023\nuname: Linux host 6.2.0-34-generic\n\n" +
		ruler + "\n*** /proc/cmdline\n*** ls: -r--r--r-- 1 root root 0 2023-11-16 08:58:35 /proc/cmdline\nBOOT_IMAGE=/vmlinuz ro iommu=pt\n\n" +
		ruler + "\n*** /proc/cpuinfo\n*** ls: -r--r--r-- 1 root root 0 2023-11-16 /proc/cpuinfo\nprocessor\t: 0\nmodel name\t: AMD EPYC 7542\nphysical id\t: 0\ncore id\t\t: 0\n\n" +
		ruler + "\n*** /proc/driver/nvidia/./version\n*** ls: -r--r--r-- 1 root root 0 /proc/driver/nvidia/./version\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  535.113.01  Tue Sep 12\n\n" +
		ruler + "\n*** /etc/nosuch\n*** ls: cannot access '/etc/nosuch'\n\n" +
		ruler + "\n/sbin/lspci -d \"10de:*\" -v -xxx\n\n41:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n\tNUMA node: 0\n\n" +
		ruler + "\n/sbin/lspci -t\n\n-[0000:00]-+-00.0\n           \\-01.0-[41]----00.0\n\n" +
		ruler + "\n/sbin/lspci -nn\n\n00:00.0 Host bridge [0600]: AMD [1022:1480]\n00:01.0 PCI bridge [0604]: AMD [1022:1483]\n41:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [10de:2684] (rev a1)\n\n" +
		ruler + "\n/usr/sbin/dmidecode\n\n# dmidecode 3.3\nHandle 0x0011, DMI type 17, 92 bytes\nMemory Device\n\tSize: 32 GB\n\tLocator: DIMM_A1\n\tType: DDR4\n\n" +
		ruler + "\nScanning kernel log files for NVRM messages:\n\n  /var/log/kern.log:\nNov 16 08:00:00 host kernel: [   20.1] NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.\n\n" +
		ruler + "\n/usr/bin/nvidia-smi --query\n\n" + strings.Replace(smiText535, "Thu", "Fri", 1) + "\n" +
		ruler + "\n/usr/bin/nvidia-smi --query --unit\n\nAttached Units : 0\n\n" +
		ruler + "\nEnd of NVIDIA bug report log file.\n"
}

func readReport(t *testing.T, r io.Reader) (*Snapshot, *Host) {
	t.Helper()
	d := NewDumps()
	if err := d.AddBugReport("nvidia-bug-report.log.gz", r); err != nil {
		t.Fatal(err)
	}
	return d.Snapshot(), FromSnapshot(d.Snapshot())
}

func TestBugReportWhole(t *testing.T) {
	s, h := readReport(t, strings.NewReader(bugReport()))
	if s.Manifest.Cut != "" || s.Manifest.At.Format("2006-01-02") != "2023-11-16" {
		t.Errorf("cut %q, at %v", s.Manifest.Cut, s.Manifest.At)
	}
	if len(h.Cards) != 1 || h.CPU.Model.Value != "AMD EPYC 7542" || !strings.Contains(h.OS.Cmdline.Value, "iommu=pt") || h.Driver.Version.Value != "535.113.01" {
		t.Fatalf("%d cards, %v, %v, %v", len(h.Cards), h.CPU.Model, h.OS.Cmdline, h.Driver.Version)
	}
	c := h.Cards[0]
	if c.Product != "2684" || c.Gen.Width.Value != 8 || strings.Join(c.Chain, " ") != "0000:00:01.0" {
		t.Errorf("%+v", c)
	}
	if h.Memory.InstalledMiB.Value != 32768 || len(h.Log.Events) != 1 || h.Log.Events[0].Code != 79 {
		t.Errorf("memory %v, events %v", h.Memory.InstalledMiB, h.Log.Events)
	}
	if _, gap := h.Gaps[KindPCI]; gap {
		t.Error("lspci -nn lists the whole bus")
	}
	if !strings.Contains(c.Gen.Width.Source, "nvidia-bug-report.log.gz#nvidia-smi --query") {
		t.Errorf("source %q", c.Gen.Width.Source)
	}
}

// brokenAt gives the beginning of a text, and then an error as a damaged archive does.
type brokenAt struct {
	r   io.Reader
	err error
}

func (b brokenAt) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

func TestBugReportCut(t *testing.T) {
	whole := bugReport()
	half := whole[:strings.Index(whole, "Scanning kernel log")-60]
	s, h := readReport(t, brokenAt{strings.NewReader(half), io.ErrUnexpectedEOF})
	if len(h.Cards) != 1 || h.Cards[0].Product != "2684" || h.Log.Read.Known() {
		t.Errorf("%+v, log %v", h.Cards, h.Log.Read)
	}
	if !strings.Contains(s.Manifest.Cut, "dmidecode") || !strings.Contains(s.Manifest.Cut, "damaged") {
		t.Errorf("cut: %q", s.Manifest.Cut)
	}
	if s, _ = readReport(t, strings.NewReader(half)); !strings.Contains(s.Manifest.Cut, "in the middle") {
		t.Errorf("cut: %q", s.Manifest.Cut)
	}
}

func TestNoBugReport(t *testing.T) {
	if err := NewDumps().AddBugReport("x", strings.NewReader("hello\n")); !errors.Is(err, ErrNotADump) {
		t.Error(err)
	}
}

func FuzzBugReport(f *testing.F) {
	f.Add(bugReport())
	f.Add(ruler + "\n*** /proc/cpuinfo\n" + ruler + "\n/sbin/lspci -t\n")
	f.Fuzz(func(_ *testing.T, text string) {
		d := NewDumps()
		if d.AddBugReport("r", strings.NewReader(text)) == nil {
			FromSnapshot(d.Snapshot())
		}
	})
}
