// Package probe measures a rig under load and puts the results into its snapshot, where they are judged like any
// other fact: the same findings come from the live run and from the archive.
//
// [NCCL] runs an all-reduce over all cards with an engine that the host has, while the links of every hop are
// sampled. A probe has deadlines at two levels (the script on the host, the connection here), never disturbs cards
// that are busy, and leaves nothing behind.
//
// What never lives here: a verdict about what was measured.
package probe
