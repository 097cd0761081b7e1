// Package remote reaches rigs over SSH and runs one script on each: authentication, host keys, jump hosts, deadlines
// and root by sudo.
//
// A [Dialer] serves a whole run: it asks each secret once and shares one connection to each jump host. How a rig is
// reached is settled from the inventory, then the command line, then ssh_config, then OpenSSH's defaults. It differs
// from ssh(1) where a check of many rigs must: nobody is asked about host keys, `StrictHostKeyChecking no` accepts
// unknown keys and never changed ones, and a keyword that matters and is not honoured is named.
//
// Secrets never enter argv, the environment, logs or errors. A sudo password goes down a script's standard input, and
// only to a host that has refused `sudo -n`; what sudo leaves of it unread is dropped before a shell could run it.
//
// What never lives here: what the script is, and what its output means.
package remote
