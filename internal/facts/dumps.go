package facts

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DumpLimit bounds one dump, bytes. Bug reports and snapshots have limits of their own.
const DumpLimit = 16 << 20

// dumpsLimit bounds all dumps of one machine together, and their number.
const (
	dumpsLimit = 256 << 20
	dumpsCount = 999
)

// unreadLimit bounds what is told of inputs that were not read.
const unreadLimit = 200

// ErrNotADump is the error of a text or file that is none of the dumps that are read.
var ErrNotADump = errors.New("not a dump that preflight reads")

// dumpsTool is the tool of a snapshot that was made of dumps.
const dumpsTool = "dumps"

// Dumps collects texts of one machine into a snapshot.
type Dumps struct {
	snap   *Snapshot
	unread []string
	count  int
	total  int
}

// NewDumps begins a machine of which nothing is known.
func NewDumps() *Dumps { return DumpsOver(nil) }

// DumpsOver adds dumps to a snapshot: what the snapshot has already stays the better source.
func DumpsOver(s *Snapshot) *Dumps {
	if s == nil {
		s = &Snapshot{
			Manifest: Manifest{Schema: SnapshotSchema, Tool: dumpsTool, Root: "none", UID: -1},
			Files:    map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{},
		}
	}
	return &Dumps{snap: s}
}

// Seen notes when an input was written; the latest counts.
func (d *Dumps) Seen(at time.Time) {
	if d.snap.Manifest.At.Before(at) {
		d.snap.Manifest.At = at.UTC().Truncate(time.Second)
	}
}

// Skip notes an input that is not read, with the reason.
func (d *Dumps) Skip(name, why string) {
	if said := fmt.Sprintf("%s (%s)", name, why); !slices.Contains(d.unread, said) && len(d.unread) < unreadLimit {
		d.unread = append(d.unread, said)
	}
}

// Unread are the inputs that were not read, each with its reason, in the order in which they came.
func (d *Dumps) Unread() []string { return d.unread }

// Empty says whether nothing was recognised.
func (d *Dumps) Empty() bool { return len(d.snap.Files) == 0 && len(d.unread) == 0 }

// Take adds what another collection holds, behind what is here already.
func (d *Dumps) Take(other *Dumps) {
	for p, raw := range other.snap.Files {
		if _, taken := d.snap.Files[p]; taken && strings.HasPrefix(p, dumpDir) {
			p += "+"
		} else if taken {
			continue
		}
		d.snap.Files[p] = raw
	}
	d.unread = append(d.unread, other.unread...)
}

// Snapshot is what was collected.
func (d *Dumps) Snapshot() *Snapshot { return d.snap }

// Add takes one file or paste. Its content says what it is; its name helps where the content does not. The error wraps
// ErrNotADump and says what the input looks like.
func (d *Dumps) Add(name string, raw []byte) error {
	if len(raw) > DumpLimit {
		return fmt.Errorf("%w: %s is larger than %d MiB", ErrNotADump, name, DumpLimit>>20)
	}
	if what := LooksBinary(raw); what != "" {
		return fmt.Errorf("%w: %s looks like %s", ErrNotADump, name, what)
	}
	base := filepath.Base(strings.ReplaceAll(name, `\`, "/"))
	expected, _ := kindByName(base)
	segments := splitDumps(cleanText(raw), expected.kind)
	if len(segments) == 0 || len(segments) == 1 && segments[0].kind == expected.kind && expected.kind != "" && foreign(raw) != "" {
		return fmt.Errorf("%w: %s looks like %s", ErrNotADump, name, looksText(raw))
	}
	for _, s := range segments {
		d.place(base, s)
	}
	return nil
}

// place puts one dump where its reader looks for it.
func (d *Dumps) place(name string, s segment) {
	t := kindOf(s.kind)
	text := []byte(s.text())
	if t.unread != "" {
		d.Skip(name, t.unread)
		return
	}
	if d.total += len(text); d.total > dumpsLimit || d.count >= dumpsCount {
		d.Skip(name, "more than is read of one machine")
		return
	}
	d.count++
	for _, at := range hostPlaces(t, name, s.command) {
		if _, taken := d.snap.Files[at]; !taken {
			d.snap.Files[at] = text
			if s.kind == dumpNCCLTests { // NCCL's own lines stand between the rows
				d.place(name, segment{kind: dumpNCCLDebug, lines: s.lines})
			}
			return
		}
	}
	if t.place != "" {
		if s.kind != dumpNCCLDebug && s.kind != dumpNCCLTests {
			d.Skip(name, "another "+string(t.kind)+" is in the input, and was read")
		}
		return
	}
	d.snap.Files[fmt.Sprintf("%s%s/%03d-%s", dumpDir, t.kind, d.count, safeName(name))] = text
}

// hostPlaces are the paths of a snapshot where a kind may lie, best first.
func hostPlaces(t dumpType, name, command string) []string {
	switch t.kind {
	case dumpLog:
		return []string{"cmd/dmesg.txt", "cmd/journal.txt"}
	case dumpP2P:
		return []string{"cmd/p2p-" + p2pOp(name, command) + ".txt"}
	}
	if t.place == "" {
		return nil
	}
	return []string{t.place}
}

// p2pOp is which capability a matrix shows: the output does not say it, only the command or the file's name.
func p2pOp(name, command string) string {
	for _, m := range [][]string{rx(`-p2p[ =]?([rwnap])\b`).FindStringSubmatch(command), rx(`p2p[-_]([rwnap])\b`).FindStringSubmatch(strings.ToLower(name))} {
		if m != nil {
			return m[1]
		}
	}
	return "r"
}

// safeName is a file's name as a part of a path in a snapshot.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\\' || r == '/' || r == ':' {
			return '_'
		}
		return r
	}, path.Base(name))
	if len(name) > 80 {
		name = name[:80]
	}
	return strings.ToValidUTF8(strings.Trim(name, "."), "_")
}
