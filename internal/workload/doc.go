// Package workload is the arithmetic behind `preflight fit`: what a training or serving job needs in memory, what its
// cards say to each other in each step, how long that takes, and what it costs.
//
// Every number is a [Line] or a field with its formula and its source; docs/fit.md derives them. Symbols in formulas:
// P parameters, n cards, L layers, h hidden size, a attention heads, k key-value heads, d size of a head, f size of the
// feed-forward, v vocabulary, s tokens of a sequence, b sequences on a card at once, r requests, B bytes.
//
// What lives here: pure functions of a workload, a rig in a few figures, and a policy. What never will: facts of hosts,
// findings, flags, files other than the embedded tables.
package workload
