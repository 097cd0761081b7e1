package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/internal/probe"
	"preflight/playbooks"
)

// plan plans the wanted playbooks on a rig.
func (w *worksite) plan(ctx context.Context, s *site, list []wanted) error {
	s.wanted = list
	for _, x := range s.wanted {
		p, err := playbooks.MakePlan(ctx, rootRunner{s.host}, w.scope(s, s.before.Host, x), x.playbook)
		if err != nil {
			return fmt.Errorf("%s: %w", x.playbook.Name, err)
		}
		s.plans = append(s.plans, p)
	}
	return nil
}

// judge collects a rig's facts, measures where that was asked, and judges. A host whose facts are not whole is not worked on.
func (w *worksite) judge(ctx context.Context, s *site) (fleet.Result, error) {
	o := w.measure
	o.Tool, o.Catalog, o.Serials = version, w.target.catalogue(), w.flags.target.serials
	r := fleet.On(ctx, s.host, s.rig, o)
	switch {
	case r.Snapshot == nil:
		return fleet.Result{}, r.Err
	case r.Snapshot.Manifest.Cut != "":
		return fleet.Result{}, fmt.Errorf("its facts could not all be read (%s): it is left alone", r.Snapshot.Manifest.Cut)
	case r.Snapshot.Manifest.Root == "none":
		return fleet.Result{}, playbooks.ErrNoRoot
	}
	return r, nil
}

// scope is what the expressions of a playbook see of a rig.
func (w *worksite) scope(s *site, h *facts.Host, x wanted) playbooks.Scope {
	system := playbooks.SystemOf(h, w.target.catalogue())
	return playbooks.Scope{
		Host: checks.HostValue(h), Params: x.params, Rig: s.rig, Finding: x.finding, System: system, Group: w.group(s),
		Debian: system.Distro == "ubuntu" || system.Distro == "debian",
	}
}

// group is what the rigs of a group have in common: a driver that most of them run, and the addresses that rigs.hcl gives for
// the others. A name is no address: a firewall takes none.
func (w *worksite) group(s *site) playbooks.Group {
	var g playbooks.Group
	if s.rig.Group == "" {
		return g
	}
	count := map[string]int{}
	for _, o := range w.sites {
		if o.rig.Group != s.rig.Group {
			continue
		}
		if o.before.Host != nil && o.before.Host.Driver.Version.Value != "" {
			count[o.before.Host.Driver.Version.Value]++
		}
		if _, err := netip.ParseAddr(o.rig.Address); o != s && err == nil {
			g.Addresses = append(g.Addresses, o.rig.Address)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if g.Driver == "" || count[v] > count[g.Driver] {
			g.Driver = v
		}
	}
	return g
}

// apply changes one rig, reboots it where that is allowed, goes on after the boot, and judges it again.
func (w *worksite) apply(ctx context.Context, s *site) error {
	changes, waits := s.toDo()
	if changes == 0 && (!waits || !w.flags.allowReboot) {
		return nil
	}
	if busy := probe.Busy(s.before.Host); busy != "" && !w.flags.force {
		return fmt.Errorf("%s: it is left alone; --force changes it all the same", busy)
	}
	w.at(s, changing)
	seen := s.before.Host
	for boots := 0; ; boots++ {
		if err := w.change(ctx, s, seen, boots > 0); err != nil {
			return err
		}
		if !s.reboot || !w.flags.allowReboot {
			break
		}
		if boots == mostBoots {
			return fmt.Errorf("it was rebooted %d times, and wants another", boots)
		}
		if err := w.reboot(ctx, s, seen); err != nil {
			return err
		}
		// The facts are other ones now: a task may apply that did not before.
		r := fleet.On(ctx, s.host, s.rig, fleet.Options{Tool: version, Catalog: w.target.catalogue(), Events: w.measure.Events})
		if r.Host == nil {
			return r.Err
		}
		seen = r.Host
	}
	var err error
	s.after, err = w.judge(ctx, s)
	return err
}

// mostBoots is how often a rig is rebooted in one run: a driver may need nouveau gone first.
const mostBoots = 2

// change runs the playbooks of one rig under its lock.
func (w *worksite) change(ctx context.Context, s *site, seen *facts.Host, booted bool) error {
	door, err := playbooks.Open(ctx, rootRunner{s.host}, w.run, who(), w.flags.breakLock, w.log(s))
	if err != nil {
		return err
	}
	s.reboot = false
	for _, x := range s.wanted {
		done, err := playbooks.Run(ctx, door, w.scope(s, seen, x), x.playbook, booted, func(what string) { w.tell(s, what) })
		s.changed += done.Changed
		s.reboot = s.reboot || done.Reboot
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", x.playbook.Name, err), door.Close(ctx))
		}
	}
	return door.Close(ctx)
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
