package report

import (
	"encoding/csv"
	"io"
	"strings"

	"preflight/checks"
)

// csvColumns are the columns, a row a finding.
var csvColumns = []string{"rig", "address", "check", "subject", "verdict", "observed", "expected", "summary", "note", "make_known", "cause", "remedy", "fix", "fingerprint"}

// WriteCSV writes a row for each finding (RFC 4180), and one with an empty check for a rig that gave no facts. What a
// spreadsheet would run as a formula is written as text.
func WriteCSV(w io.Writer, r *Report) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvColumns); err != nil {
		return err
	}
	for _, g := range r.Rigs {
		for _, row := range csvRig(g) {
			for i := range row {
				row[i] = csvText(row[i])
			}
			if err := c.Write(row); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

func csvRig(g Rig) [][]string {
	var rows [][]string
	if g.Error != nil {
		rows = append(rows, []string{g.Name, g.Address, "", "rig", string(checks.Unknown), "", "", g.Error.Phase + ": " + g.Error.Summary, "", strings.Join(g.Error.Advice, "; "), "", "", "", ""})
	}
	titles := map[string]string{}
	for _, f := range g.Fixes {
		titles[f.Code] = f.Title
	}
	for _, f := range g.Findings {
		cause := ""
		if f.Cause != nil {
			cause = *f.Cause
		}
		rows = append(rows, []string{g.Name, g.Address, f.Check, f.Subject, string(f.Verdict), f.Observed, f.Expected, f.Summary, f.Note, f.Known, cause, f.Remedy, titles[f.Remedy], f.Fingerprint})
	}
	return rows
}

// csvText keeps a cell from being run: spreadsheets take =, +, -, @ at the beginning for a formula.
func csvText(s string) string {
	s = Safe(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
