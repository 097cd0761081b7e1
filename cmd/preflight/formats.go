package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/report/html"
)

// format is one way to write a report.
type format struct {
	name    string
	what    string // for help, a few words
	program bool   // read by programs: English whatever the locale, unless --lang asks for another language
	file    bool   // nothing that a terminal can show
	stream  bool   // written while the run goes on, a line a rig
	write   func(w io.Writer, r *report.Report, l lang.Language, o *outputFlags) error
}

// formats are all of them, in the order of the help.
func formats() []format {
	return []format{
		{name: "text", what: "the view for a terminal", write: writeText},
		{name: "html", what: "one file for people, with pictures", file: true, write: worded(html.Write)},
		{name: "json", what: "everything, after docs/report.schema.json", program: true, write: plain(report.WriteJSON)},
		{name: "jsonl", what: "the same, a line a rig as soon as it is finished", program: true, stream: true},
		{name: "junit", what: "JUnit XML: a suite a rig, a case a check", program: true, write: worded(report.WriteJUnit)},
		{name: "sarif", what: "SARIF 2.1.0, pointing into the inventory", program: true, write: worded(report.WriteSARIF)},
		{name: "markdown", what: "for an issue or a pull request", write: worded(report.WriteMarkdown)},
		{name: "prometheus", what: "for node_exporter's textfile collector", program: true, write: plain(report.WritePrometheus)},
		{name: "csv", what: "a row a finding", program: true, write: plain(report.WriteCSV)},
	}
}

// plain is the writer of a format that depends on the report alone.
func plain(write func(io.Writer, *report.Report) error) func(io.Writer, *report.Report, lang.Language, *outputFlags) error {
	return func(w io.Writer, r *report.Report, _ lang.Language, _ *outputFlags) error { return write(w, r) }
}

// worded is the writer of a format with labels of its own.
func worded(write func(io.Writer, *report.Report, lang.Language) error) func(io.Writer, *report.Report, lang.Language, *outputFlags) error {
	return func(w io.Writer, r *report.Report, l lang.Language, _ *outputFlags) error { return write(w, r, l) }
}

func writeText(w io.Writer, r *report.Report, l lang.Language, o *outputFlags) error {
	width, _ := terminal(w)
	return report.WriteText(w, r, report.TextOptions{Color: colors(w), Width: width, Verbose: o.verbose, Quiet: o.quiet, Lang: l})
}

func formatNames() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// sink is a format and where it goes.
type sink struct {
	format
	path string // "" is standard output
}

// language is what a sink is written in.
func (s sink) language(env *environment) lang.Language {
	if s.program && env.language == "" {
		return lang.En
	}
	return env.lang()
}

// parseFormats reads the value of --format: names separated by commas, each with =FILE where it goes into a file of its
// own. The one without a file goes to standard output, or where -o says.
func parseFormats(value, output string) ([]sink, error) {
	var sinks []sink
	for _, part := range strings.Split(value, ",") {
		name, path, hasPath := strings.Cut(part, "=")
		i := slices.IndexFunc(formats(), func(f format) bool { return f.name == name })
		switch {
		case i < 0:
			return nil, usage("--format %s: it takes %s%s", part, strings.Join(formatNames(), ", "), nearest(name, formatNames()))
		case hasPath && path == "":
			return nil, usage("--format %s: a file is missing after the equals sign", part)
		}
		s := sink{formats()[i], path}
		if !hasPath {
			s.path = output
		}
		for _, other := range sinks {
			switch {
			case other.path != s.path:
			case s.path == "":
				return nil, usage("--format %s: %s and %s would both go to standard output; give one a file: %s=FILE", value, other.name, s.name, s.name)
			case !special(s.path):
				return nil, usage("--format %s: %s and %s would both be written to %s", value, other.name, s.name, s.path)
			}
		}
		sinks = append(sinks, s)
	}
	if output != "" && !slices.ContainsFunc(sinks, func(s sink) bool { return s.path == output }) {
		return nil, usage("-o %s: every format has a file of its own; leave -o out, or one file", output)
	}
	return sinks, nil
}

// refuse says why a sink cannot be written, before any host is touched.
func (s sink) refuse(stdout io.Writer) error {
	if _, tty := terminal(stdout); s.path == "" && s.file && tty {
		return usage("--format %s: nothing for a terminal; write it to a file: --format %s=FILE, or -o FILE", s.name, s.name)
	}
	return writable(s.path)
}

// write writes a report; a file is complete or not there.
func (s sink) write(env *environment, r *report.Report, o *outputFlags) error {
	l := s.language(env)
	fill := func(w io.Writer) error { return s.format.write(w, r.In(l), l, o) }
	if s.path == "" {
		return fill(env.stdout)
	}
	return writeWhole(s.path, fill)
}

// special says whether a path is a device or a pipe (/dev/null, /dev/stdout): those are written to, never replaced.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
