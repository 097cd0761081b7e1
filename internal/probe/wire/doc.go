// Package wire is the language between the controller and the native helper (cmd/preflight-probe): JSON, one value a
// line. The controller writes one [Request] a line to the helper's standard input and keeps the input open: its end is
// the order to stop at once. The helper answers with [Line]s on its standard output: one when a phase begins, one when
// it ends, one for each measured figure, and for each request a last one whose phase is [PhaseDone]. A reader that
// stops hearing anything therefore knows where the host is stuck.
//
// Further requests may follow on the same input after a PhaseDone, so that a run is repeated with another environment
// without sending the helper again.
//
// What never lives here: code that touches a card, or a verdict about what was measured.
package wire
