// Package integration holds the tests that need a real SSH server: OpenSSH's own sshd on loopback, as it stands on
// rigs, in front of hosts that are chroots with busybox and the files of a simulated rig. The shipped collector runs
// there through [preflight/internal/remote] and [preflight/internal/fleet], as it does on a rig.
//
// A host lives in a mount and a process namespace of its own, so that ending its first process ends all of it. That
// needs root; without root the tests that only log in run sshd as the present user, and the others are skipped and
// say so. Nothing here reads or writes the home of the user who runs it, or talks to any address but 127.0.0.1.
//
// What never lives here: code that ships, tests of one package alone.
package integration
