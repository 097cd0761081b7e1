package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sync/errgroup"

	"preflight/checks"
	"preflight/internal/fleet"
	"preflight/internal/report"
	"preflight/inventory"
	"preflight/playbooks"
)

// wanted is a playbook that a rig is to have, with its parameters and the finding that calls for it.
type wanted struct {
	playbook playbooks.Playbook
	params   map[string]cty.Value
	finding  map[string]string
}

// site is one rig that is worked on.
type site struct {
	rig     *inventory.Rig
	host    fleet.Host
	before  fleet.Result
	after   fleet.Result
	wanted  []wanted
	plans   []playbooks.Plan
	changed int
	reboot  bool // still needed
	err     error
}

// worksite is one run of provision or fix.
type worksite struct {
	env     *environment
	flags   *changeFlags
	target  *target
	lib     playbooks.Library
	run     string
	measure fleet.Options // what is measured when a rig is judged; nothing by default
	sites   []*site
	mu      sync.Mutex
}

// work reads every rig, plans what choose wants of it, shows the plan, and applies it when that was asked.
func (w *worksite) work(ctx context.Context, choose func(*site) []wanted) error {
	var tail [3]byte
	_, _ = rand.Read(tail[:])
	w.run = time.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(tail[:])
	for _, r := range w.target.rigs {
		w.sites = append(w.sites, &site{rig: r})
	}
	defer w.leave()
	w.look(ctx, choose)
	w.showPlans()
	if !w.flags.apply {
		return w.code(false)
	}
	changes, boots := w.outstanding()
	if changes+boots == 0 {
		return w.code(true)
	}
	if err := w.confirm(changes, boots); err != nil {
		return err
	}
	w.measure.Events = w.env.progress(len(w.sites)).Event
	w.roll(ctx)
	w.env.calm()
	w.across()
	w.showResults()
	return w.code(true)
}

// look reads and judges every rig, then plans what choose wants of it.
func (w *worksite) look(ctx context.Context, choose func(*site) []wanted) {
	w.measure.Events = w.env.progress(len(w.sites)).Event
	defer w.env.calm()
	w.each(ctx, w.flags.target.parallel, w.sites, func(s *site) (err error) {
		w.at(s, fleet.Connecting)
		if s.host, err = w.open(ctx, s.rig); err == nil {
			s.before, err = w.judge(ctx, s)
		}
		return err
	})
	w.across()
	w.each(ctx, w.flags.target.parallel, w.sites, func(s *site) error {
		w.at(s, planning)
		return w.plan(ctx, s, choose(s))
	})
}

// Phases of a rig that is changed, besides those of one that is checked.
const (
	planning fleet.Phase = "planning"
	changing fleet.Phase = "changing"
	booting  fleet.Phase = "rebooting"
)

// at notes what a rig is at.
func (w *worksite) at(s *site, p fleet.Phase) {
	w.measure.Events(fleet.Event{Rig: s.rig.Name, Phase: p})
}

// across judges the rigs beside each other, as they were seen last.
func (w *worksite) across() {
	var last []*fleet.Result
	for _, s := range w.sites {
		switch {
		case s.after.Host != nil:
			last = append(last, &s.after)
		case s.before.Host != nil:
			last = append(last, &s.before)
		}
	}
	all := make([]fleet.Result, len(last))
	for i, r := range last {
		all[i] = *r
	}
	fleet.Across(all)
	for i, r := range last {
		*r = all[i]
	}
}

// outstanding counts what the plans change, and the rigs that only wait for a boot that is allowed.
func (w *worksite) outstanding() (changes, boots int) {
	for _, s := range w.sites {
		n, waits := s.toDo()
		changes += n
		if n == 0 && waits && w.flags.allowReboot {
			boots++
		}
	}
	return changes, boots
}

// toDo is how much a rig's plans change, and whether something takes effect at the next boot only.
func (s *site) toDo() (changes int, boot bool) {
	for _, p := range s.plans {
		changes += p.Changes()
		boot = boot || p.Reboot()
	}
	return changes, boot
}

// each does something for some sites, so many at once; an error stays with its site.
func (w *worksite) each(ctx context.Context, atOnce int, sites []*site, do func(*site) error) {
	var g errgroup.Group
	g.SetLimit(max(atOnce, 1))
	for _, s := range sites {
		g.Go(func() error {
			if s.err == nil && ctx.Err() == nil {
				s.err = do(s)
			}
			return nil
		})
	}
	_ = g.Wait()
}

func (w *worksite) leave() {
	for _, s := range w.sites {
		if s.host != nil {
			_ = s.host.Close()
		}
	}
}

// open connects to a rig, or to this machine.
func (w *worksite) open(ctx context.Context, r *inventory.Rig) (fleet.Host, error) {
	return openHost(ctx, w.target, r)
}

// question asks for what is about to be done.
func question(changes, boots int) string {
	if changes == 0 {
		return fmt.Sprintf("Reboot %d rigs?", boots)
	}
	return fmt.Sprintf("Make these %d changes?", changes)
}

// confirm asks once, on a terminal.
func (w *worksite) confirm(changes, boots int) error {
	if w.flags.yes {
		return nil
	}
	if file, ok := w.env.stdin.(*os.File); ok {
		if _, tty := terminal(file); tty {
			_, _ = fmt.Fprintf(w.env.stderr, "\n%s [y/N] ", question(changes, boots))
			line, _ := bufio.NewReader(w.env.stdin).ReadString('\n')
			if a := strings.ToLower(strings.TrimSpace(line)); a == "y" || a == "yes" {
				return nil
			}
			return exit{checks.ExitUsage, errors.New("nothing was changed")}
		}
	}
	return usage("nobody can be asked here: --yes applies the plan above")
}

// roll applies batch by batch, and begins no further one when too many have failed.
func (w *worksite) roll(ctx context.Context) {
	for from := 0; from < len(w.sites); from += w.flags.batch {
		batch := w.sites[from:min(from+w.flags.batch, len(w.sites))]
		if failed := w.failures(); failed >= w.flags.maxFailures {
			for _, s := range batch {
				if s.err == nil {
					s.err = fmt.Errorf("not begun: %d failed already (--max-failures)", failed)
				}
			}
			continue
		}
		w.each(ctx, w.flags.batch, batch, func(s *site) error { return w.apply(ctx, s) })
	}
}

func (w *worksite) failures() int {
	n := 0
	for _, s := range w.sites {
		if s.err != nil {
			n++
		}
	}
	return n
}

func (w *worksite) tell(s *site, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.env.aside(func() { _, _ = fmt.Fprintf(w.env.stderr, "preflight: %s: %s\n", s.rig.Name, report.Safe(what)) })
}

// log writes every change down on this machine as well, a line each.
func (w *worksite) log(s *site) func(playbooks.Entry) {
	return func(e playbooks.Entry) {
		w.mu.Lock()
		defer w.mu.Unlock()
		dir, err := runsDir(stateFolder)
		if err != nil {
			return
		}
		dir = filepath.Join(filepath.Dir(dir), "changes")
		if os.MkdirAll(dir, 0o700) != nil {
			return
		}
		f, err := os.OpenFile(filepath.Join(dir, w.run+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }()
		_ = json.NewEncoder(f).Encode(struct {
			Rig string `json:"rig"`
			playbooks.Entry
		}{s.rig.Name, e})
	}
}
