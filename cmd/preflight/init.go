package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/inventory"
)

// initFlags are the flags of init.
type initFlags struct {
	target   targetFlags
	out      string
	refresh  bool
	baseline string
	write    bool
}

func newInit(env *environment) *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use:   "init HOST...",
		Short: "Write a first inventory from what hosts show, or re-map bus numbers in one",
		Long: `init reads each HOST (an address, user@address, or an alias of ~/.ssh/config) and writes a
first, commented inventory. What only you can know (supplies, circuits, slots) is prepared
as comments.

init --refresh -i rigs.hcl [RIG...] reads the declared rigs again and rewrites the bus addresses
of their slots, after a BIOS update or a card swap moved them. With --baseline SNAPSHOT cards are
followed by their identity, else by their order.`,
		Example: `  preflight init node-a node-b -o rigs.hcl
  preflight init ops@192.0.2.10:2222
  preflight init --refresh -i rigs.hcl node-a --baseline before.tar.gz --write`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.refresh {
				return runRefresh(cmd.Context(), env, f, args)
			}
			return runInit(cmd.Context(), env, f, args)
		},
	}
	fl := c.Flags()
	f.target.add(fl, false)
	fl.StringVarP(&f.out, "output", "o", "", "write the inventory to this new file instead of standard output")
	fl.BoolVar(&f.refresh, "refresh", false, "re-map the bus addresses of an inventory")
	fl.StringVar(&f.baseline, "baseline", "", "snapshot from before the bus numbers moved (--refresh)")
	fl.BoolVar(&f.write, "write", false, "rewrite the inventory file in place (--refresh); default: print it")
	return c
}

func runInit(ctx context.Context, env *environment, f *initFlags, hosts []string) error {
	if f.out != "" {
		if _, err := os.Stat(f.out); err == nil {
			return usage("%s exists; init never overwrites an inventory", f.out)
		}
	}
	var t *target
	var err error
	switch {
	case f.target.local && len(hosts) == 0:
		t, err = f.target.here(nil)
	case len(hosts) == 0:
		return usage("name the hosts: preflight init HOST...")
	default:
		var d *dialer
		d, err = f.target.ssh.dialer(env)
		t = &target{flags: &f.target, source: "ssh", rigs: hostRigs(hosts), dialer: d}
	}
	if err != nil {
		return err
	}
	defer t.close()
	var found []inventory.Found
	code := checks.ExitOK
	for _, r := range t.run(ctx, env, fleet.Options{Look: true, Parallel: f.target.parallel, Tool: version}) {
		if r.Host == nil {
			_, _ = fmt.Fprintf(env.stderr, "preflight: %s: %v\n", r.Rig.Name, r.Err)
			code = checks.ExitUnknown
			continue
		}
		found = append(found, fleet.Found(r))
	}
	if len(found) > 0 {
		write := func(w io.Writer) error { return inventory.WriteFirst(w, found) }
		if f.out == "" {
			err = write(env.stdout)
		} else {
			err = writeWhole(f.out, write)
		}
		if err != nil {
			return failed(err)
		}
	}
	if code != checks.ExitOK {
		return exit{code: code}
	}
	return nil
}

// hostRigs makes undeclared rigs of host arguments; the name is the host without user and port.
func hostRigs(hosts []string) []*inventory.Rig {
	var rigs []*inventory.Rig
	for _, h := range hosts {
		r := &inventory.Rig{Address: h}
		if user, rest, ok := strings.Cut(h, "@"); ok {
			r.SSH.User, r.Address = user, rest
		}
		r.Name = r.Address
		if i := strings.LastIndexByte(r.Name, ':'); i > 0 && strings.Count(r.Name, ":") == 1 {
			r.Name = r.Name[:i]
		}
		rigs = append(rigs, r)
	}
	return rigs
}

func runRefresh(ctx context.Context, env *environment, f *initFlags, globs []string) error {
	if f.target.inventory == "" || f.target.inventory == "-" {
		return usage("--refresh rewrites a file: -i rigs.hcl")
	}
	t, err := f.target.resolve(env, globs, "")
	if err != nil {
		return err
	}
	defer t.close()
	var before *facts.Host
	if f.baseline != "" {
		s, err := loadInput(env, f.baseline)
		if err != nil {
			return usage("%w", err)
		}
		before = facts.FromSnapshot(s)
	}
	sources := map[string][]byte{}
	for _, r := range t.run(ctx, env, fleet.Options{Look: true, Parallel: f.target.parallel, Tool: version}) {
		if r.Host == nil {
			return exit{checks.ExitUnknown, fmt.Errorf("%s: %w", r.Rig.Name, r.Err)}
		}
		if err := refreshOne(env, sources, r, before); err != nil {
			return err
		}
	}
	for path, src := range sources {
		if !f.write {
			if _, err := env.stdout.Write(src); err != nil {
				return failed(err)
			}
			continue
		}
		if err := writeWhole(path, func(w io.Writer) error { _, err := w.Write(src); return err }); err != nil {
			return failed(err)
		}
	}
	return nil
}

// refreshOne rewrites the addresses of one rig in the source that declares it.
func refreshOne(env *environment, sources map[string][]byte, r fleet.Result, before *facts.Host) error {
	path := r.Rig.Range.Filename
	src, ok := sources[path]
	if !ok {
		var err error
		if src, err = os.ReadFile(path); err != nil {
			return failed(err)
		}
	}
	moved, how, err := fleet.Moved(r.Rig, before, r.Host)
	if err != nil {
		return usage("%w", err)
	}
	out, err := inventory.Refresh(src, r.Rig.Name, moved)
	if err != nil {
		return usage("%w", err)
	}
	sources[path] = out
	if bytes.Equal(out, src) {
		_, _ = fmt.Fprintf(env.stderr, "preflight: %s: no address moved\n", r.Rig.Name)
		return nil
	}
	_, _ = fmt.Fprintf(env.stderr, "preflight: %s: %d addresses re-mapped %s\n", r.Rig.Name, len(moved), how)
	return nil
}
