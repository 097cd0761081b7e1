package collect

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"preflight/internal/facts"
)

const nonce = "0123abcd"

func mark(s string) string { return "\n@@preflight " + nonce + " " + s + "\n" }

var whole = "Welcome to node-a\n" + mark("begin 1 1000") +
	mark("cmd collector/proc ok 0 10 3145728") +
	mark("item absent proc/modules") + mark("item denied proc/iomem") +
	mark("files 262144 -") + "==> /dev/null <==\n\n==> proc/meminfo <==\nMemTotal: 1 kB\n\n==> .dockerenv <==\n" +
	mark("err collector/proc") + "@base sys/x\nhead: cannot open 'a/b' for reading: Permission denied\nhead: error reading 'a/c': Invalid argument\n" +
	mark("cmd collector/pci ok 0 10 6291456") +
	mark("links sys/bus/pci/devices") + "lrwxrwxrwx 1 0 0 0 Jan  1 00:00 ./0000:01:00.0 -> ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0\n" +
	mark("files 8192 sys/bus/pci/devices") + "==> /dev/null <==\n\n==> 0000:01:00.0/vendor <==\n0x10de\n" +
	mark("files 4096 sys/bus/pci/devices") + "==> /dev/null <==\n\n==> 0000:01:00.0/config <==\n\xde\x10\n\n==> \x00 <==\nzz" +
	mark("dir sys/class/iommu") + "dmar0\ndmar1\n" +
	mark("cmd cmd/dmesg.txt ok 0 20 2097664") +
	mark("err cmd/dmesg.txt") + "dmesg: read kernel buffer failed: Operation not permitted\n" +
	mark("cmd cmd/nvidia-smi-q.xml timeout -1 60000 4194304") +
	mark("cmd cmd/topo-m.txt timeout -1 0 65536 skipped: nvidia-smi hung") +
	mark("cmd cmd/big.txt ok 153 5 4") + "12345" +
	mark("end")

func TestParseWhole(t *testing.T) {
	s, err := Parse(iotestOneByte(whole), Request{Nonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	if s.Manifest.Cut != "" || s.Manifest.UID != 1000 {
		t.Errorf("manifest %+v", s.Manifest)
	}
	for path, want := range map[string]string{
		"proc/meminfo": "MemTotal: 1 kB\n", ".dockerenv": "", "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
		"sys/bus/pci/devices/0000:01:00.0/config": "\xde\x10\n\n==> \x00 <==\nzz",
		"cmd/dmesg.txt.err":                       "dmesg: read kernel buffer failed: Operation not permitted\n",
	} {
		if got, ok := s.Files[path]; !ok || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", path, got, ok, want)
		}
	}
	for name, want := range map[string]facts.Status{
		"proc/modules": "absent", "proc/iomem": "denied", "sys/x/a/b": "denied", "sys/bus/pci/devices": "ok", "cmd/dmesg.txt": "denied",
		"cmd/nvidia-smi-q.xml": "timeout", "cmd/topo-m.txt": "timeout", "cmd/big.txt": "truncated",
	} {
		if it, ok := s.Item(name); !ok || it.Status != want {
			t.Errorf("item %s = %+v, want %s", name, it, want)
		}
	}
	if it, _ := s.Item("cmd/topo-m.txt"); it.Detail != "skipped: nvidia-smi hung" {
		t.Errorf("detail %q", it.Detail)
	}
	if _, ok := s.Read("cmd/big.txt"); ok {
		t.Error("a truncated item reads as whole")
	}
	if got := s.Links["sys/bus/pci/devices/0000:01:00.0"]; got != "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0" {
		t.Errorf("link %q", got)
	}
	if got := s.Dirs["sys/class/iommu"]; !slices.Equal(got, []string{"dmar0", "dmar1"}) {
		t.Errorf("dir %q", got)
	}
}

func iotestOneByte(s string) io.Reader { return &slow{strings.NewReader(s)} }

type slow struct{ r io.Reader }

func (s *slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 7)]) }

// TestParseCutAnywhere ends the stream after each byte: never a panic, never silently whole.
func TestParseCutAnywhere(t *testing.T) {
	for n := range len(whole) - 1 {
		s, err := Parse(strings.NewReader(whole[:n]), Request{Nonce: nonce})
		switch {
		case err == nil && s.Manifest.Cut == "":
			t.Fatalf("cut after %d bytes reads as whole", n)
		case err != nil && !errors.Is(err, ErrNoFrames):
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
}

func TestParseCutMarksTheItem(t *testing.T) {
	s, err := Parse(strings.NewReader(mark("begin 1 0")+mark("cmd cmd/nvidia-smi-q.xml ok 0 1 4194304")+"<nvidia_smi_log>"), Request{Nonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	if it, _ := s.Item("cmd/nvidia-smi-q.xml"); it.Status != facts.StatusTruncated {
		t.Errorf("%+v", it)
	}
}

func TestGroupThatHung(t *testing.T) {
	stream := mark("begin 1 0") + mark("cmd collector/pci timeout -1 20000 6291456") + mark("files 8192 sys/bus/pci/devices") +
		"==> /dev/null <==\n\n==> 0000:01:00.0/class <==\n0x030000\n\n==> 0000:01:00.0/vendor <==\n0x1" +
		mark("cmd collector/config timeout -1 20000 1048576") + mark("cmd collector/sys timeout -1 20000 9") + mark("end")
	s, err := Parse(strings.NewReader(stream), Request{Nonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	if it, _ := s.Item("sys/bus/pci/devices/0000:01:00.0/vendor"); it.Status != facts.StatusTruncated {
		t.Errorf("the last file of a group that hung: %+v", it)
	}
	if it, _ := s.Item("sys/block"); it.Status != facts.StatusTimeout {
		t.Errorf("what the group would have read: %+v", it)
	}
	if _, kept := s.Files["sys/bus/pci/devices/0000:01:00.0/class"]; kept {
		t.Error("half of a list of devices was kept: what is missing would read as not there")
	}
}

// TestCutInsideAGroup: what a stream that was cut says of devices is all or nothing; what stands alone is kept.
func TestCutInsideAGroup(t *testing.T) {
	proc := mark("cmd collector/proc ok 0 10 3145728") + mark("files 4096 proc") + "==> /dev/null <==\n\n==> meminfo <==\nMemTotal: 1 kB\n\n==> cpuinfo <==\nproc"
	pci := mark("cmd collector/pci ok 0 10 6291456") + mark("files 64 sys/bus/pci/devices") + "==> /dev/null <==\n\n==> 0000:01:00.0/class <==\n0x030000\n"
	for name, c := range map[string]struct {
		stream string
		kept   []string
		gone   []string
		status map[string]facts.Status
	}{
		"in proc": {proc, []string{"proc/meminfo"}, nil, map[string]facts.Status{"proc/cpuinfo": facts.StatusTruncated, "proc/modules": facts.StatusError}},
		"in pci": {
			proc + "\n" + pci + "\n==> 0000:41:00.0/cla",
			[]string{"proc/meminfo", "proc/cpuinfo"},
			[]string{"sys/bus/pci/devices/0000:01:00.0/class"},
			map[string]facts.Status{"sys/bus/pci/devices": facts.StatusError},
		},
		"in pci's links": {
			pci + mark("links sys/bus/pci/devices") + "lrwxrwxrwx 1 0 0 0 Jan 1 00:00 0000:01:00.0/driver -> ../../../../bus/pci/drivers/nvidia\n", nil,
			[]string{"sys/bus/pci/devices/0000:01:00.0/class"},
			map[string]facts.Status{"sys/bus/pci/devices": facts.StatusError},
		},
		"after pci": {pci + mark("err collector/pci") + "@base x\n", []string{"sys/bus/pci/devices/0000:01:00.0/class"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(strings.NewReader(mark("begin 1 0")+c.stream), Request{Nonce: nonce})
			if err != nil || s.Manifest.Cut == "" {
				t.Fatalf("error %v, %+v", err, s)
			}
			for _, f := range c.kept {
				if _, ok := s.Files[f]; !ok {
					t.Errorf("%s is gone", f)
				}
			}
			for _, f := range c.gone {
				if _, ok := s.Files[f]; ok {
					t.Errorf("%s was kept", f)
				}
			}
			if len(c.gone) > 0 && len(s.Links) > 0 {
				t.Errorf("links were kept: %v", s.Links)
			}
			for f, want := range c.status {
				if it, _ := s.Item(f); it.Status != want {
					t.Errorf("%s: %+v, want %s", f, it, want)
				}
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	begin := mark("begin 1 0")
	for name, c := range map[string]struct{ stream, want string }{
		"nothing":        {"", "did not start"},
		"fish error":     {"fish: Unknown command", "did not start"},
		"other nonce":    {"\n@@preflight ffff begin 1 0\n", "did not start"},
		"endless banner": {strings.Repeat("Welcome! ", 100_000), "before the collector's first frame"},
		"unknown kind":   {begin + mark("exec rm"), `unknown kind`},
		"no begin":       {mark("end"), "first frame"},
		"absolute path":  {begin + mark("text /etc/passwd") + "x", "unusable path"},
		"path outside":   {begin + mark("text ../../etc/passwd") + "x", "unusable path"},
		"base outside":   {begin + mark("files 64 ../..") + "==> etc/passwd <==\nx\n", "unusable path"},
		"link name":      {begin + mark("links -") + "lrwxrwxrwx 1 0 0 0 Jan 1 00:00 ../../x -> y\n", "unusable link"},
		"bad number":     {begin + mark("cmd cmd/x ok zero 0 0"), "number was expected"},
		"few arguments":  {begin + mark("cmd cmd/x"), "5 are needed"},
		"fatal":          {begin + mark("fatal no private temporary directory"), "no private temporary directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(c.stream), Request{Nonce: nonce})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestEndless holds the memory bound: a host that never stops is cut, in one frame and over many.
func TestEndless(t *testing.T) {
	for name, unit := range map[string]string{"one frame": strings.Repeat("x", 4096), "many frames": mark("text cmd/x") + strings.Repeat("x", 4096)} {
		t.Run(name, func(t *testing.T) {
			r := io.MultiReader(strings.NewReader(mark("begin 1 0")+mark("text cmd/x")), &forever{unit: []byte(unit)})
			s, err := Parse(r, Request{Nonce: nonce})
			if err != nil || !strings.Contains(s.Manifest.Cut, errLimit.Error()) {
				t.Fatalf("cut %+v, error %v", s, err)
			}
		})
	}
}

type forever struct {
	unit []byte
	rest []byte
}

func (f *forever) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		f.rest = f.unit
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(mark("begin 1 0") + mark("files 1 -") + "==> a <==\n\n==> b <=="))
	f.Add([]byte(mark("begin 1 0") + mark("links x") + "l -> "))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(bytes.NewReader(data), Request{Nonce: nonce})
		if err != nil {
			return
		}
		for p := range s.Files {
			if strings.HasPrefix(p, "/") || strings.Contains("/"+p+"/", "/../") {
				t.Fatalf("path %q leaves the snapshot", p)
			}
		}
	})
}
