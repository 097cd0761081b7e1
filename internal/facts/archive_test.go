package facts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/pcidb"
)

func archived() *Snapshot {
	dev := "sys/bus/pci/devices/0000:01:00.0"
	return &Snapshot{
		Manifest: Manifest{Schema: SnapshotSchema, Tool: "test", At: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), UID: 0, Root: "root", Items: []Item{{Name: "cmd/topo-m.txt", Status: StatusTruncated}}},
		Files: map[string][]byte{
			dev + "/modalias": []byte("pci:v000010DEd00002684sv00001458sd000040BFbc03sc00i00\n"),
			dev + "/revision": []byte("0xa1\n"),
			"sys/bus/pci/devices/0000:00:01.0/modalias":    []byte("pci:v00001022d00001483sv00001022sd00001453bc06sc04i00\n"),
			"sys/bus/pci/devices/0000:00:01.0/revision":    []byte("0x00\n"),
			"sys/block/nvme0n1/size":                       []byte("3907029168\n"),
			"proc/meminfo":                                 []byte("MemTotal: 1 kB\n"),
			"cmd/topo-m.txt":                               []byte("GPU0"),
			"probe/nccl.json":                              []byte("[]"),
			"sys/devices/system/node/online":               []byte("0\n"),
			"sys/bus/pci/devices/0000:01:00.0/config":      {0xde, 0x10, 0, 255},
			"sys/kernel/iommu_groups/12/type":              []byte("DMA-FQ\n"),
			"sys/bus/pci/devices/0000:c1:00.0/vendor":      []byte("0x144d\n"),
			"sys/bus/pci/devices/0000:c1:00.0/modalias":    []byte("pci:v0000144Dd0000A80Asv0000144Dsd0000A801bc01sc08i02\n"),
			"sys/bus/pci/devices/0000:c1:00.0/revision":    []byte("0x00\n"),
			"sys/class/powercap/intel-rapl:0/name":         []byte("package-0\n"),
			"sys/module/nvidia/version":                    []byte("570.124.04\n"),
			"sys/firmware/efi/efivars/SecureBoot-8be4df61": {6, 0, 0, 0, 1},
		},
		Links: map[string]string{
			dev:                                "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0",
			"sys/bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
			dev + "/driver":                    "../../../../bus/pci/drivers/nvidia",
			dev + "/iommu_group":               "../../../../kernel/iommu_groups/12",
			"sys/bus/pci/devices/0000:c1:00.0": "../../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0",
			"sys/block/nvme0n1":                "../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0/nvme/nvme0/nvme0n1",
			"sys/block/sdz":                    "../../../../../etc",
			"sys/class/net/eth9":               "/etc",
		},
		Dirs: map[string][]string{"sys/block": {"nvme0n1"}, "sys/class/iommu": {}},
	}
}

func TestArchiveRoundTrip(t *testing.T) {
	want := archived()
	var one, two bytes.Buffer
	if err := Save(&one, want); err != nil {
		t.Fatal(err)
	}
	if err := Save(&two, want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same snapshot was saved as different bytes")
	}
	got, err := Load(&one)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded snapshot differs:\n got %+v\nwant %+v", got, want)
	}
}

// TestArchiveIsATreeForGHW unpacks an archive as any tar would and lets ghw read it.
func TestArchiveIsATreeForGHW(t *testing.T) {
	var buf bytes.Buffer
	if err := Save(&buf, archived()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	zr, err := gzip.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		full := filepath.Join(dir, h.Name)
		_ = os.MkdirAll(filepath.Dir(full), 0o755)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(full, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, full)
		default:
			content, _ := io.ReadAll(tr)
			err = os.WriteFile(full, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := filepath.Join(dir, "pci.ids")
	if err := os.WriteFile(ids, []byte("10de  NVIDIA Corporation\n\t2684  AD102 [GeForce RTX 4090]\nC 03  Display controller\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := pcidb.New(pcidb.WithPath(ids))
	if err != nil {
		t.Fatal(err)
	}
	info, err := ghw.PCI(ghw.WithChroot(filepath.Join(dir, "root")), ghw.WithPCIDB(db), ghw.WithDisableTools(), ghw.WithDisableWarnings())
	if err != nil {
		t.Fatal(err)
	}
	card := info.GetDevice("0000:01:00.0")
	if card == nil || card.Driver != "nvidia" || card.ParentAddress != "0000:00:01.0" || card.IOMMUGroup != "12" {
		t.Errorf("ghw sees %+v", card)
	}
}

func hostile(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	m := []byte(`{"schema":"` + SnapshotSchema + `"}`)
	_ = tw.WriteHeader(&tar.Header{Name: "manifest.json", Size: int64(len(m)), Mode: 0o644})
	_, _ = tw.Write(m)
	for _, h := range headers {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 && h.Size <= 1<<20 {
			_, _ = tw.Write(make([]byte, h.Size))
		}
	}
	_ = tw.Flush()
	_ = zw.Close()
	return buf.Bytes()
}

func TestLoadRefuses(t *testing.T) {
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	many := make([]tar.Header, maxArchiveEntries+1)
	for i := range many {
		many[i] = tar.Header{Name: "cmd/x", Typeflag: tar.TypeDir}
	}
	big := make([]tar.Header, 70)
	for i := range big {
		big[i] = tar.Header{Name: "cmd/" + strings.Repeat("y", i+1), Size: 1 << 20}
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"path outside":          {[]tar.Header{{Name: "root/../../etc/passwd"}}, `"root/../../etc/passwd"`},
		"absolute path":         {[]tar.Header{{Name: "/etc/passwd"}}, `"/etc/passwd"`},
		"unknown part":          {[]tar.Header{{Name: "bin/sh"}}, `"bin/sh"`},
		"absolute link":         {[]tar.Header{link("root/sys/a", "/etc")}, `"root/sys/a"`},
		"link outside":          {[]tar.Header{link("root/sys/a", "../../etc")}, `"root/sys/a"`},
		"link in cmd":           {[]tar.Header{link("cmd/a", "b")}, `"cmd/a"`},
		"loop of links":         {[]tar.Header{link("root/sys/a", "b"), link("root/sys/b", "a")}, "circle"},
		"link to itself":        {[]tar.Header{link("root/sys/a", "a")}, "circle"},
		"link below itself":     {[]tar.Header{link("root/sys/a", "a/b")}, "circle"},
		"twice":                 {[]tar.Header{{Name: "cmd/a"}, {Name: "cmd/a"}}, `"cmd/a": it is there twice`},
		"a 1 GB line":           {[]tar.Header{{Name: "cmd/dmesg.txt", Size: 1 << 30}}, `"cmd/dmesg.txt": 1073741824 bytes`},
		"device":                {[]tar.Header{{Name: "root/dev/sda", Typeflag: tar.TypeBlock}}, `"root/dev/sda"`},
		"hard link":             {[]tar.Header{{Name: "root/a", Linkname: "/etc/shadow", Typeflag: tar.TypeLink}}, `"root/a"`},
		"too many entries":      {many, "entries"},
		"bomb":                  {big, "more than 67108864 bytes together"},
		"control character":     {[]tar.Header{{Name: "cmd/\x1b[2J"}}, "not clean"},
		"file where root stood": {[]tar.Header{{Name: "root"}}, `"root"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(bytes.NewReader(hostile(t, c.headers...)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	for name, raw := range map[string][]byte{"empty": nil, "not gzip": []byte("hello"), "cut": hostile(t, tar.Header{Name: "cmd/a", Size: 4})[:60]} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(bytes.NewReader(raw)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	var buf bytes.Buffer
	if err := Save(&buf, archived()); err != nil {
		f.Fatal(err)
	}
	zr, _ := gzip.NewReader(&buf)
	plain, _ := io.ReadAll(zr)
	f.Add(plain)
	f.Fuzz(func(t *testing.T, data []byte) {
		var z bytes.Buffer
		zw := gzip.NewWriter(&z)
		_, _ = zw.Write(data)
		_ = zw.Close()
		s, err := Load(&z)
		if err != nil {
			return
		}
		for p := range s.Files {
			if !safePath(p) {
				t.Fatalf("unsafe path %q", p)
			}
		}
	})
}
