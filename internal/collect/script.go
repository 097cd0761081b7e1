package collect

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"strings"
	"time"
)

//go:embed collector.sh
var collectorScript []byte

// Limits that the controller holds whatever the host does.
const (
	// MaxStream is the most that one host may send, bytes.
	MaxStream = 16 << 20
	// maxFrame is the most that one frame may hold, bytes: the script's own largest limit, and some room.
	maxFrame = 8 << 20
	// maxPreamble bounds what a login may print before the first frame, bytes.
	maxPreamble = 256 << 10
	// maxFiles bounds the number of files of one snapshot.
	maxFiles = 50_000
	// DefaultDeadline bounds a whole run: the sum of the deadlines that a sick host can use up in turn.
	DefaultDeadline = 6 * time.Minute
)

// Request says how one host is to be read.
type Request struct {
	Nonce     string        // marks frames; NewNonce makes one. Empty: Collect draws one
	Serials   bool          // keep serials, UUIDs and MACs
	Tool      string        // version of preflight, for the manifest
	Rig       string        // name of the declared rig, for the manifest; may be empty
	SlurmNode string        // the rig's name in Slurm; empty: its host name
	Python    string        // interpreter that the rig names; empty: the usual places are searched for torch
	At        time.Time     // time of the run, for the manifest; zero: Collect takes the present
	Deadline  time.Duration // of the whole run; 0: DefaultDeadline

	Tell func(item string) // hears the name of each item as it arrives; nil for nobody
}

// NewNonce draws the marker of one run: 128 random bits, in hex.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// Script is the collector as it is fed to `/bin/sh -s`.
func Script(req Request) []byte {
	s := bytes.Replace(collectorScript, []byte("@NONCE@"), []byte(req.Nonce), 1)
	s = bytes.Replace(s, []byte("@SLURM_NODE@"), []byte(quote(req.SlurmNode)), 1)
	return bytes.Replace(s, []byte("@PYTHON@"), []byte(quote(req.Python)), 1)
}

// quote makes one word of a shell of any text; control characters have no place in the name of a program.
func quote(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
