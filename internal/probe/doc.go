// Package probe measures a rig under load and puts the results into its snapshot, where they are judged like any
// other fact: the same findings come from the live run and from the archive.
//
// [Run] takes the first engine that can: the native helper, which is sent over the same connection and brings all it
// needs but the driver's libraries; nccl-tests and torch, where the host has them. A probe has deadlines at three
// levels (the helper's phases, the shell on the host, the connection here), never disturbs cards that are busy, and
// leaves nothing behind. Links of every hop are sampled while cards copy.
//
// What never lives here: a verdict about what was measured.
package probe
