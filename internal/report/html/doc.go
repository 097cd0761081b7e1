// Package html writes a report as one file for people: no network, no script, readable on a phone, on paper, in the dark.
//
// Pictures are inline SVG, a file each, drawn from the facts and figures that the JSON report has; what a picture shows
// stands below it as a table too. Everything that a host said is escaped by html/template and has its control characters
// made visible. The page forbids itself everything but its own style (Content-Security-Policy).
//
// What never lives here: a verdict, or a number that is not in the report.
package html
