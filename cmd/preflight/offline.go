package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"preflight/internal/facts"
	"preflight/inventory"
)

// Limits of saved input, bytes.
const (
	inputLimit   = 256 << 20 // a file as it lies on disk
	unpackLimit  = 512 << 20 // what a compressed file may become
	sniffBytes   = 64 << 10  // what is looked at before a file is read
	entriesLimit = 4096      // files of a directory
)

// saved is one machine of the input.
type saved struct {
	name  string
	dumps *facts.Dumps
}

// inputs sorts what --from names into machines: a snapshot and a bug report are a machine each, everything else is one
// machine together.
type inputs struct {
	machines []saved
	loose    saved // dumps
	failures []error
	used     int // files that were recognised
}

// offline loads saved input. With an inventory, one machine is judged against the one rig that is declared or named, and
// several are found in it by their names.
func (t *targetFlags) offline(env *environment, rigs []*inventory.Rig) (*target, error) {
	in := &inputs{loose: saved{dumps: facts.NewDumps()}}
	for _, path := range t.from {
		if err := in.path(env, path); err != nil {
			return nil, usage("%w", err)
		}
	}
	machines, err := in.result()
	if err != nil {
		return nil, usage("%w", err)
	}
	out := &target{flags: t, source: "files"}
	for _, m := range machines {
		s := m.dumps.Snapshot()
		rig := &inventory.Rig{Name: inputName(m.name, s)}
		if len(rigs) > 0 {
			matching := rigs
			if len(machines) > 1 {
				matching = named(rigs, rig.Name)
			}
			if rig, err = declared(matching, m.name); err != nil {
				return nil, err
			}
			if rig == nil {
				return nil, usage("%s: the inventory declares no rig %q", m.name, inputName(m.name, s))
			}
		}
		var notes []string
		if u := m.dumps.Unread(); len(u) > 0 {
			notes = append(notes, "not read: "+strings.Join(u, "; "))
		}
		out.rigs, out.snapshots, out.notes = append(out.rigs, rig), append(out.snapshots, s), append(out.notes, notes)
	}
	return out, nil
}

// loadInput reads what is one machine: a snapshot, a bug report, a dump, or a directory of dumps.
func loadInput(env *environment, path string) (*facts.Snapshot, error) {
	in := &inputs{loose: saved{dumps: facts.NewDumps()}}
	if err := in.path(env, path); err != nil {
		return nil, err
	}
	machines, err := in.result()
	if err != nil {
		return nil, err
	}
	if len(machines) != 1 {
		return nil, fmt.Errorf("%s holds %d machines, and one is wanted", path, len(machines))
	}
	return machines[0].dumps.Snapshot(), nil
}

// join gives the loose dumps to the one snapshot or bug report; what that has already stays the better source.
func (in *inputs) join() []saved {
	in.machines[0].dumps.Take(in.loose.dumps)
	return in.machines
}

// result are the machines. Dumps beside one snapshot or bug report belong to it; beside several they belong to none.
func (in *inputs) result() ([]saved, error) {
	switch {
	case in.used == 0 && len(in.failures) == 1:
		return nil, fmt.Errorf("%w\n%s", in.failures[0], facts.WhatWorks)
	case in.used == 0:
		return nil, fmt.Errorf("nothing in the input could be read: %w\n%s", errors.Join(in.failures...), facts.WhatWorks)
	case in.loose.name == "":
		return in.machines, nil
	case len(in.machines) == 0:
		return []saved{in.loose}, nil
	case len(in.machines) == 1:
		return in.join(), nil
	}
	return nil, fmt.Errorf("%s: which machine is it of? The input has %d snapshots or bug reports; give it with one of them", in.loose.name, len(in.machines))
}

func named(rigs []*inventory.Rig, name string) []*inventory.Rig {
	for _, r := range rigs {
		if r.Name == name {
			return []*inventory.Rig{r}
		}
	}
	return nil
}

func inputName(path string, s *facts.Snapshot) string {
	if s.Manifest.Rig != "" {
		return s.Manifest.Rig
	}
	if path == "-" {
		return "stdin"
	}
	name := filepath.Base(path)
	for _, ext := range []string{".gz", ".tar", ".tgz", ".log", ".txt", ".xml"} {
		if cut := strings.TrimSuffix(name, ext); cut != "" {
			name = cut
		}
	}
	return name
}

// path takes one argument of --from. What the user named and cannot be read at all is an error; what cannot be
// recognised is kept until it is clear whether anything else was.
func (in *inputs) path(env *environment, path string) error {
	if path == "-" {
		return in.stream("-", "standard input", env.stdin)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return in.directory(path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory; pipe it: … | preflight check --from -", path)
	}
	return in.file(path, path)
}

// directory takes every file of one directory; those below it are another's business.
func (in *inputs) directory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s is empty\n%s", dir, facts.WhatWorks)
	}
	for i, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if i >= entriesLimit {
			return fmt.Errorf("%s holds more than %d files", dir, entriesLimit)
		}
		failed := len(in.failures)
		if err := in.file(filepath.Join(dir, e.Name()), dir); err != nil {
			in.failures = append(in.failures, err)
		}
		for _, err := range in.failures[failed:] {
			in.loose.dumps.Skip(e.Name(), reason(err))
		}
	}
	if in.used == 0 && len(in.failures) == 0 {
		return fmt.Errorf("%s holds no file\n%s", dir, facts.WhatWorks)
	}
	return nil
}

// reason is an error without the words that its place in a list says already.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), facts.ErrNotADump.Error()+": ")
	if _, what, ok := strings.Cut(text, " looks like "); ok {
		return "looks like " + what
	}
	return text
}

func (in *inputs) file(path, of string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > inputLimit {
		return fmt.Errorf("%s: %d MiB, more than the %d that an input may have", path, info.Size()>>20, inputLimit>>20)
	}
	machines := len(in.machines)
	if err := in.stream(of, path, f); err != nil {
		return err
	}
	if len(in.machines) > machines {
		m := &in.machines[machines]
		m.name = path
		if m.dumps.Snapshot().Manifest.Tool == "dumps" {
			m.dumps.Seen(info.ModTime())
		}
		return nil
	}
	in.loose.dumps.Seen(info.ModTime())
	return nil
}

// stream recognises and takes one file: of is the argument that named it.
func (in *inputs) stream(of, path string, r io.Reader) error {
	br := bufio.NewReaderSize(r, sniffBytes)
	first, err := br.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.HasPrefix(first, []byte{0x1f, 0x8b}) {
		return in.packed(of, path, br)
	}
	if facts.LooksLikeBugReport(first) {
		return in.bugReport(path, br)
	}
	if what := facts.LooksBinary(first); what != "" { // told by its beginning: an endless one has no end to wait for
		in.failures = append(in.failures, fmt.Errorf("%w: %s looks like %s", facts.ErrNotADump, path, what))
		return nil
	}
	return in.text(of, path, br)
}

// packed takes a compressed file: a snapshot, a bug report, or a single dump.
func (in *inputs) packed(of, path string, r io.Reader) error {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("%s: not a gzip file that can be read: %w", path, err)
	}
	br := bufio.NewReaderSize(io.LimitReader(zr, unpackLimit), sniffBytes)
	first, _ := br.Peek(sniffBytes)
	switch {
	case len(first) > 262 && string(first[257:262]) == "ustar":
		s, err := facts.LoadTar(br)
		if err != nil {
			return fmt.Errorf("%s: not a snapshot that preflight can read: %w", path, err)
		}
		in.used++
		in.machines = append(in.machines, saved{path, facts.DumpsOver(s)})
		return nil
	case facts.LooksLikeBugReport(first):
		return in.bugReport(path, br)
	case len(first) == 0:
		return fmt.Errorf("%s: the gzip file ends before its content", path)
	}
	return in.text(of, strings.TrimSuffix(path, ".gz"), br)
}

func (in *inputs) bugReport(path string, r io.Reader) error {
	d := facts.NewDumps()
	if err := d.AddBugReport(filepath.Base(path), r); err != nil {
		return err
	}
	in.used++
	in.machines = append(in.machines, saved{path, d})
	return nil
}

// text takes one dump. A binary file is refused by its beginning, a huge one without being read to its end.
func (in *inputs) text(of, path string, br *bufio.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(br, facts.DumpLimit+1))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if cut := err != nil; cut {
		in.loose.dumps.Skip(filepath.Base(path), "its end: the compressed file was cut")
	}
	if err := in.loose.dumps.Add(path, raw); err != nil {
		if strings.HasSuffix(path, ".tar.gz") {
			err = fmt.Errorf("%s: not a snapshot that preflight can read: %w", path, err)
		}
		in.failures = append(in.failures, err)
		return nil
	}
	in.used++
	if in.loose.name == "" {
		in.loose.name = of
	}
	return nil
}
