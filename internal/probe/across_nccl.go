package probe

import (
	"context"
	"slices"
	"strings"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// loadedNCCL is the libnccl that a hello loaded, the first in its order.
func loadedNCCL(a answer) wire.Library {
	for _, l := range a.lines {
		if l.Library != nil && l.Phase == wire.PhaseLoadNCCL {
			return *l.Library
		}
	}
	return wire.Library{}
}

// sameNCCL finds a version of libnccl that every host has: NCCL joins none but its own.
func (m *meeting) sameNCCL(context.Context) bool {
	for i, versions := range m.libs {
		if len(versions) == 0 {
			return m.fail(facts.AcrossNoNCCL, []string{m.members[i].Rig}, "no libnccl.so.2 was found")
		}
	}
	if m.agree() || m.others() && m.agree() {
		return true
	}
	var parts []string
	for i, versions := range m.libs {
		m.run.Hosts[i].NCCL = versions[0]
		parts = append(parts, m.members[i].Rig+" "+strings.Join(versions, " and "))
	}
	return m.fail(facts.AcrossVersions, nil, strings.Join(parts, ", "))
}

// agree takes the first version that all have.
func (m *meeting) agree() bool {
	for _, v := range m.libs[0] {
		if slices.ContainsFunc(m.found, func(f map[string]string) bool { return f[v] == "" }) {
			continue
		}
		m.run.Library = v
		for i := range m.found {
			m.paths = append(m.paths, m.found[i][v])
			m.run.Hosts[i].NCCL = v
		}
		return true
	}
	return false
}

// furtherNCCL is how many more libraries of a host are asked for their version.
const furtherNCCL = 4

// others asks every host for the versions of its further libraries: the one of a Python beside that of the system.
func (m *meeting) others() bool {
	for n := range furtherNCCL {
		paths := make([]string, len(m.sessions))
		for i, s := range m.sessions {
			if known := s.known(); n+1 < len(known) {
				paths[i] = known[n+1]
			}
		}
		if !slices.ContainsFunc(paths, func(p string) bool { return p != "" }) {
			return true
		}
		replies := m.all(func(i int) wire.Request {
			return wire.Request{Command: wire.CommandHello, Limit: helloLimit, LibNCCL: paths[i]}
		}, nil)
		if m.lost(replies) {
			return false
		}
		for i, r := range replies {
			if lib := loadedNCCL(r.answer); lib.Version != "" && m.found[i][lib.Version] == "" {
				m.found[i][lib.Version] = lib.Path
				m.libs[i] = append(m.libs[i], lib.Version)
			}
		}
	}
	return true
}

// known are the paths of libnccl that the first hello found.
func (s *session) known() []string {
	var out []string
	for _, a := range s.c.done {
		for _, l := range a.lines {
			if l.Hello == nil || len(out) > 0 {
				continue
			}
			for _, lib := range l.Hello.Found {
				if lib.Path != "" && !slices.Contains(out, lib.Path) {
					out = append(out, lib.Path)
				}
			}
		}
	}
	return out
}
