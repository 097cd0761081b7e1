package facts

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// dumpNames maps a dump's usual file name to its place in a snapshot.
var dumpNames = map[string]string{
	"nvidia-smi-q.xml":    "cmd/nvidia-smi-q.xml",
	"topo-m.txt":          "cmd/topo-m.txt",
	"p2p-r.txt":           "cmd/p2p-r.txt",
	"p2p-w.txt":           "cmd/p2p-w.txt",
	"p2p-p.txt":           "cmd/p2p-p.txt",
	"dmesg.txt":           "cmd/dmesg.txt",
	"kernel-log.txt":      "cmd/journal.txt",
	"cpuinfo.txt":         "proc/cpuinfo",
	"meminfo.txt":         "proc/meminfo",
	"cmdline.txt":         "proc/cmdline",
	"iomem.txt":           "proc/iomem",
	"nvidia-params.txt":   "proc/driver/nvidia/params",
	"all_reduce_perf.txt": ProbeTextPath,
	"nccl-debug.txt":      ProbeDebugPath,
}

// dumpLimit bounds one dump file, bytes.
const dumpLimit = 16 << 20

// FromDumps makes a snapshot of a directory of single dumps, known by their names. Files of other names are
// returned, so that the caller can say that they were not read.
func FromDumps(dir string) (s *Snapshot, unread []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	s = &Snapshot{
		Manifest: Manifest{Schema: SnapshotSchema, Tool: "dumps", Root: "none", UID: -1},
		Files:    map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{},
	}
	for _, e := range entries {
		path, ok := dumpNames[e.Name()]
		if !ok || !e.Type().IsRegular() {
			unread = append(unread, e.Name())
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, nil, err
		}
		if info.Size() > dumpLimit {
			return nil, nil, fmt.Errorf("%s: %d bytes, more than the %d that a dump may have", filepath.Join(dir, e.Name()), info.Size(), dumpLimit)
		}
		if s.Files[path], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, nil, err
		}
		if s.Manifest.At.Before(info.ModTime()) {
			s.Manifest.At = info.ModTime().UTC().Truncate(time.Second)
		}
	}
	sort.Strings(unread)
	if len(s.Files) == 0 {
		return nil, unread, fmt.Errorf("%s: no file that this version reads; known names are nvidia-smi-q.xml, topo-m.txt, p2p-r.txt, dmesg.txt, cpuinfo.txt, meminfo.txt, iomem.txt, all_reduce_perf.txt", dir)
	}
	return s, unread, nil
}
