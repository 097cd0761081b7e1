// Package diff compares two states of rigs: what changed in their facts, and what that means in findings.
//
// A state is a tree of facts as the JSON report has it, with the findings, so that a report of last year and a rig of today
// are compared by the same rules. What matters is a table of values (values.go); what is not in it (temperatures, uptime, idle
// link speeds, counters) is noise. Cards are followed by identity, bridges by their way from the root port, so that moved bus
// numbers change nothing else.
//
// A value that is known on one side only is no change of value: it is told as no longer seen, or now seen.
//
// What never lives here: a threshold of a check, a file, or a word of a report's layout.
package diff
