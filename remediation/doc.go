// Package remediation says how a fault is mended: numbered steps for a person, each with a command, a BIOS menu path
// or something that hands do.
//
// Remedies are data, one file in data/ for each group of checks, looked up by the code that a finding carries and
// filled with the finding's values. BIOS menu paths come from data/bios_paths.csv by the board's vendor and name;
// most of them are known from public notes and not from vendors, so they are leads ("usually under"), and a board
// that is not in the table gets the names that its makers use for the option.
//
// What never lives here: verdicts, and anything that changes a host. Steps are shown, not run.
package remediation
