// Package sample watches a host's cards: one long-lived reader on the host, lines over one connection, a value for each
// metric of each card every few seconds, and what the kernel says about them meanwhile.
//
// The reader (reader.sh) keeps one nvidia-smi running and starts no process for a sample. A value that the driver does not
// give is absent, which is not zero. What a host prints is bounded and parsed without trust.
//
// What never lives here: verdicts about what was seen (checks), drawing (cmd/preflight, internal/report).
package sample
