package facts

import (
	"sort"
	"strings"
)

// dumpDir holds, in a snapshot made of dumps, the texts that have no place of their own on a host:
// "cmd/dumps/KIND/FILE".
const dumpDir = "cmd/dumps/"

// dumpFile is one such text.
type dumpFile struct {
	name string // as the user named it; the beginning of every source
	text string
}

// dumps returns the texts of one kind in the order in which they were given.
func (b *builder) dumps(kind dumpKind) []dumpFile {
	prefix := dumpDir + string(kind) + "/"
	var paths []string
	for p := range b.snap.Files {
		if strings.HasPrefix(p, prefix) {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	out := make([]dumpFile, 0, len(paths))
	for _, p := range paths {
		_, name, _ := strings.Cut(strings.TrimPrefix(p, prefix), "-") // NNN-NAME keeps the order
		out = append(out, dumpFile{name: name, text: string(b.snap.Files[p])})
	}
	return out
}

// lines splits a text of a dump into lines without trailing white space; overlong lines are cut.
func (d dumpFile) lines() []string {
	out := strings.Split(d.text, "\n")
	for i, l := range out {
		out[i] = strings.TrimRight(l[:min(len(l), lineLimit)], " \t\r")
	}
	return out
}

// src names a place in the text.
func (d dumpFile) src(what string) string { return d.name + ":" + what }
