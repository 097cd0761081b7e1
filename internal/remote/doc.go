// Package remote reaches rigs over SSH and runs one script on each: authentication, host keys, jump hosts, deadlines
// and root by sudo.
//
// A [Dialer] serves a whole run: it asks each secret once and shares one connection to each jump host. Secrets never
// enter argv, the environment, logs or errors.
//
// What never lives here: what the script is, and what its output means.
package remote
