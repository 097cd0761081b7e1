//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/ebitengine/purego"

	"preflight/internal/probe/wire"
)

// symbol binds a function of a library to a Go variable of its type.
type symbol struct {
	name     string
	fn       any // pointer to the variable
	optional bool
}

// bind looks all symbols up before any is used: a library that lacks one is told by the name of what it lacks.
func bind(lib uintptr, api string, table []symbol) error {
	for _, s := range table {
		addr, err := purego.Dlsym(lib, s.name)
		switch {
		case err == nil:
			purego.RegisterFunc(s.fn, addr)
		case !s.optional:
			return &wire.Error{Key: wire.KeyMissingSymbol, API: api, Call: s.name, Text: fmt.Sprintf("lib%s has no %s: %v", api, s.name, err)}
		}
	}
	return nil
}

// open loads the first candidate that exists. A library that is there and cannot be loaded ends the search: the next
// one may be of another driver.
func open(api, absent string, candidates []wire.Library) (uintptr, wire.Library, error) {
	var last error
	for _, c := range candidates {
		if strings.Contains(c.Path, "/") {
			if _, err := os.Stat(c.Path); err != nil {
				last = err
				continue
			}
		}
		lib, err := purego.Dlopen(c.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			c.Real = mapped(c)
			return lib, c, nil
		}
		last = err
		if !strings.Contains(err.Error(), c.Path+": cannot open shared object file: No such file") {
			return 0, c, &wire.Error{Key: wire.KeyCannotLoad, API: api, Call: "dlopen", Text: err.Error()}
		}
	}
	text := fmt.Sprintf("no lib%s was found in %d places", api, len(candidates))
	if last != nil && len(candidates) == 1 {
		text = last.Error()
	}
	return 0, wire.Library{}, &wire.Error{Key: absent, API: api, Call: "dlopen", Text: text}
}

// mapped is the file that the loader took for a library, from the process's own map.
func mapped(l wire.Library) string {
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if i := strings.IndexByte(line, '/'); i >= 0 && strings.Contains(line[i:], "/"+l.Name+".so") {
			return line[i:]
		}
	}
	return ""
}
