package playbooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Plan is what a playbook would change on one host.
type Plan struct {
	Playbook string     `json:"playbook"`
	Skipped  string     `json:"skipped,omitempty"` // why it does not apply here
	Tasks    []TaskPlan `json:"tasks"`
	Notes    []string   `json:"notes,omitempty"`
}

// TaskPlan is one task: changes to make, none when it is so already.
type TaskPlan struct {
	Task    string   `json:"task"`
	Skipped string   `json:"skipped,omitempty"`
	Changes []Change `json:"changes"`
	Pending bool     `json:"pending,omitempty"` // in place, and waits for the next boot
}

// Changes counts what a plan would change.
func (p Plan) Changes() int {
	n := 0
	for _, t := range p.Tasks {
		n += len(t.Changes)
	}
	return n
}

// Reboot says whether a change of the plan takes effect at the next boot only.
func (p Plan) Reboot() bool {
	return slices.ContainsFunc(p.Tasks, func(t TaskPlan) bool {
		return t.Pending || slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Reboot })
	})
}

// resources are those of all tasks that apply, with the tasks that do not.
func resources(s Scope, p Playbook) (all []Resource, skipped map[string]string, why string, err error) {
	if s, err = s.with(p); err != nil {
		return nil, nil, "", err
	}
	yes, known, err := s.holds(p.When)
	switch {
	case err != nil:
		return nil, nil, "", err
	case !known:
		return nil, nil, "", errors.New("whether it applies rests on a fact that was not read")
	case !yes:
		return nil, nil, firstOf(p.Why, "it does not apply to this host"), nil
	}
	skipped = map[string]string{}
	for _, t := range p.Tasks {
		yes, known, err := s.holds(t.When)
		switch {
		case err != nil:
			return nil, nil, "", fmt.Errorf("task %s: %w", t.Name, err)
		case !known:
			return nil, nil, "", fmt.Errorf("task %s: its condition rests on a fact that was not read", t.Name)
		case !yes:
			skipped[t.Name] = "not needed here"
			continue
		}
		list, err := compile(s, t)
		if err != nil {
			return nil, nil, "", fmt.Errorf("task %s: %w", t.Name, err)
		}
		all = append(all, list...)
	}
	return all, skipped, "", nil
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// MakePlan reads a host and says what a playbook would change. It changes nothing.
func MakePlan(ctx context.Context, host Runner, s Scope, p Playbook) (Plan, error) {
	out := Plan{Playbook: p.Name, Tasks: []TaskPlan{}, Notes: p.Notes}
	all, skipped, why, err := resources(s, p)
	if err != nil {
		return out, err
	}
	if why != "" {
		out.Skipped, out.Notes = why, nil
		return out, nil
	}
	states, err := Read(ctx, host, all)
	if err != nil {
		return out, err
	}
	changes, pending := map[string][]Change{}, map[string]bool{}
	for i, r := range all {
		c, err := Compare(r, states[i])
		if err != nil {
			return out, fmt.Errorf("task %s: %w", r.Task, err)
		}
		if c != nil {
			changes[r.Task] = append(changes[r.Task], *c)
		}
		if r.Reboot && r.Verify != "" && len(changes[r.Task]) == 0 {
			pending[r.Task] = proven(ctx, host, r) != nil
		}
	}
	for _, t := range p.Tasks {
		out.Tasks = append(out.Tasks, TaskPlan{Task: t.Name, Skipped: skipped[t.Name], Changes: changes[t.Name], Pending: pending[t.Name]})
	}
	return out, nil
}

// Applied is what came of applying a playbook to one host.
type Applied struct {
	Changed int
	Reboot  bool // something takes effect at the next boot only
}

// Run applies a playbook: each task's state is read just before it is changed and again afterwards, when nothing may be left
// to change; then the task is proven. It stops at the first task that fails; what was done before stays, is on record, and is
// not done again. A task that needs a boot is proven after it: booted says that the host has just come back, so that a proof
// that fails is an error and no longer a boot that is still to come.
func Run(ctx context.Context, door *Door, s Scope, p Playbook, booted bool, tell func(string)) (Applied, error) {
	var done Applied
	all, _, why, err := resources(s, p)
	if err != nil || why != "" {
		return done, err
	}
	for i, r := range all {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		say := func() {
			if tell != nil {
				tell(fmt.Sprintf("%s: %s (%d of %d)", p.Name, r.Words(), i+1, len(all)))
			}
		}
		c, err := ensure(ctx, door, p, r, say)
		if c != nil {
			done.Changed++
			done.Reboot = done.Reboot || c.Reboot
		}
		if err == nil && !done.Reboot {
			err = proven(ctx, door.host, r)
			if err != nil && r.Reboot && !booted {
				done.Reboot, err = true, nil
			}
		}
		if err != nil {
			return done, fmt.Errorf("task %s: %w", r.Task, err)
		}
	}
	return done, nil
}

// ensure makes one resource so, and reads it again. It returns the change, nil when it was so already or could not be made.
func ensure(ctx context.Context, door *Door, p Playbook, r Resource, say func()) (*Change, error) {
	c, err := difference(ctx, door.host, r)
	if c == nil || err != nil {
		return nil, err
	}
	say()
	if err := door.Apply(ctx, p.Name, *c); err != nil {
		return nil, err
	}
	left, err := difference(ctx, door.host, r)
	if left != nil {
		err = fmt.Errorf("applied, and it is still not so: %s", strings.Join(append([]string{left.What}, left.Do...), "; "))
	}
	return c, err
}

// proven runs the script that proves a task.
func proven(ctx context.Context, host Runner, r Resource) error {
	if r.Verify == "" {
		return nil
	}
	states, err := Read(ctx, host, []Resource{{Command: &Command{Check: r.Verify}}})
	switch {
	case err != nil:
		return err
	case states[0].Missing:
		return errors.New("the host did not say whether it holds")
	case !states[0].Done:
		return fmt.Errorf("applied, and it does not hold: %s", firstOf(lastLines(states[0].Said, 3), "its verify ends with an error and no word"))
	}
	return nil
}

// difference reads one resource and compares.
func difference(ctx context.Context, host Runner, r Resource) (*Change, error) {
	states, err := Read(ctx, host, []Resource{r})
	if err != nil {
		return nil, err
	}
	return Compare(r, states[0])
}

// Undo takes back what a run changed on a host, the last first. It returns what it took back, and what it had to leave.
func Undo(ctx context.Context, host Runner, run, who string, breakLock bool) (undone, left []string, err error) {
	entries, err := Record(ctx, host, run)
	if err != nil {
		return nil, nil, err
	}
	door, err := Open(ctx, host, run, who, breakLock, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, door.Close(ctx)) }()
	slices.Reverse(entries)
	for _, e := range entries {
		shell, stays := e.undo()
		if stays != "" {
			left = append(left, stays)
		}
		if shell == "" {
			continue
		}
		nonce := newNonce()
		script := header(nonce) + fmt.Sprintf("run=\"$R%s/runs/%s\"\nout=$( (\nset -e\n%s\n) 2>&1 )\nsay done $?\nprintf '%%s\\n' \"$out\" | tail -c 4000\n", stateDir, run, shell)
		out, _, err := host.Run(ctx, []byte(script))
		if err == nil {
			err = outcome(out, nonce, e.Change.What)
		}
		if err != nil {
			return undone, left, err
		}
		undone = append(undone, e.Change.What)
	}
	return undone, left, nil
}

// Record reads what a run wrote down on a host.
func Record(ctx context.Context, host Runner, run string) ([]Entry, error) {
	nonce := newNonce()
	script := header(nonce) + fmt.Sprintf("say record\nhead -c 4194304 \"$R%s/runs/%s/record.jsonl\" 2>/dev/null\nsay end\n", stateDir, run)
	out, root, err := host.Run(ctx, []byte(script))
	switch {
	case err != nil:
		return nil, err
	case !root:
		return nil, ErrNoRoot
	}
	var entries []Entry
	for _, s := range sections(out, nonce) {
		if s.head != "record" {
			continue
		}
		for l := range strings.Lines(s.body) {
			var e Entry
			if json.Unmarshal([]byte(l), &e) == nil && e.Run == run && plain(e) {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("the host has no record of run %s", run)
	}
	return entries, nil
}

// plain refuses a record that a run cannot have written: its values go into a shell as root.
func plain(e Entry) bool {
	return !strings.ContainsAny(e.Path+e.Unit, "\n\x00") && (e.Path == "" || strings.HasPrefix(e.Path, "/")) && e.N > 0
}
