package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"preflight/internal/lang"
	"preflight/internal/report"
)

// outputFlags say where and how a report is written.
type outputFlags struct {
	format  string
	file    string
	verbose bool
	quiet   bool
}

func (o *outputFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&o.format, "format", "text", "text or json")
	fl.StringVarP(&o.file, "output", "o", "", "write the report to this file instead of standard output")
	fl.BoolVarP(&o.verbose, "verbose", "v", false, "show the evidence of every finding")
	fl.BoolVarP(&o.quiet, "quiet", "q", false, "one line a rig")
}

func (o *outputFlags) validate() error {
	if o.format != "text" && o.format != "json" {
		return usage("--format %s: it takes text or json", o.format)
	}
	if o.verbose && o.quiet {
		return usage("-v and -q exclude each other")
	}
	return writable(o.file)
}

// writable finds out before any host is touched whether a report can be written, since a run may take minutes.
func writable(path string) error {
	if path == "" || special(path) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usage("-o %s: it is a directory", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usage("-o %s: %w", path, errors.Unwrap(err))
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// special says whether a path is a device or a pipe (/dev/null, /dev/stdout): those are written to, never replaced.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// language is what the report is written in. A program that reads JSON gets English whatever the locale, unless it
// asks for another language.
func (o *outputFlags) language(env *environment) lang.Language {
	if o.format == "json" && env.language == "" {
		return lang.En
	}
	return env.lang()
}

func (o *outputFlags) write(env *environment, r *report.Report) error {
	if o.file == "" {
		return o.render(env.stdout, r, o.language(env))
	}
	return writeWhole(o.file, func(w io.Writer) error { return o.render(w, r, o.language(env)) })
}

func (o *outputFlags) render(w io.Writer, r *report.Report, l lang.Language) error {
	r = r.In(l)
	if o.format == "json" {
		return report.WriteJSON(w, r)
	}
	width, _ := terminal(w)
	return report.WriteText(w, r, report.TextOptions{Color: colors(w), Width: width, Verbose: o.verbose, Quiet: o.quiet, Lang: l})
}

// writeWhole writes a file beside its place and renames it, so that nothing half-written is ever left.
func writeWhole(path string, fill func(io.Writer) error) (err error) {
	if special(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return errors.Join(fill(f), f.Close())
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	if err = fill(tmp); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = tmp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Chmod(tmp.Name(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
