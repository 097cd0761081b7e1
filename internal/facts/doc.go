// Package facts holds what was observed of a host and how it is read from raw bytes.
//
// A [Snapshot] is the raw evidence: files, links and command output as the host gave them. [FromSnapshot]
// turns it into a [Host], in which every value carries its source and an absent value is absent, never zero.
// There is a file for each source (sysfs, config space, SMBIOS, nvidia-smi, kernel log …).
//
// What never lives here: a verdict, a threshold, or anything that talks to a host.
package facts
