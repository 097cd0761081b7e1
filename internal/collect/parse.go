package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"sort"
	"strconv"
	"strings"
	"time"

	"preflight/internal/facts"
)

// ErrNoFrames means that the stream ended before the collector said anything: the shell did not run it.
var ErrNoFrames = errors.New("the collector did not start on the host")

// covers lists, for the groups that read many files under one deadline, what a reader asks for by name. When a group
// does not finish, these names carry the reason.
var covers = map[string][]string{
	"collector/proc":     {"proc/cpuinfo", "proc/meminfo", "proc/modules", "proc/iomem"},
	"collector/pci":      {"sys/bus/pci/devices"},
	"collector/config":   {"sys/bus/pci/devices/config"},
	"collector/sys":      {"sys/class/dmi/id", "sys/block", "sys/class/iommu", "cmd/memory-blocks.txt"},
	"collector/rest":     {"sys/firmware/dmi/tables/DMI", "cmd/power-cap-units.txt", "cmd/uname.txt", "cmd/df-shm.txt", "cmd/ulimit.txt"},
	"collector/software": {"proc/self/limits", "cmd/ports.txt", "sys/class/infiniband", "cmd/torch-files.txt", "cmd/engines.txt"},
}

// relational groups mean something only as a whole: half of the devices is not fewer devices, and a card whose driver
// was not read is not a card without one. When such a group does not finish, nothing of it is kept.
var relational = map[string]bool{"collector/pci": true, "collector/sys": true}

// Parse reads the framed stream of one run. It reads as it arrives and holds at most [MaxStream] bytes.
//
// A stream that ends early gives a snapshot whose Manifest.Cut says after what, with the item that was cut marked as
// truncated; so does a host that sends more than it may. An error means that nothing can be used: no frame at all,
// or a malformed one; it names the byte and the item. Serials are not yet blanked: see [Collect].
func Parse(r io.Reader, req Request) (*facts.Snapshot, error) {
	p := newParser(req)
	fr := newFrameReader(r, req.Nonce)
	began := false
	for {
		f, err := fr.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && began && !errors.As(err, new(*frameError)) {
			p.last = "" // the frame that broke was not taken in
			p.cut(fr.after(), err)
			return p.finish(), nil
		}
		if err != nil {
			return nil, err
		}
		if f.kind == "begin" {
			began = true
		} else if !began {
			return nil, &frameError{f, "the first frame must be `begin`"}
		}
		if err := p.frame(f); err != nil {
			return nil, err
		}
		if f.kind == "cmd" && req.Tell != nil {
			req.Tell(strings.TrimPrefix(f.args[0], "cmd/"))
		}
	}
	if !began {
		return nil, ErrNoFrames
	}
	if !p.ended {
		p.cut(fr.after(), nil)
	}
	return p.finish(), nil
}

// frameError is a frame that the collector cannot have written.
type frameError struct {
	f   frame
	why string
}

func (e *frameError) Error() string {
	return fmt.Sprintf("malformed frame %q at byte %d: %s", clip(e.f.kind+" "+strings.Join(e.f.args, " "), 80), e.f.offset, e.why)
}

func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return s
}

type parser struct {
	snap   *facts.Snapshot
	items  map[string]int  // name -> index in Manifest.Items
	group  string          // the group whose inner frames come now
	broken facts.Status    // how that group ended, when not well
	before *facts.Snapshot // what there was before that group, when it is relational
	last   string          // the file or text that the previous frame ended with
	ended  bool
}

func newParser(req Request) *parser {
	return &parser{
		snap: &facts.Snapshot{
			Manifest: facts.Manifest{Schema: facts.SnapshotSchema, Tool: req.Tool, At: req.At.UTC().Truncate(time.Second), Rig: req.Rig, UID: -1, Root: "none", Serials: req.Serials},
			Files:    map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{},
		},
		items: map[string]int{},
	}
}

// item records how reading something ended. A worse status stays.
func (p *parser) item(it facts.Item) {
	if i, ok := p.items[it.Name]; ok {
		if p.snap.Manifest.Items[i].Status == facts.StatusOK || p.snap.Manifest.Items[i].Status == facts.StatusAbsent {
			p.snap.Manifest.Items[i] = it
		}
		return
	}
	p.items[it.Name] = len(p.snap.Manifest.Items)
	p.snap.Manifest.Items = append(p.snap.Manifest.Items, it)
}

// frame takes one frame in; kinds are those of collector.sh.
func (p *parser) frame(f frame) error {
	kinds := map[string]struct {
		args int
		take func(frame) error
	}{
		"begin": {2, p.begin}, "cmd": {5, p.command}, "err": {1, p.stderr}, "files": {2, p.files}, "links": {1, p.links},
		"dir": {1, p.dir}, "item": {2, p.status}, "text": {1, p.text}, "end": {0, p.end}, "fatal": {0, p.fatal},
	}
	k, ok := kinds[f.kind]
	if !ok {
		return &frameError{f, "unknown kind"}
	}
	if len(f.args) < k.args {
		return &frameError{f, fmt.Sprintf("%d arguments, %d are needed", len(f.args), k.args)}
	}
	if f.kind == "cmd" || f.kind == "err" || f.kind == "end" {
		p.closeGroup()
	}
	if len(p.snap.Files)+len(p.snap.Links) > maxFiles {
		return &frameError{f, fmt.Sprintf("more than %d files", maxFiles)}
	}
	return k.take(f)
}

func (p *parser) begin(f frame) error {
	if f.args[0] != "1" {
		return &frameError{f, "unknown version of the stream"}
	}
	if uid, err := strconv.Atoi(f.args[1]); err == nil {
		p.snap.Manifest.UID = uid
	}
	if p.snap.Manifest.UID == 0 {
		p.snap.Manifest.Root = "root"
	}
	return nil
}

func (p *parser) fatal(f frame) error {
	return fmt.Errorf("the collector gave up: %s", clip(strings.Join(f.args, " "), 200))
}

func (p *parser) end(frame) error {
	p.ended = true
	return nil
}

// command takes the record and the output of one command; a group ("collector/…") only opens.
func (p *parser) command(f frame) error {
	name := f.args[0]
	if !cleanPath(name) {
		return &frameError{f, "unusable name"}
	}
	var n [3]int64
	for i, a := range []string{f.args[2], f.args[3], f.args[4]} {
		var err error
		if n[i], err = strconv.ParseInt(a, 10, 64); err != nil {
			return &frameError{f, "a number was expected, not " + strconv.Quote(clip(a, 20))}
		}
	}
	limit := n[2]
	it := facts.Item{Name: name, Status: facts.Status(f.args[1]), RC: int(n[0]), Millis: n[1], Bytes: int64(len(f.payload)), Detail: clip(strings.Join(f.args[5:], " "), 200)}
	switch {
	case it.Status == facts.StatusTimeout || it.Status == facts.StatusAbsent:
	case it.Status != facts.StatusOK:
		return &frameError{f, "unknown status"}
	case it.RC == exitFileSize || it.Bytes >= limit:
		it.Status = facts.StatusTruncated
	case it.RC != 0:
		it.Status = facts.StatusError
	case name == "cmd/journal.txt" && bytes.HasPrefix(bytes.TrimSpace(f.payload), []byte("-- No entries --")):
		it.Status = facts.StatusDenied // what journalctl answers to a user who may not see the kernel's messages
	}
	p.group, p.broken, p.last, p.before = "", "", "", nil
	if strings.HasPrefix(name, "collector/") {
		p.group = name
		if relational[name] {
			p.before = &facts.Snapshot{Files: maps.Clone(p.snap.Files), Links: maps.Clone(p.snap.Links), Dirs: maps.Clone(p.snap.Dirs)}
		}
		if it.Status == facts.StatusError {
			it.Status = facts.StatusOK // exit status of the last grep: says nothing
		}
		if it.Status != facts.StatusOK {
			p.broken = it.Status
		}
	} else if it.Status != facts.StatusAbsent && it.Status != facts.StatusDenied && (it.Status != facts.StatusTimeout || len(f.payload) > 0) {
		p.put(name, f.payload)
	}
	p.item(it)
	return nil
}

// exitFileSize is the exit status of a child that SIGXFSZ ended: it wrote past its limit.
const exitFileSize = 128 + 25

// closeGroup ends a group: one that did not finish leaves the reason for what is missing, and a relational one nothing
// else.
func (p *parser) closeGroup() {
	defer func() { p.group, p.broken, p.before = "", "", nil }()
	if p.group == "" || p.broken == "" {
		return
	}
	if p.last != "" {
		p.item(facts.Item{Name: p.last, Status: facts.StatusTruncated, Bytes: int64(len(p.snap.Files[p.last])), Detail: "cut when " + p.group + " was"})
	}
	if p.before != nil {
		p.snap.Files, p.snap.Links, p.snap.Dirs = p.before.Files, p.before.Links, p.before.Dirs
	}
	for _, name := range covers[p.group] {
		if _, known := p.items[name]; p.before != nil || !known && !p.has(name) {
			p.item(facts.Item{Name: name, Status: p.broken, Detail: p.group + " did not finish"})
		}
	}
}

func (p *parser) has(name string) bool {
	_, file := p.snap.Files[name]
	return file
}

func (p *parser) put(name string, content []byte) {
	p.snap.Files[name] = bytes.Clone(content)
	p.last = name
}

// stderr keeps a command's standard error, and takes from a group's the files that could not be read.
func (p *parser) stderr(f frame) error {
	name := f.args[0]
	if !cleanPath(name) {
		return &frameError{f, "unusable name"}
	}
	if strings.HasPrefix(name, "collector/") {
		p.groupErrors(string(f.payload))
		return nil
	}
	p.snap.Files[name+".err"] = bytes.Clone(f.payload)
	i, ok := p.items[name]
	if !ok {
		return &frameError{f, "standard error of a command that was not run"}
	}
	it := &p.snap.Manifest.Items[i]
	it.Detail = firstLine(string(f.payload))
	if it.Status == facts.StatusOK && name == "cmd/dmesg.txt" && it.Bytes == 0 {
		it.Status = facts.StatusError
	}
	if it.Status == facts.StatusError && deniedText(string(f.payload)) {
		it.Status = facts.StatusDenied
	}
	return nil
}

func deniedText(s string) bool {
	return strings.Contains(s, "Permission denied") || strings.Contains(s, "Operation not permitted")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip(line, 200)
}

// groupErrors reads what `head` said: lines "head: cannot open 'PATH' for reading: Permission denied" after a line
// "@base BASE". Only refusals are worth a record; that a device has no such attribute is normal.
func (p *parser) groupErrors(text string) {
	base := ""
	for _, line := range strings.Split(text, "\n") {
		if b, ok := strings.CutPrefix(line, "@base "); ok {
			base = b
			continue
		}
		if !deniedText(line) {
			continue
		}
		for _, word := range strings.Fields(line) {
			path := join(base, strings.Trim(word, "':‘’`,"))
			if strings.Contains(word, "/") && cleanPath(path) {
				p.item(facts.Item{Name: path, Status: facts.StatusDenied, Detail: clip(line, 200)})
				break
			}
		}
	}
}

// status records a file that was not read.
func (p *parser) status(f frame) error {
	st, name := facts.Status(f.args[0]), f.args[1]
	switch st {
	case facts.StatusOK, facts.StatusAbsent, facts.StatusDenied:
	default:
		return &frameError{f, "unknown status"}
	}
	if !cleanPath(name) {
		return &frameError{f, "unusable path"}
	}
	p.item(facts.Item{Name: name, Status: st})
	p.last = ""
	return nil
}

func (p *parser) text(f frame) error {
	if !cleanPath(f.args[0]) {
		return &frameError{f, "unusable path"}
	}
	p.put(f.args[0], f.payload)
	p.item(facts.Item{Name: f.args[0], Status: facts.StatusOK, Bytes: int64(len(f.payload))})
	return nil
}

// cut records that the stream ended early.
func (p *parser) cut(after string, err error) {
	p.snap.Manifest.Cut = "the stream ended after " + after
	if err != nil {
		p.snap.Manifest.Cut += ": " + err.Error()
	}
	if p.group != "" && p.broken == "" {
		p.broken = facts.StatusError
	}
	p.closeGroup()
	if p.last == "" {
		return
	}
	if i, ok := p.items[p.last]; ok {
		p.snap.Manifest.Items[i].Status = facts.StatusTruncated
		return
	}
	p.item(facts.Item{Name: p.last, Status: facts.StatusTruncated, Bytes: int64(len(p.snap.Files[p.last])), Detail: "the stream ended here"})
}

// finish puts the items in a stable order.
func (p *parser) finish() *facts.Snapshot {
	m := &p.snap.Manifest
	if name, ok := p.snap.Files["proc/sys/kernel/hostname"]; ok {
		m.Hostname = strings.TrimSpace(string(name))
	}
	if m.UID == 0 {
		for i := range m.Items {
			m.Items[i].Via = m.Root
		}
	} else {
		for i := range m.Items {
			m.Items[i].Via = "user"
		}
	}
	sort.SliceStable(m.Items, func(i, j int) bool { return m.Items[i].Name < m.Items[j].Name })
	return p.snap
}
