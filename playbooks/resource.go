package playbooks

import (
	"fmt"
	"strings"
)

// Resource is one thing on a host with a desired state.
type Resource struct {
	Task   string // "unit"; which task of the playbook it comes from
	Reboot bool   // a change takes effect at the next boot only
	Verify string // of a task's last resource: ends with 0 when the task did what it is for; after the reboot, where one is needed

	File    *File
	Package *Package
	Unit    *Unit
	Command *Command
}

// File is a file's content, mode and owner. Edit computes what it should hold from what it holds, so that a line or a key can
// be set and the rest left alone.
type File struct {
	Path   string
	Edit   func(old string, exists bool) (string, error)
	Absent bool   // the file should not be there
	Mode   string // octal, "0644"
	Owner  string // "root:root"; "" leaves it
	After  []After
	Secret bool // its content is not shown
}

// After is a command that a change makes necessary: the reload of a daemon, a new initramfs. It must be safe to run again.
type After struct {
	Shell string
	Words string // what it does, for the plan
}

// Package is packages by their names for apt and for dnf.
type Package struct {
	Apt, Dnf []string
	Absent   bool
	Hold     bool   // keep the version at upgrades
	Version  string // how the version of each begins, without an epoch; "" takes any
}

// names are those for a package manager.
func (p Package) names(manager string) []string {
	if manager == "dnf" {
		return p.Dnf
	}
	return p.Apt
}

// suits says whether a version that is installed is the wanted one.
func (p Package) suits(version string) bool {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	return strings.HasPrefix(version, p.Version)
}

// Unit is a systemd unit's state. Nil leaves it.
type Unit struct {
	Name    string
	Enabled *bool
	Running *bool
	Restart bool // when a file of the same task changed
}

// Command is the last resort: a guard that says whether it is so already, what makes it so, and what takes it back.
type Command struct {
	Check string // exit 0: it is so already
	Apply string
	Undo  string
	Words string
}

// Words name a resource in a plan.
func (r Resource) Words() string {
	switch {
	case r.File != nil && r.File.Absent:
		return "no file " + r.File.Path
	case r.File != nil:
		return "file " + r.File.Path
	case r.Package != nil && r.Package.Absent:
		return "no package " + strings.Join(r.Package.Apt, ", ")
	case r.Package != nil:
		return "package " + strings.Join(r.Package.Apt, ", ")
	case r.Unit != nil:
		return "unit " + r.Unit.Name
	case r.Command != nil:
		return r.Command.Words
	}
	return r.Task
}

// State is what a host has of one resource.
type State struct {
	Exists  bool // of a file
	Odd     bool // something else stands where the file should be: a link, a folder
	Content string
	Mode    string
	Owner   string            // "user:group"
	Manager string            // apt, dnf; "" when the host has neither
	Have    map[string]string // package -> version, of those that are installed
	Held    map[string]bool
	Enabled string // of systemctl is-enabled: enabled, disabled, static, not-found …
	Active  string // of systemctl is-active
	Done    bool   // a command's guard said that it is so
	Said    string
	Missing bool // the host has no systemd, or did not answer for this resource
}

// Change is the difference between what is and what should be.
type Change struct {
	Task   string   `json:"task"`
	What   string   `json:"what"`
	Diff   string   `json:"diff,omitempty"` // of a file, unified
	Do     []string `json:"do,omitempty"`   // what is run or switched
	Reboot bool     `json:"reboot,omitempty"`

	resource Resource
	state    State
	content  string // a file's new content
}

// Compare computes the change; none when the host is as it should be.
func Compare(r Resource, s State) (*Change, error) {
	c := &Change{Task: r.Task, What: r.Words(), Reboot: r.Reboot, resource: r, state: s}
	switch {
	case s.Missing:
		return nil, fmt.Errorf("%s: the host did not say what it has", r.Words())
	case r.File != nil:
		return c.file(*r.File, s)
	case r.Package != nil:
		return c.packages(*r.Package, s)
	case r.Unit != nil:
		return c.unit(*r.Unit, s)
	case r.Command != nil:
		if s.Done {
			return nil, nil
		}
		c.Do = []string{r.Command.Words}
		return c, nil
	}
	return nil, fmt.Errorf("task %s has nothing to do", r.Task)
}

func (c *Change) file(f File, s State) (*Change, error) {
	if s.Odd {
		return nil, fmt.Errorf("%s is no plain file on the host: look at it, and move it away", f.Path)
	}
	if f.Absent {
		if !s.Exists {
			return nil, nil
		}
		c.Do = append([]string{"remove " + f.Path}, afterWords(f)...)
		c.Diff = unified(f.Path, s.Content, "")
		return c, nil
	}
	content, err := f.Edit(s.Content, s.Exists)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	c.content = content
	if !s.Exists || content != s.Content {
		c.Diff = unified(f.Path, s.Content, content)
		if f.Secret {
			c.Diff = "(the content is a secret)"
		}
	}
	if s.Exists && f.Mode != "" && strings.TrimLeft(s.Mode, "0") != strings.TrimLeft(f.Mode, "0") {
		c.Do = append(c.Do, fmt.Sprintf("mode %s becomes %s", s.Mode, f.Mode))
	}
	if s.Exists && f.Owner != "" && s.Owner != f.Owner {
		c.Do = append(c.Do, fmt.Sprintf("owner %s becomes %s", s.Owner, f.Owner))
	}
	if c.Diff == "" && len(c.Do) == 0 {
		return nil, nil
	}
	c.Do = append(c.Do, afterWords(f)...)
	return c, nil
}

func afterWords(f File) []string {
	var out []string
	for _, a := range f.After {
		out = append(out, a.Words)
	}
	return out
}

func (c *Change) packages(p Package, s State) (*Change, error) {
	if s.Manager == "" {
		return nil, fmt.Errorf("%s: the host has neither apt nor dnf", c.What)
	}
	names := p.names(s.Manager)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: the playbook names none for %s", c.What, s.Manager)
	}
	for _, n := range names {
		_, have := s.Have[n]
		switch {
		case p.Absent && have:
			c.Do = append(c.Do, "remove "+n+" "+s.Have[n])
		case !p.Absent && !have:
			c.Do = append(c.Do, strings.TrimSpace("install "+n+" "+p.Version))
		case !p.Absent && !p.suits(s.Have[n]):
			c.Do = append(c.Do, fmt.Sprintf("install %s %s in place of %s", n, p.Version, s.Have[n]))
		}
		if p.Hold && !p.Absent && !s.Held[n] {
			c.Do = append(c.Do, "hold "+n)
		}
	}
	if len(c.Do) == 0 {
		return nil, nil
	}
	return c, nil
}

func (c *Change) unit(u Unit, s State) (*Change, error) {
	if s.Enabled == "not-found" || s.Enabled == "" {
		if u.Enabled != nil && !*u.Enabled && (u.Running == nil || !*u.Running) {
			return nil, nil // what is not there is neither enabled nor running
		}
		c.Do = append(c.Do, "the unit comes with an earlier task")
	}
	enabled := s.Enabled == "enabled" || s.Enabled == "static" || s.Enabled == "alias" || s.Enabled == "indirect" || s.Enabled == "generated"
	if u.Enabled != nil && *u.Enabled != enabled {
		c.Do = append(c.Do, map[bool]string{true: "enable ", false: "disable "}[*u.Enabled]+u.Name)
	}
	running := s.Active == "active" || s.Active == "activating" || s.Active == "reloading"
	if u.Running != nil && *u.Running != running {
		c.Do = append(c.Do, map[bool]string{true: "start ", false: "stop "}[*u.Running]+u.Name)
	}
	if len(c.Do) == 0 {
		return nil, nil
	}
	return c, nil
}
