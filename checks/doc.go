// Package checks decides, from facts alone, whether a rig is fit for training.
//
// There is a file for each check; [All] lists them. A check is a pure function from a [Subject] (the declared rig,
// the observed host, the policy) to findings: same input, same findings. [Run] runs all of them over one rig and
// links consequences to their root cause.
//
// What never lives here: reading a host, how a finding is mended (a check names a remedy by its code and knows no
// more), and how it is shown.
package checks
