package accept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// RecordSchema names the layout of accept.json.
const RecordSchema = "preflight/accept/v1"

// Record is what a bundle says of itself.
type Record struct {
	Schema    string            `json:"schema"`
	Tool      string            `json:"tool"` // version of preflight
	At        time.Time         `json:"at"`
	Verdict   string            `json:"verdict"`   // accepted, refused, undecided
	Exit      int               `json:"exit"`      // exit code of the run
	Inventory string            `json:"inventory"` // path in the bundle: a file, or a folder
	Vars      map[string]string `json:"vars"`      // values of the inventory's variables
	Profile   string            `json:"profile"`   // chosen with --profile; "" means that of each rig
	Serials   bool              `json:"serials"`   // serial numbers, UUIDs and MAC addresses were kept
	Answers   Answers           `json:"answers"`
}

// Verdicts of a hand-over, from the exit code of its run.
const (
	Accepted  = "accepted"
	Refused   = "refused"   // a fail, or hands and eyes said no
	Undecided = "undecided" // something required is unknown, or a rig was not reached
)

// Marshal writes accept.json.
func (r Record) Marshal(w io.Writer) error {
	r.Schema = RecordSchema
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// ReadRecord reads accept.json of a bundle.
func ReadRecord(bundle fs.FS) (Record, error) {
	var r Record
	raw, err := ReadFile(bundle, RecordName, maxManifest)
	if err != nil {
		return r, err
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&r); err != nil {
		return r, fmt.Errorf("%s: %w", RecordName, err)
	}
	if r.Schema != RecordSchema {
		return r, fmt.Errorf("%s has the layout %q; this version reads %s", RecordName, r.Schema, RecordSchema)
	}
	return r, nil
}

// ReadFile reads one file of a bundle, up to a limit in bytes.
func ReadFile(bundle fs.FS, name string, limit int64) ([]byte, error) {
	f, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return raw, err
}
