package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	fl.StringVar(&o.format, "format", "text", "formats, each with a file of its own where it has one: text,json=FILE …; there are "+strings.Join(formatNames(), ", "))
	fl.StringVarP(&o.file, "output", "o", "", "write the format that has no file to this one instead of standard output")
	fl.BoolVarP(&o.verbose, "verbose", "v", false, "show the evidence of every finding")
	fl.BoolVarP(&o.quiet, "quiet", "q", false, "one line a rig")
}

// sinks are where a report goes; every mistake is found before any host is touched.
func (o *outputFlags) sinks(env *environment) ([]sink, error) {
	if o.verbose && o.quiet {
		return nil, usage("-v and -q exclude each other")
	}
	sinks, err := parseFormats(o.format, o.file)
	if err != nil {
		return nil, err
	}
	for _, s := range sinks {
		if err := s.refuse(env.stdout); err != nil {
			return nil, err
		}
	}
	return sinks, nil
}

// writable finds out before any host is touched whether a report can be written, since a run may take minutes.
func writable(path string) error {
	if path == "" || special(path) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usage("%s: it is a directory, and a report is one file", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usage("%s cannot be written: %w", path, errors.Unwrap(err))
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// write writes a report to every sink. Remedies are written in each language, so a report is built for each that is wanted.
// What can be written is, though another sink fails.
func (o *outputFlags) write(env *environment, sinks []sink, build func(lang.Language) (*report.Report, error)) error {
	built := map[lang.Language]*report.Report{}
	var failures []error
	for _, s := range sinks {
		if s.stream {
			continue // it is written as the run goes on
		}
		l := s.language(env)
		if built[l] == nil {
			r, err := build(l)
			if err != nil {
				return err
			}
			built[l] = r
		}
		if err := s.write(env, built[l], o); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
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
