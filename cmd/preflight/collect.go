package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/fleet"
	"preflight/inventory"
)

func newCollect(env *environment) *cobra.Command {
	t := &targetFlags{}
	var out string
	c := &cobra.Command{
		Use:   "collect [RIG...]",
		Short: "Save what a rig shows as a snapshot, to be judged later or elsewhere",
		Long: `collect reads rigs like check does, without judging them, and writes one snapshot a rig.
Serial numbers, UUIDs and MAC addresses are blanked unless --serials is given.`,
		Example: `  preflight collect -i rigs.hcl node-a -o node-a.tar.gz
  preflight collect -i rigs.hcl -o snapshots/
  preflight collect --local -o here.tar.gz`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCollect(cmd.Context(), env, t, out, args) },
	}
	t.add(c.Flags(), false)
	c.Flags().StringVarP(&out, "output", "o", ".", "a directory, or for one rig a file; - for standard output")
	return c
}

func runCollect(ctx context.Context, env *environment, t *targetFlags, out string, globs []string) error {
	if out == "" {
		return usage("-o wants a directory, a file or -")
	}
	tg, err := t.resolve(env, globs, "")
	if err != nil {
		return err
	}
	defer tg.close()
	info, statErr := os.Stat(out)
	dir := statErr == nil && info.IsDir() || out != "-" && out[len(out)-1] == '/'
	if len(tg.rigs) > 1 && !dir {
		return usage("-o %s: %d rigs need a directory", out, len(tg.rigs))
	}
	var save func(*inventory.Rig, *facts.Snapshot) error
	switch {
	case dir:
		if save, err = saver(out); err != nil {
			return err
		}
	case out == "-":
		save = func(_ *inventory.Rig, s *facts.Snapshot) error { return facts.Save(env.stdout, s) }
	default:
		save = func(_ *inventory.Rig, s *facts.Snapshot) error {
			return writeWhole(out, func(w io.Writer) error { return facts.Save(w, s) })
		}
	}
	code := checks.ExitOK
	for _, r := range tg.run(ctx, env, fleet.Options{Raw: true, Parallel: t.parallel, Serials: t.serials, Tool: version, Save: save}) {
		switch {
		case r.Snapshot == nil:
			_, _ = fmt.Fprintf(env.stderr, "preflight: %s: %v\n", r.Rig.Name, r.Err)
			code = checks.ExitUnknown
		case r.Err != nil:
			return failed(r.Err)
		case out != "-":
			path := out
			if dir {
				path = filepath.Join(out, r.Rig.Name+".tar.gz")
			}
			_, _ = fmt.Fprintf(env.stderr, "preflight: %s: %s\n", r.Rig.Name, path)
		}
	}
	if ctx.Err() != nil {
		code = checks.ExitInterrupted
	}
	if code != checks.ExitOK {
		return exit{code: code}
	}
	return nil
}
