package playbooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNoRoot is a host on which nothing can be changed.
var ErrNoRoot = errors.New("changes need root: log in as root, allow sudo -n, or --ask-become-pass")

// Where a host keeps what was done to it.
const (
	stateDir = "/var/lib/preflight"
	lockDir  = stateDir + "/lock"
)

// Entry is one change as it is written down, on the host and on the controller.
type Entry struct {
	Run      string    `json:"run"`
	N        int       `json:"n"`
	At       time.Time `json:"at"`
	Playbook string    `json:"playbook"`
	Change   Change    `json:"change"`
	Kind     string    `json:"kind"` // file, package, unit, command
	Path     string    `json:"path,omitempty"`
	Existed  bool      `json:"existed,omitempty"`
	Enabled  string    `json:"enabled,omitempty"` // of a unit, before
	Active   string    `json:"active,omitempty"`
	Unit     string    `json:"unit,omitempty"`
	Undo     string    `json:"undo,omitempty"` // of a command
	After    []string  `json:"after,omitempty"`
	Packages []string  `json:"packages,omitempty"` // installed
	Manager  string    `json:"manager,omitempty"`
	Held     []string  `json:"held,omitempty"` // that were not held before
	Error    string    `json:"error,omitempty"`
}

// Door is the one way by which anything on a host is changed. It holds the host's lock while it is open.
type Door struct {
	host  Runner
	run   string
	limit time.Duration
	log   func(Entry) // on the controller; may be nil
	n     int
}

// LockedError is a host that another run holds.
type LockedError struct {
	Holder string
	Age    time.Duration
}

func (e *LockedError) Error() string {
	text := fmt.Sprintf("another run holds this host: %s, for %s", e.Holder, e.Age.Round(time.Second))
	if e.Age > staleLock {
		text += "; it is surely gone: --break-lock takes the lock away"
	}
	return text
}

// staleLock is the age from which a lock is taken for forgotten: no run lasts so long on one host.
const staleLock = 2 * time.Hour

// changeLimit is the deadline of one change: a driver's packages are large, and a new initramfs takes its time.
const changeLimit = 30 * time.Minute

// Open takes a host's lock. Close gives it back.
func Open(ctx context.Context, host Runner, run, who string, breakLock bool, log func(Entry)) (*Door, error) {
	nonce := newNonce()
	broken := ""
	if breakLock {
		broken = `rm -rf "$R` + lockDir + "\"\n"
	}
	script := header(nonce) + broken + fmt.Sprintf(`mkdir -p "$R%s/runs/%s/files" || { say failed "$(df -P "$R/var" 2>/dev/null | tail -n 1)"; exit 0; }
if mkdir "$R%s" 2>/dev/null; then
	printf '%%s\n' %s >"$R%s/holder"
	say locked "$(wc -l 2>/dev/null <"$R%s/runs/%s/record.jsonl" || echo 0)"
else
	now=$(date +%%s)
	at=$(stat -c %%Y "$R%s" 2>/dev/null || echo "$now")
	say held "$((now - at))" "$(head -c 200 "$R%s/holder" 2>/dev/null)"
fi
`, stateDir, run, lockDir, quote(run+" "+who), lockDir, stateDir, run, lockDir, lockDir)
	out, root, err := host.Run(ctx, []byte(script))
	if err != nil {
		return nil, err
	}
	if !root {
		return nil, ErrNoRoot
	}
	for _, s := range sections(out, nonce) {
		word, rest, _ := strings.Cut(s.head, " ")
		switch word {
		case "locked":
			n, _ := strconv.Atoi(strings.TrimSpace(rest)) // a run goes on after a boot: its record does, too
			return &Door{host: host, run: run, limit: changeLimit, log: log, n: n}, nil
		case "held":
			age, holder, _ := strings.Cut(rest, " ")
			seconds, _ := time.ParseDuration(age + "s")
			return nil, &LockedError{Holder: holder, Age: seconds}
		case "failed":
			return nil, fmt.Errorf("%s cannot be written on the host (full or read-only?): %s", stateDir, rest)
		}
	}
	return nil, errors.New("the host did not say whether it is locked")
}

// Close gives the lock back, but only its own.
func (d *Door) Close(ctx context.Context) error {
	nonce := newNonce()
	script := header(nonce) + fmt.Sprintf("case $(cat \"$R%s/holder\" 2>/dev/null) in %s' '*) rm -rf \"$R%s\" ;; esac\nsay end\n", lockDir, quote(d.run), lockDir)
	_, _, err := d.host.Run(context.WithoutCancel(ctx), []byte(script))
	return err
}

// Apply makes one change and writes it down. The record is on the host before the change is: a run that is cut can be undone.
func (d *Door) Apply(ctx context.Context, playbook string, c Change) error {
	d.n++
	e := entryOf(d.run, d.n, playbook, c)
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	nonce := newNonce()
	var b strings.Builder
	b.WriteString(header(nonce))
	fmt.Fprintf(&b, "run=\"$R%s/runs/%s\"\n", stateDir, d.run)
	fmt.Fprintf(&b, "printf '%%s\\n' %s >>\"$run/record.jsonl\" || { say done 1; echo 'the record cannot be written'; exit 0; }\n", quote(string(raw)))
	fmt.Fprintf(&b, "out=$( (\nset -e\n%s\n) 2>&1 )\nrc=$?\nsay done \"$rc\"\nprintf '%%s\\n' \"$out\" | tail -c 4000\n", c.shell(d.n))
	ctx, cancel := context.WithTimeoutCause(ctx, d.limit, fmt.Errorf("%s did not end within %s", c.What, d.limit))
	defer cancel()
	out, root, err := d.host.Run(ctx, []byte(b.String()))
	if err == nil && !root {
		err = ErrNoRoot
	}
	if err == nil {
		err = outcome(out, nonce, c.What)
	}
	if err != nil {
		e.Error = err.Error()
	}
	if d.log != nil {
		d.log(e)
	}
	return err
}

// outcome reads how a script went.
func outcome(out []byte, nonce, what string) error {
	for _, s := range sections(out, nonce) {
		word, rc, _ := strings.Cut(s.head, " ")
		if word != "done" {
			continue
		}
		if rc == "0" {
			return nil
		}
		text := strings.TrimSpace(s.body)
		if text == "" {
			text = "it ended with " + rc
		}
		return fmt.Errorf("%s: %s", what, lastLines(text, 3))
	}
	return fmt.Errorf("%s: the host broke off", what)
}

// lastLines are the end of an output, where programs say why they gave up.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "; ")
}

func entryOf(run string, n int, playbook string, c Change) Entry {
	e := Entry{Run: run, N: n, At: time.Now().UTC().Truncate(time.Second), Playbook: playbook, Change: c}
	r := c.resource
	switch {
	case r.File != nil:
		e.Kind, e.Path, e.Existed = "file", r.File.Path, c.state.Exists
		for _, a := range r.File.After {
			e.After = append(e.After, a.Shell)
		}
	case r.Package != nil:
		e.Kind, e.Manager = "package", c.state.Manager
		for _, p := range r.Package.names(c.state.Manager) {
			if _, had := c.state.Have[p]; !had && !r.Package.Absent {
				e.Packages = append(e.Packages, p)
			}
			if r.Package.Hold && !r.Package.Absent && !c.state.Held[p] {
				e.Held = append(e.Held, p)
			}
		}
	case r.Unit != nil:
		e.Kind, e.Unit, e.Enabled, e.Active = "unit", r.Unit.Name, c.state.Enabled, c.state.Active
	case r.Command != nil:
		e.Kind, e.Undo = "command", r.Command.Undo
	}
	return e
}
