package report

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"preflight/checks"
	"preflight/internal/lang"
)

// Place is where something is declared: a file as the user named it, lines and columns from 1.
type Place struct {
	File                                       string
	StartLine, StartColumn, EndLine, EndColumn int
}

// The parts of SARIF 2.1.0 (OASIS, errata 01) that are written; section numbers are those of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct { // 3.14
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct { // 3.49
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
		Help  sarifText `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct { // 3.20
		Successful    bool                `json:"executionSuccessful"`
		Start         string              `json:"startTimeUtc"`
		Exit          int                 `json:"exitCode"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct { // 3.58
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifResult struct { // 3.27
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Kind         string            `json:"kind"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   sarifProperties   `json:"properties"`
	}
	sarifLocation struct { // 3.28
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct { // 3.29
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct { // 3.30
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"`
	}
	sarifLogical struct { // 3.33
		Name          string `json:"name"`
		QualifiedName string `json:"fullyQualifiedName"`
		Kind          string `json:"kind"`
	}
	sarifProperties struct {
		Rig      string            `json:"rig"`
		Subject  string            `json:"subject"`
		Verdict  checks.Verdict    `json:"verdict"`
		Observed string            `json:"observed"`
		Expected string            `json:"expected"`
		Cause    string            `json:"cause,omitempty"`
		Remedy   string            `json:"remedy,omitempty"`
		Evidence []checks.Evidence `json:"evidence"`
	}
)

// sarifVerdicts are the verdicts that become results, as kind and level (3.27.9, 3.27.10: a level needs the kind "fail").
// A pass and a skip are no results: there is nothing to act on.
var sarifVerdicts = map[checks.Verdict]struct{ kind, level string }{
	checks.Fail:    {"fail", "error"},
	checks.Warn:    {"fail", "warning"},
	checks.Unknown: {"open", "none"},
}

// WriteSARIF writes fails, warns and unknowns as SARIF 2.1.0. A result about something that the inventory declares points
// at the declaration, any other at the rig's block; without an inventory it has its logical place only.
func WriteSARIF(w io.Writer, r *Report, l lang.Language) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: r.Tool.Name, Version: r.Tool.Version, Rules: []sarifRule{}}
	call := sarifInvocation{Successful: r.Run.Exit != checks.ExitTool && !r.Run.Interrupted, Start: r.Run.At.UTC().Format(time.RFC3339), Exit: r.Run.Exit}
	for _, g := range r.Rigs {
		if g.Error != nil {
			call.Notifications = append(call.Notifications, sarifNotification{
				Level: "error", Message: sarifText{Safe(g.Name + ": " + l.Say(g.Error.Phase) + ": " + g.Error.Summary)},
				Locations: []sarifLocation{sarifAt(g, "", "rig")},
			})
		}
		for _, f := range g.Findings {
			if v, told := sarifVerdicts[f.Verdict]; told {
				run.Results = append(run.Results, sarifResult{
					RuleID: f.Check, RuleIndex: run.Tool.Driver.rule(f.Check, l), Kind: v.kind, Level: v.level, Message: sarifText{sarifMessage(g, f)},
					Locations:    []sarifLocation{sarifAt(g, f.Check, f.Subject)},
					Fingerprints: map[string]string{"preflight/v1": g.Name + "/" + f.Fingerprint}, Properties: sarifMore(g, f),
				})
			}
		}
	}
	run.Invocations = []sarifInvocation{call}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// rule is the index of a check among the rules that have results; it adds the check when it is the first.
func (d *sarifDriver) rule(check string, l lang.Language) int {
	for i, r := range d.Rules {
		if r.ID == check {
			return i
		}
	}
	title := check // a site's own rule has no other
	for _, c := range checks.All() {
		if c.ID == check {
			title = l.Say(c.Title)
		}
	}
	d.Rules = append(d.Rules, sarifRule{check, sarifText{Safe(title)}, sarifText{"preflight explain " + check}})
	return len(d.Rules) - 1
}

// sarifMessage is one finding in a few sentences: what is wrong, and the title of its fix.
func sarifMessage(g Rig, f checks.Finding) string {
	parts := []string{g.Name + ": " + f.Summary}
	if f.Known != "" {
		parts = append(parts, f.Known)
	}
	for _, x := range g.Fixes {
		if x.Code == f.Remedy && f.Remedy != "" {
			parts = append(parts, x.Title)
		}
	}
	return Safe(strings.Join(parts, ". "))
}

func sarifMore(g Rig, f checks.Finding) sarifProperties {
	p := sarifProperties{Rig: g.Name, Subject: f.Subject, Verdict: f.Verdict, Observed: f.Observed, Expected: f.Expected, Remedy: f.Remedy, Evidence: f.Evidence}
	if f.Cause != nil {
		p.Cause = *f.Cause
	}
	if p.Evidence == nil {
		p.Evidence = []checks.Evidence{}
	}
	return p
}

func sarifAt(g Rig, check, subject string) sarifLocation {
	at := sarifLocation{Logical: []sarifLogical{{Name: subject, QualifiedName: g.Name + "/" + subject, Kind: "resource"}}}
	p, ok := g.Declared[check]
	if !ok {
		p, ok = g.Declared[""]
	}
	if ok {
		at.Physical = &sarifPhysical{sarifArtifact{fileURI(p.File)}, sarifRegion{p.StartLine, p.StartColumn, p.EndLine, p.EndColumn}}
	}
	return at
}

// fileURI is a relative reference for a relative path, so that a code host finds the file in its checkout.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return u.String()
}
