package facts

import "time"

// SnapshotSchema names the layout of a saved snapshot.
const SnapshotSchema = "preflight/snapshot/v1"

// Status says how the reading of one item ended.
type Status string

// The ways in which reading an item can end.
const (
	StatusOK        Status = "ok"
	StatusAbsent    Status = "absent"    // no such file, no such command
	StatusDenied    Status = "denied"    // needs root
	StatusTimeout   Status = "timeout"   // ran past its own deadline
	StatusTruncated Status = "truncated" // cut at its size limit: must never be parsed as whole
	StatusError     Status = "error"     // anything else; Detail says what
)

// Item is the record of one thing that the collector was to read.
type Item struct {
	Name   string `json:"name"` // path without leading slash, or cmd/NAME
	Status Status `json:"status"`
	RC     int    `json:"rc"`               // exit status of a command
	Bytes  int64  `json:"bytes"`            // bytes really read
	Millis int64  `json:"ms"`               // wall time
	Via    string `json:"via,omitempty"`    // "user", "root", "sudo"
	Detail string `json:"detail,omitempty"` // first line of stderr, or the reason
}

// Manifest describes how, when and as whom a snapshot was taken.
type Manifest struct {
	Schema   string    `json:"schema"`
	Tool     string    `json:"tool"` // version of preflight
	At       time.Time `json:"at"`
	Rig      string    `json:"rig,omitempty"`
	Hostname string    `json:"hostname,omitempty"`
	UID      int       `json:"uid"`
	Root     string    `json:"root"` // "root", "sudo" or "none": with which rights the root-only items were read
	RootWhy  string    `json:"root_why,omitempty"`
	Millis   int64     `json:"ms"`
	Serials  bool      `json:"serials"`       // serials, UUIDs and MACs kept
	Cut      string    `json:"cut,omitempty"` // why the whole stream ended early; "" when complete
	Items    []Item    `json:"items"`
}

// Snapshot is the raw evidence of one host at one time; everything after it is pure.
//
// Paths have no leading slash. Host files keep their own path ("sys/bus/pci/devices/0000:01:00.0/resource"
// is in truth stored below sys/devices/pci…; see Links). Command output is "cmd/NAME", its standard error
// "cmd/NAME.err". Results of probes are "probe/NAME.json".
type Snapshot struct {
	Manifest Manifest
	Files    map[string][]byte
	Links    map[string]string   // symlink path -> target, as readlink prints it
	Dirs     map[string][]string // directory path -> sorted names, for directories whose listing is itself a fact
}

// Read returns a file's content if it was read whole.
func (s *Snapshot) Read(path string) ([]byte, bool) {
	b, ok := s.Files[path]
	if !ok {
		return nil, false
	}
	if it, found := s.Item(path); found && it.Status == StatusTruncated {
		return nil, false
	}
	return b, true
}

// Item returns the collector's record about a path.
func (s *Snapshot) Item(name string) (Item, bool) {
	for _, it := range s.Manifest.Items {
		if it.Name == name {
			return it, true
		}
	}
	return Item{}, false
}
