package facts

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"time"
)

// Limits of a saved snapshot; a loader cannot trust its input.
const (
	maxArchiveEntries = 65_536
	maxArchiveFile    = 16 << 20 // bytes of one entry
	maxArchiveTotal   = 64 << 20 // bytes of all entries
	maxArchiveStream  = maxArchiveTotal + maxArchiveEntries*2048
)

// archiveManifest is manifest.json: the manifest, and what a tree of files cannot express.
type archiveManifest struct {
	Manifest
	Dirs  map[string][]string `json:"dirs,omitempty"`
	Links map[string]string   `json:"links,omitempty"` // links that point outside the tree, or where another already points
}

// linkDirs are the directories whose entries are links to the real device directories.
var linkDirs = []string{"sys/bus/pci/devices/", "sys/block/", "sys/class/net/"}

// isDeviceLink says whether a path is one of those entries itself.
func isDeviceLink(p string) bool {
	for _, d := range linkDirs {
		if rest, ok := strings.CutPrefix(p, d); ok && rest != "" && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Save writes a snapshot as .tar.gz: manifest.json, the host's files below root/ with their symlinks as on the host
// (a tree that ghw reads as its chroot), cmd/ and probe/. The same snapshot gives the same bytes.
func Save(w io.Writer, s *Snapshot) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestSpeed) // many hosts end at once, and a few kB matter less than the wait
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	a := &archiver{tw: tw, at: s.Manifest.At, used: map[string]bool{}, real: map[string]string{}}
	kept := map[string]string{} // links that stay out of the tree
	for _, link := range sortedKeys(s.Links) {
		target := s.Links[link]
		dest := joinLink(link, target)
		if !isDeviceLink(link) {
			continue
		}
		if strings.HasPrefix(target, "/") || !safePath(dest) || escapes(link, target) || a.used[dest] {
			kept[link] = target
			continue
		}
		a.used[dest], a.real[link] = true, dest
	}
	for _, link := range sortedKeys(s.Links) {
		if _, out := kept[link]; !out && !isDeviceLink(link) && (strings.HasPrefix(s.Links[link], "/") || escapes(a.place(link), s.Links[link])) {
			kept[link] = s.Links[link]
		}
	}
	m, err := json.MarshalIndent(archiveManifest{s.Manifest, s.Dirs, kept}, "", "  ")
	if err != nil {
		return err
	}
	if err := a.file("manifest.json", m); err != nil {
		return err
	}
	if err := a.tree(s, kept); err != nil {
		return err
	}
	return errors.Join(tw.Close(), zw.Close())
}

type archiver struct {
	tw   *tar.Writer
	at   time.Time
	used map[string]bool
	real map[string]string // device link -> real directory
}

// place is where a snapshot's path lies in the tree: below the real directory when it goes through a device link.
func (a *archiver) place(p string) string {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if real, ok := a.real[dir]; ok {
			return real + p[len(dir):]
		}
	}
	return p
}

func (a *archiver) tree(s *Snapshot, kept map[string]string) error {
	for _, link := range sortedKeys(s.Links) {
		if _, out := kept[link]; out {
			continue
		}
		at := a.place(link)
		if err := a.put(&tar.Header{Typeflag: tar.TypeSymlink, Name: "root/" + at, Linkname: s.Links[link], Mode: 0o777}, nil); err != nil {
			return err
		}
		// A driver's link must lead somewhere, or ghw does not see it.
		if dir := joinLink(at, s.Links[link]); path.Base(link) == "driver" && safePath(dir) && !a.used[dir] {
			a.used[dir] = true
			if err := a.put(&tar.Header{Typeflag: tar.TypeDir, Name: "root/" + dir + "/", Mode: 0o755}, nil); err != nil {
				return err
			}
		}
	}
	for _, p := range sortedKeys(s.Files) {
		name := p
		if !strings.HasPrefix(p, "cmd/") && !strings.HasPrefix(p, "probe/") {
			name = "root/" + a.place(p)
		}
		if err := a.file(name, s.Files[p]); err != nil {
			return err
		}
	}
	return nil
}

func (a *archiver) file(name string, content []byte) error {
	return a.put(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644}, content)
}

func (a *archiver) put(h *tar.Header, content []byte) error {
	h.ModTime, h.Format = a.at, tar.FormatPAX
	if h.ModTime.IsZero() {
		h.ModTime = time.Unix(0, 0)
	}
	if err := a.tw.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	_, err := a.tw.Write(content)
	return err
}

// Load reads what Save wrote. Its input may come from anyone: an entry that points outside, a loop of links, a
// duplicate, something that is neither file, directory nor link, or more than the limits allow is refused with an
// error that names the entry. Nothing is written to disk.
func Load(r io.Reader) (*Snapshot, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("not a snapshot (.tar.gz): %w", err)
	}
	return LoadTar(zr)
}

// LoadTar is Load after decompression.
func LoadTar(r io.Reader) (*Snapshot, error) {
	l := &loader{files: map[string][]byte{}, links: map[string]string{}, seen: map[string]bool{}}
	tr := tar.NewReader(&cappedStream{r: r, left: maxArchiveStream})
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot, after entry %q: %w", l.last, err)
		}
		if err := l.entry(h, tr); err != nil {
			return nil, fmt.Errorf("snapshot entry %q: %w", clipName(h.Name), err)
		}
	}
	return l.snapshot()
}

type loader struct {
	manifest *archiveManifest
	files    map[string][]byte
	links    map[string]string
	seen     map[string]bool
	last     string
	total    int64
	count    int
}

func (l *loader) entry(h *tar.Header, r io.Reader) error {
	l.last = clipName(h.Name)
	if l.count++; l.count > maxArchiveEntries {
		return fmt.Errorf("more than %d entries", maxArchiveEntries)
	}
	name := strings.TrimSuffix(h.Name, "/")
	if !safePath(name) {
		return errors.New("its path is absolute, leaves the archive, or is not clean")
	}
	top, rest, _ := strings.Cut(name, "/")
	switch {
	case h.Typeflag == tar.TypeDir:
		return nil
	case l.seen[name]:
		return errors.New("it is there twice")
	case top == "root" && rest == "", top != "root" && top != "cmd" && top != "probe" && name != "manifest.json":
		return errors.New("no such part of a snapshot: root/, cmd/, probe/ and manifest.json are known")
	}
	l.seen[name] = true
	key := name
	if top == "root" {
		key = rest
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return l.file(key, h.Size, r)
	case tar.TypeSymlink:
		if top != "root" || strings.HasPrefix(h.Linkname, "/") || h.Linkname == "" || escapes(rest, h.Linkname) {
			return fmt.Errorf("its link points outside the snapshot: %q", clipName(h.Linkname))
		}
		l.links[rest] = h.Linkname
		return nil
	}
	return fmt.Errorf("type %q: only files, directories and symlinks belong in a snapshot", h.Typeflag)
}

func (l *loader) file(key string, size int64, r io.Reader) error {
	if size > maxArchiveFile {
		return fmt.Errorf("%d bytes, more than the %d that an entry may have", size, maxArchiveFile)
	}
	if l.total += size; l.total > maxArchiveTotal {
		return fmt.Errorf("the entries hold more than %d bytes together", maxArchiveTotal)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if key != "manifest.json" {
		l.files[key] = content
		return nil
	}
	l.manifest = &archiveManifest{}
	if err := json.Unmarshal(content, l.manifest); err != nil {
		return err
	}
	if l.manifest.Schema != SnapshotSchema {
		return fmt.Errorf("schema %q: this version reads %q", clipName(l.manifest.Schema), SnapshotSchema)
	}
	return nil
}

// snapshot undoes the placing: what lies in a real device directory is known by its device link.
func (l *loader) snapshot() (*Snapshot, error) {
	if l.manifest == nil {
		return nil, errors.New("not a snapshot: manifest.json is missing")
	}
	if name := l.loop(); name != "" {
		return nil, fmt.Errorf("snapshot entry %q: its links go round in a circle", "root/"+clipName(name))
	}
	s := &Snapshot{Manifest: l.manifest.Manifest, Files: map[string][]byte{}, Links: map[string]string{}, Dirs: l.manifest.Dirs}
	if s.Dirs == nil {
		s.Dirs = map[string][]string{}
	}
	back := map[string]string{}
	for _, link := range sortedKeys(l.links) {
		if dest := joinLink(link, l.links[link]); isDeviceLink(link) && back[dest] == "" {
			back[dest] = link
		}
	}
	home := func(p string) string {
		for dir := path.Dir(p); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if link, ok := back[dir]; ok {
				return link + p[len(dir):]
			}
		}
		return p
	}
	for p, content := range l.files {
		s.Files[home(p)] = content
	}
	for p, target := range l.links {
		s.Links[home(p)] = target
	}
	for p, target := range l.manifest.Links {
		if safePath(p) {
			s.Links[p] = target
		}
	}
	return s, nil
}

// loop finds a link that leads back to itself.
func (l *loader) loop() string {
	const maxSteps = 16
	for _, start := range sortedKeys(l.links) {
		at := start
		for step := 0; ; step++ {
			target, ok := l.links[at]
			if !ok {
				break
			}
			next := joinLink(at, target)
			if step == maxSteps || next == start || strings.HasPrefix(next, at+"/") {
				return start
			}
			at = next
		}
	}
	return ""
}

// escapes says whether a relative link climbs above the root of the tree.
func escapes(link, target string) bool {
	return !safePath(path.Join(path.Dir(link), target))
}

// safePath says whether a path is relative, clean, and stays below its root.
func safePath(p string) bool {
	return p != "" && p != "." && len(p) <= 1024 && p[0] != '/' && path.Clean(p) == p && p != ".." && !strings.HasPrefix(p, "../") &&
		!strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

func clipName(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// cappedStream ends a bomb: what unpacks to more than a snapshot can be.
type cappedStream struct {
	r    io.Reader
	left int64
}

func (c *cappedStream) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("it unpacks to more than %d bytes", int64(maxArchiveStream))
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
