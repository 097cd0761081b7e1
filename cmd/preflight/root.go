package main

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"preflight/internal/lang"
	"preflight/internal/progress"
)

// environment is where a command reads and writes.
type environment struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	language string // --lang as given; "" is the locale's
	show     *progress.Shower
	asides   func(do func()) // set while something else than progress is drawn on the terminal
	noLive   bool            // something else is written to the terminal as the run goes on
}

// progress begins to show what rigs are at, on standard error; calm ends it.
func (e *environment) progress(rigs int) *progress.Shower {
	_, tty := terminal(e.stderr)
	e.show = progress.New(e.stderr, progress.Options{
		Live: tty && !e.noLive && os.Getenv("TERM") != "dumb", Color: colors(e.stderr), Total: rigs, Size: func() (int, int) { return size(e.stderr) },
	})
	return e.show
}

func (e *environment) calm() {
	e.show.Close()
	e.show = nil
}

// aside writes to the terminal, or reads from it, while nothing is drawn there.
func (e *environment) aside(do func()) {
	switch {
	case e.asides != nil:
		e.asides(do)
		return
	case e.show == nil:
		do()
		return
	}
	e.show.Aside(do)
}

// lang is the language for people: what was asked for, else the locale's.
func (e *environment) lang() lang.Language {
	if l, err := lang.Parse(e.language); err == nil {
		return l
	}
	return lang.FromEnv(os.Getenv)
}

// terminal says whether a stream is one, and how wide.
func terminal(w any) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _ = size(w)
	return width, true
}

// size is that of a terminal, 80 × 24 where it does not say.
func size(w any) (columns, lines int) {
	if f, isFile := w.(*os.File); isFile {
		columns, lines, _ = term.GetSize(int(f.Fd()))
	}
	if columns <= 0 {
		columns = 80
	}
	if lines <= 0 {
		lines = 24
	}
	return columns, lines
}

// colors follows NO_COLOR (no-color.org) and TERM=dumb.
func colors(w any) bool {
	_, tty := terminal(w)
	return tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "preflight",
		Short: "Find out over SSH whether GPU rigs are fit for training, and how to mend them",
		Long: `preflight connects to GPU rigs over SSH, needs nothing installed there, tells what is
wrong with evidence, and says how to mend it.

Start with:
  preflight init HOST...           write a first inventory from what it finds
  preflight check -i rigs.hcl      judge every rig of an inventory
  preflight demo                   see it work on simulated rigs`,
		Example: `  preflight check -i rigs.hcl
  preflight check --local
  preflight explain pcie.width`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&env.language, "lang", "", "language of reports and remedies: en or zh (default: the locale's)")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if env.language == "" {
			return nil
		}
		if _, err := lang.Parse(env.language); err != nil {
			return usage("--lang: %w", err)
		}
		return nil
	}
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(newAccept(env), newCatalog(env), newCheck(env), newCollect(env), newDiff(env), newExplain(env), newFit(env), newFix(env), newInit(env), newInventory(env), newProbe(env), newProvision(env), newWatch(env), newDemo(env), newMan(), newVersion(env))
	completions(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w\nsee: %s --help", err, strings.TrimSpace(c.CommandPath()))
	})
	return root
}
