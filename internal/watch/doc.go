// Package watch keeps the last samples of many rigs, says which are in trouble, draws them as lines for a terminal, and writes
// samples down as they come.
//
// What never lives here: reading hosts (internal/sample), verdicts that decide an exit code (checks).
package watch
