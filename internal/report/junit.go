package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"preflight/checks"
	"preflight/internal/lang"
)

// The elements of the JUnit form that build servers read (Jenkins' junit-10.xsd is the strictest of them).
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitOutcome `xml:"failure"`
		Error   *junitOutcome `xml:"error"`
		Skipped *junitOutcome `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitOutcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a suite for each rig and a case for each check. JUnit knows neither warn nor unknown: a warn is a case
// that passed and says so in its output; an unknown that is required, and a rig that was not reached, is an error; an
// unknown that nobody requires is skipped, never passed.
func WriteJUnit(w io.Writer, r *Report, l lang.Language) error {
	out := junitSuites{Name: "preflight"}
	for _, g := range r.Rigs {
		s := junitRig(g, l)
		s.Timestamp = r.Run.At.Format("2006-01-02T15:04:05")
		out.Suites = append(out.Suites, s)
		out.Tests, out.Failures, out.Errors = out.Tests+s.Tests, out.Failures+s.Failures, out.Errors+s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitRig(g Rig, l lang.Language) junitSuite {
	s := junitSuite{Name: Safe(g.Name)}
	if g.Error != nil {
		message := Safe(l.Say(g.Error.Phase) + ": " + g.Error.Summary)
		s.Cases = append(s.Cases, junitCase{
			Name: "connection", Class: Safe(g.Name),
			Error: &junitOutcome{Message: message, Type: "unreachable", Text: safeLines(append([]string{message}, g.Error.Advice...))},
		})
	}
	for _, list := range byCheck(g.Findings) {
		s.Cases = append(s.Cases, junitCheck(g, list))
	}
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

// junitCheck is the case of one check: the worst of its findings decides, all that are as bad are told.
func junitCheck(g Rig, list []checks.Finding) junitCase {
	c := junitCase{Name: list[0].Check, Class: Safe(g.Name)}
	worst := worstOf(list)
	var lines []string
	first := ""
	for _, f := range list {
		if f.Verdict == worst {
			if first == "" {
				first = Safe(f.Summary)
			}
			lines = append(lines, details(f)...)
		}
	}
	outcome := &junitOutcome{Message: first, Type: string(worst), Text: safeLines(lines)}
	switch {
	case worst == checks.Fail:
		c.Failure = outcome
	case worst == checks.Unknown && slices.Contains(g.Required, c.Name):
		c.Error = outcome
	case worst == checks.Unknown:
		c.Skipped = &junitOutcome{Message: "unknown: " + first}
	case worst == checks.Skip:
		c.Skipped = &junitOutcome{Message: first}
	case worst == checks.Warn:
		c.Out = "warn: " + safeLines(lines)
	default:
		c.Out = safeLines(lines)
	}
	return c
}

// details are a finding's lines for formats that have room for text only.
func details(f checks.Finding) []string {
	lines := []string{f.Summary}
	if f.Expected != "" {
		lines = append(lines, fmt.Sprintf("  observed %s, expected %s", f.Observed, f.Expected))
	}
	for _, s := range []string{f.Note, f.Known} {
		if s != "" {
			lines = append(lines, "  "+s)
		}
	}
	if f.Cause != nil {
		lines = append(lines, "  cause: "+*f.Cause)
	}
	for _, e := range f.Evidence {
		lines = append(lines, "  "+e.Source+" = "+e.Value)
	}
	return lines
}

func safeLines(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = Safe(l)
	}
	return strings.Join(out, "\n")
}

// byCheck groups findings by their check, in the order of the report.
func byCheck(fs []checks.Finding) [][]checks.Finding {
	var out [][]checks.Finding
	at := map[string]int{}
	for _, f := range fs {
		i, ok := at[f.Check]
		if !ok {
			i = len(out)
			at[f.Check] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

func worstOf(fs []checks.Finding) checks.Verdict {
	worst := checks.Skip
	for _, f := range fs {
		worst = checks.Worst(worst, f.Verdict)
	}
	return worst
}
