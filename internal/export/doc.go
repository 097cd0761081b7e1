// Package export writes an inventory in the forms of other tools, so that what exists keeps its place: Ansible's dynamic
// inventory, OpenSSH's client configuration, Slurm's node lists.
//
// What never lives here: a connection, or a verdict.
package export
