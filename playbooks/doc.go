// Package playbooks provisions rigs: playbooks as HCL data, and the engine that plans, applies, verifies and undoes them.
//
// A playbook's tasks become resources (a file, packages, a unit, a command with a guard), each of which knows its state: what
// is on the host is read first, what should be is computed here, and only the difference is a change. Planning and applying
// share that one path; a second run finds nothing to do. Every change goes through one door ([Door]), under a lock on the
// host, with a backup beside a record of the run, so that it can be undone.
//
// What never lives here: a connection, a verdict, or a word of a report's layout.
package playbooks
