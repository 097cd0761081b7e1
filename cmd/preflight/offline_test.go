package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
)

const someLspci = "00:00.0 Host bridge [0600]: AMD [1022:1480]\n41:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [10de:2684] (rev a1)\n"

// take reads inputs as --from does.
func take(stdin io.Reader, paths ...string) ([]saved, error) {
	in := &inputs{loose: saved{dumps: facts.NewDumps()}}
	for _, p := range paths {
		if err := in.path(&environment{stdin: stdin}, p); err != nil {
			return nil, err
		}
	}
	return in.result()
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// endless repeats its bytes for ever.
type endless []byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e[i%len(e)]
	}
	return len(p), nil
}

func TestBadInputIsRefusedQuickly(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, raw []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	huge := write("huge.txt", nil)
	if err := os.Truncate(huge, 10<<30); err != nil {
		t.Skip("no sparse files here:", err)
	}
	rows := map[string]struct {
		stdin io.Reader
		path  string
		says  string
	}{
		"endless text":        {endless("hello "), "-", "larger than"},
		"endless zeroes":      {endless{0}, "-", "binary"},
		"a huge file":         {nil, huge, "MiB, more than"},
		"an archive cut":      {nil, write("a.tar.gz", zipped(t, someLspci)[:12]), "a.tar.gz"},
		"a zip":               {nil, write("a.zip", []byte("PK\x03\x04\x00\x00")), "zip archive"},
		"a device":            {nil, os.DevNull, "neither a file nor a directory"},
		"nothing on the pipe": {strings.NewReader(""), "-", "empty"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := take(row.stdin, row.path)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestInputsBecomeMachines(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, raw []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	report := func(name string) string {
		return file(name, zipped(t, "____________________________________________\n\nStart of NVIDIA bug report log file.\n\n____________________________________________\n\n/sbin/lspci -nn\n\n"+
			someLspci+"\n____________________________________________\n\nEnd of NVIDIA bug report log file.\n"))
	}
	one, two := report("one.log.gz"), report("two.log.gz")
	lspci, mem := file("lspci.txt.gz", zipped(t, someLspci)), file("meminfo.txt", []byte("MemTotal:       32933475 kB\n"))
	snapshot := &bytes.Buffer{}
	if err := facts.Save(snapshot, &facts.Snapshot{Manifest: facts.Manifest{Schema: facts.SnapshotSchema, Rig: "node-a"}}); err != nil {
		t.Fatal(err)
	}
	snap := file("node-a.tar.gz", snapshot.Bytes())
	rows := map[string]struct {
		paths []string
		names string
		err   string
	}{
		"two files are one machine":      {[]string{lspci, mem}, "lspci.txt", ""},
		"two bug reports are two":        {[]string{one, two}, "one two", ""},
		"a snapshot and a report":        {[]string{snap, one}, "node-a one", ""},
		"a file belongs to its report":   {[]string{one, mem}, "one", ""},
		"a file beside two has no owner": {[]string{one, two, mem}, "", "which machine"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			machines, err := take(nil, row.paths...)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, m := range machines {
				names = append(names, inputName(m.name, m.dumps.Snapshot()))
			}
			if got := strings.Join(names, " "); got != row.names && !(row.names == "lspci.txt" && got == "lspci") {
				t.Errorf("machines: %s", got)
			}
		})
	}
	machines, err := take(nil, one, mem)
	if err != nil {
		t.Fatal(err)
	}
	if h := facts.FromSnapshot(machines[0].dumps.Snapshot()); len(h.Cards) != 1 || !h.Memory.TotalMiB.Known() {
		t.Errorf("%d cards, memory %v", len(h.Cards), h.Memory.TotalMiB)
	}
	if _, err := take(nil, filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
