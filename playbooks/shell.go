package playbooks

import (
	"fmt"
	"strings"
)

// shell is what makes a change on the host; n numbers its backup. It runs under set -e.
func (c Change) shell(n int) string {
	switch r := c.resource; {
	case r.File != nil && r.File.Absent:
		return backup(n, r.File.Path) + fmt.Sprintf("rm -f \"$R%s\"\n", doubled(r.File.Path)) + after(r.File.After)
	case r.File != nil:
		return backup(n, r.File.Path) + c.write(*r.File) + after(r.File.After)
	case r.Package != nil:
		return c.install(*r.Package)
	case r.Unit != nil:
		return c.switchUnit(*r.Unit)
	case r.Command != nil:
		return r.Command.Apply + "\n"
	}
	return "exit 1\n"
}

// doubled is a path within double quotes of a shell.
func doubled(path string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(path)
}

// backup keeps what a file was, or that it was not.
func backup(n int, path string) string {
	return fmt.Sprintf("f=\"$R%s\"\nif [ -e \"$f\" ]; then cp -p \"$f\" \"$run/files/%d\"; else : >\"$run/files/%d.absent\"; fi\n", doubled(path), n, n)
}

// write puts a file in place in one step: a full disk leaves the old one.
func (c Change) write(f File) string {
	mode, owner := f.Mode, f.Owner
	if mode == "" {
		mode = "0644"
		if c.state.Exists {
			mode = c.state.Mode
		}
	}
	if owner == "" && c.state.Exists {
		owner = c.state.Owner
	}
	own := ""
	if owner != "" {
		own = fmt.Sprintf("chown %s \"$t\" 2>/dev/null || [ \"$(id -u)\" != 0 ]\n", quote(owner))
	}
	return fmt.Sprintf("mkdir -p \"${f%%/*}\"\nt=\"${f%%/*}/.preflight.$$\"\nprintf '%%s' %s >\"$t\" || { rm -f \"$t\"; echo 'the file cannot be written: the disk may be full'; exit 1; }\nchmod %s \"$t\"\n%smv -f \"$t\" \"$f\"\n",
		quote(c.content), quote(mode), own)
}

func after(all []After) string {
	var b strings.Builder
	for _, a := range all {
		b.WriteString(a.Shell + "\n")
	}
	return b.String()
}

// aptWait makes apt-get wait for whoever holds its lock, and says who that is when it does not end.
const aptWait = `apt_get() {
	apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$@" && return 0
	rc=$?
	for l in /var/lib/dpkg/lock-frontend /var/lib/apt/lists/lock; do
		holder=$( { fuser "$l" 2>/dev/null || true; } | tr -d ' ')
		[ -n "$holder" ] && echo "$l is held by process $holder ($(cat "/proc/$holder/comm" 2>/dev/null))"
	done
	return $rc
}
`

func (c Change) install(p Package) string {
	names := p.names(c.state.Manager)
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = quote(n)
	}
	list := strings.Join(words, " ")
	var b strings.Builder
	if c.state.Manager == "dnf" {
		verb := "install"
		if p.Absent {
			verb = "remove"
		}
		fmt.Fprintf(&b, "dnf -q -y %s %s\n", verb, list)
		if p.Hold && !p.Absent {
			fmt.Fprintf(&b, "dnf -q versionlock add %s\n", list)
		}
		return b.String()
	}
	b.WriteString(aptWait)
	if p.Absent {
		fmt.Fprintf(&b, "apt_get remove %s\n", list)
		return b.String()
	}
	missing := false
	for _, n := range names {
		if _, have := c.state.Have[n]; !have {
			missing = true
		}
	}
	if missing {
		fmt.Fprintf(&b, "apt_get update || true\napt_get install %s\n", list)
	}
	if p.Hold {
		fmt.Fprintf(&b, "apt-mark hold %s\n", list)
	}
	return b.String()
}

func (c Change) switchUnit(u Unit) string {
	var b strings.Builder
	name := quote(u.Name)
	if u.Enabled != nil {
		verb := map[bool]string{true: "enable", false: "disable"}[*u.Enabled]
		fmt.Fprintf(&b, "systemctl %s %s\n", verb, name)
	}
	if u.Running != nil {
		verb := map[bool]string{true: "start", false: "stop"}[*u.Running]
		fmt.Fprintf(&b, "systemctl %s %s\n", verb, name)
	}
	return b.String()
}

// undo is what takes an entry back, and what cannot be taken back in words.
func (e Entry) undo() (shell, left string) {
	switch e.Kind {
	case "file":
		s := fmt.Sprintf("f=\"$R%s\"\nif [ -e \"$run/files/%d\" ]; then cp -p \"$run/files/%d\" \"${f%%/*}/.preflight.$$\" && mv -f \"${f%%/*}/.preflight.$$\" \"$f\"\nelif [ -e \"$run/files/%d.absent\" ]; then rm -f \"$f\"; fi\n", doubled(e.Path), e.N, e.N, e.N)
		for _, a := range e.After {
			s += a + "\n"
		}
		return s, ""
	case "unit":
		s := ""
		if e.Enabled == "disabled" || e.Enabled == "enabled" {
			s += fmt.Sprintf("systemctl %s %s\n", map[string]string{"disabled": "disable", "enabled": "enable"}[e.Enabled], quote(e.Unit))
		}
		if e.Active == "inactive" || e.Active == "failed" {
			s += fmt.Sprintf("systemctl stop %s\n", quote(e.Unit))
		} else if e.Active == "active" {
			s += fmt.Sprintf("systemctl start %s\n", quote(e.Unit))
		}
		return s, ""
	case "command":
		if e.Undo == "" {
			return "", e.Change.What + ": nothing takes it back"
		}
		return e.Undo + "\n", ""
	case "package":
		if len(e.Packages) == 0 {
			return "", ""
		}
		return "", "installed and left: " + strings.Join(e.Packages, ", ")
	}
	return "", "an entry of another version: " + e.Kind
}
