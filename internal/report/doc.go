// Package report shows judged rigs to people and to programs: a file for each format.
//
// A [Report] is the one model behind all of them; it is built from findings that are final. Everything that came
// from a host is shown with its control characters made visible.
//
// What never lives here: a verdict, an exit code, or anything that reads a host.
package report
