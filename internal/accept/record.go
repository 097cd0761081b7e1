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
	Verdict   string            `json:"verdict"`        // accepted, refused, undecided
	Exit      int               `json:"exit"`           // exit code of the run
	Inventory string            `json:"inventory"`      // path in the bundle: a file, or a folder; "" for none
	From      string            `json:"from,omitempty"` // of a kept run: where the inventory was, absolute
	Rigs      []string          `json:"rigs,omitempty"` // of a kept run: the names
	Vars      map[string]string `json:"vars"`           // values of the inventory's variables
	Profile   string            `json:"profile"`        // chosen with --profile; "" means that of each rig
	Serials   bool              `json:"serials"`        // serial numbers, UUIDs and MAC addresses were kept
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

// ReadRecord reads the record of a bundle (RecordName) or of a run (RunName).
func ReadRecord(bundle fs.FS, name string) (Record, error) {
	var r Record
	raw, err := ReadFile(bundle, name, maxManifest)
	if err != nil {
		return r, err
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&r); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	if r.Schema != RecordSchema {
		return r, fmt.Errorf("%s has the layout %q; this version reads %s", name, r.Schema, RecordSchema)
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
