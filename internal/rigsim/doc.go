// Package rigsim builds simulated rigs: from a short description it lays out the files that Linux would show of such
// a machine (sysfs, procfs, SMBIOS, configuration space) and stub tools that print what the real ones print, and it
// serves them over a real SSH handshake on loopback, without root.
//
// Nothing here answers for the collector: the server runs whatever script it is sent, with PREFLIGHT_ROOT pointing at
// the files and the stubs first in PATH. A fault of [Faults] changes the description before the files are written, so
// that its traces agree with each other wherever a real fault leaves any.
//
// The way from description to files: [Spec] → machine (addresses, links, cards; machine.go) → faults (faults.go) →
// files (sysfs.go, proc.go, config.go, smbios.go, smi.go) and stubs (templates/). hardware.go and boards.go hold the
// parts that a rig is made of.
//
// What never lives here: a verdict, a snapshot, or anything that production code needs.
package rigsim
