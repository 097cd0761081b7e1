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

// apt makes apt-get wait for whoever holds its lock, says who that is when it does not end (apt before 2.0 does not), and
// tells lists that could not be renewed only when an installation fails for it.
const apt = `apt_get() {
	apt-get -q -y -o DPkg::Lock::Timeout=300 -o APT::Update::Error-Mode=any -o Dpkg::Options::=--force-confold "$@" && return 0
	rc=$?
	for l in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock; do
		node=$(stat -c %i "$R$l" 2>/dev/null) || continue
		holder=$(awk -v n=":$node" 'index($6, n) == length($6) - length(n) + 1 { print $5; exit }' "$R/proc/locks" 2>/dev/null)
		[ -z "$holder" ] || echo "$l is held by process $holder ($(cat "$R/proc/$holder/comm" 2>/dev/null)): let it end, and run again"
	done
	return $rc
}
apt_install() {
	stale=
	lists=$(apt_get update 2>&1) || stale=$(printf '%s\n' "$lists" | grep '^[EW]:' | tail -n 1)
	apt_get install "$@" && return 0
	rc=$?
	[ -z "$stale" ] || echo "the lists of packages could not be renewed ($stale): has the host a way to its mirror?"
	return $rc
}
`

func (c Change) install(p Package) string {
	names := p.names(c.state.Manager)
	words, exact := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		words[i], exact[i] = quote(n), quote(n)
		if p.Version != "" {
			exact[i] = quote(n + map[bool]string{true: "-", false: "="}[c.state.Manager == "dnf"] + p.Version + "*")
		}
	}
	list, wanted := strings.Join(words, " "), strings.Join(exact, " ")
	var b strings.Builder
	if c.state.Manager == "dnf" {
		if p.Absent {
			fmt.Fprintf(&b, "dnf -q -y remove %s\n", list)
			return b.String()
		}
		fmt.Fprintf(&b, "dnf -q -y install %s\n", wanted)
		if p.Hold {
			fmt.Fprintf(&b, "dnf -q versionlock add %s\n", list)
		}
		return b.String()
	}
	b.WriteString(apt)
	if p.Absent {
		fmt.Fprintf(&b, "apt_get remove %s\n", list)
		return b.String()
	}
	missing := false
	for _, n := range names {
		version, have := c.state.Have[n]
		missing = missing || !have || !p.suits(version)
	}
	if missing {
		freely := "" // a version that is asked for may be older, and another may be held
		if p.Version != "" {
			freely = "--allow-downgrades --allow-change-held-packages "
		}
		fmt.Fprintf(&b, "apt_install %s%s\n", freely, wanted)
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
		for _, p := range e.Held {
			shell += map[bool]string{true: "dnf -q versionlock delete ", false: "apt-mark unhold "}[e.Manager == "dnf"] + quote(p) + "\n"
		}
		if len(e.Packages) > 0 {
			left = "installed and left: " + strings.Join(e.Packages, ", ")
		}
		return shell, left
	}
	return "", "an entry of another version: " + e.Kind
}
