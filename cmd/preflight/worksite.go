package main

import (
	"bufio"
	"bytes"
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
	"preflight/internal/collect"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/probe"
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
	env    *environment
	flags  *changeFlags
	target *target
	lib    playbooks.Library
	run    string
	sites  []*site
	mu     sync.Mutex
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
	w.each(ctx, len(w.sites), w.sites, func(s *site) error { return w.plan(ctx, s, choose) })
	w.showPlans()
	if !w.flags.apply {
		return w.code(false)
	}
	changes := 0
	for _, s := range w.sites {
		for _, p := range s.plans {
			changes += p.Changes()
		}
	}
	if changes == 0 {
		return w.code(true)
	}
	if err := w.confirm(changes); err != nil {
		return err
	}
	w.roll(ctx)
	w.showResults()
	return w.code(true)
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
	if w.target.source == "local" {
		return thisMachine{}, nil
	}
	return w.target.dialer.Open(ctx, r)
}

// plan reads a rig, judges it, and plans the wanted playbooks.
func (w *worksite) plan(ctx context.Context, s *site, choose func(*site) []wanted) error {
	var err error
	if s.host, err = w.open(ctx, s.rig); err != nil {
		return err
	}
	if s.before, err = w.judge(ctx, s); err != nil {
		return err
	}
	s.wanted = choose(s)
	for _, x := range s.wanted {
		p, err := playbooks.MakePlan(ctx, rootRunner{s.host}, w.scope(s, x), x.playbook)
		if err != nil {
			return fmt.Errorf("%s: %w", x.playbook.Name, err)
		}
		s.plans = append(s.plans, p)
	}
	return nil
}

// judge collects a rig's facts and judges them. A host whose facts are not whole is not worked on.
func (w *worksite) judge(ctx context.Context, s *site) (fleet.Result, error) {
	snap, err := collect.Collect(ctx, s.host, collect.Request{Tool: version, Rig: s.rig.Name, Python: s.rig.Python, SlurmNode: s.rig.SlurmNode})
	if err != nil {
		return fleet.Result{}, err
	}
	if snap.Manifest.Cut != "" {
		return fleet.Result{}, fmt.Errorf("its facts could not all be read (%s): it is left alone", snap.Manifest.Cut)
	}
	if snap.Manifest.Root == "none" {
		return fleet.Result{}, playbooks.ErrNoRoot
	}
	return fleet.Judge(s.rig, snap, nil, w.target.catalogue()), nil
}

func (w *worksite) scope(s *site, x wanted) playbooks.Scope {
	distro := strings.ToLower(s.before.Host.OS.Distro.Value)
	return playbooks.Scope{
		Host: checks.HostValue(s.before.Host), Params: x.params, Rig: s.rig, Finding: x.finding,
		Debian: strings.Contains(distro, "ubuntu") || strings.Contains(distro, "debian"),
	}
}

// confirm asks once, on a terminal.
func (w *worksite) confirm(changes int) error {
	if w.flags.yes {
		return nil
	}
	if file, ok := w.env.stdin.(*os.File); ok {
		if _, tty := terminal(file); tty {
			_, _ = fmt.Fprintf(w.env.stderr, "\nMake these %d changes? [y/N] ", changes)
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

// apply changes one rig, reboots it where that is allowed, and judges it again.
func (w *worksite) apply(ctx context.Context, s *site) error {
	changes := 0
	for _, p := range s.plans {
		changes += p.Changes()
	}
	if changes == 0 {
		return nil
	}
	if busy := probe.Busy(s.before.Host); busy != "" && !w.flags.force {
		return fmt.Errorf("%s: it is left alone; --force changes it all the same", busy)
	}
	door, err := playbooks.Open(ctx, rootRunner{s.host}, w.run, who(), w.flags.breakLock, w.log(s))
	if err != nil {
		return err
	}
	for _, x := range s.wanted {
		done, err := playbooks.Run(ctx, door, w.scope(s, x), x.playbook, func(what string) { w.tell(s, what) })
		s.changed += done.Changed
		s.reboot = s.reboot || done.Reboot
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", x.playbook.Name, err), door.Close(ctx))
		}
	}
	if err := door.Close(ctx); err != nil {
		return err
	}
	if s.reboot && w.flags.allowReboot {
		if err := w.reboot(ctx, s); err != nil {
			return err
		}
	}
	s.after, err = w.judge(ctx, s)
	return err
}

func (w *worksite) tell(s *site, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintf(w.env.stderr, "preflight: %s: %s\n", s.rig.Name, what)
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

// rootRunner runs the engine's scripts on a host as root.
type rootRunner struct{ host fleet.Host }

// changeOutput bounds what a script may print, bytes.
const changeOutput = 16 << 20

func (r rootRunner) Run(ctx context.Context, script []byte) ([]byte, bool, error) {
	var out bytes.Buffer
	access, err := r.host.Run(ctx, script, &limited{w: &out, left: changeOutput})
	root := access.Root != "none"
	if access.Root == "" { // this machine
		root = os.Geteuid() == 0
	}
	return out.Bytes(), root, err
}

// limited refuses more than a bound.
type limited struct {
	w    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errors.New("the host printed more than a script of ours does")
	}
	l.left -= len(p)
	return l.w.Write(p)
}

// bootID is what changes at a boot; "" when it was not read.
func bootID(h *facts.Host) string { return h.OS.BootID.Value }
