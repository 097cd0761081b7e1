package checks

import (
	"crypto/sha256"
	"encoding/hex"
)

// Verdict is the answer of a check about one subject.
type Verdict string

// The verdicts. Unknown is never counted or shown as a pass.
const (
	Pass    Verdict = "pass"
	Warn    Verdict = "warn"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown" // could not be determined: the finding says why and what would make it known
	Skip    Verdict = "skip"    // does not apply: the finding says why
)

// order ranks verdicts from worst to mildest; a check's verdict on a rig is the worst of its findings.
var order = map[Verdict]int{Fail: 0, Warn: 1, Unknown: 2, Pass: 3, Skip: 4}

// Worst returns the worst verdict, or Skip for none.
func Worst(verdicts ...Verdict) Verdict {
	worst := Skip
	for _, v := range verdicts {
		if order[v] < order[worst] {
			worst = v
		}
	}
	return worst
}

// Evidence is one raw value that a finding rests on.
type Evidence struct {
	Source string `json:"source"`
	Value  string `json:"value"`
}

// Finding is one verdict about one subject.
type Finding struct {
	ID          string     `json:"id"`      // check@subject
	Check       string     `json:"check"`   // "pcie.width"
	Subject     string     `json:"subject"` // "rig", a card's or bridge's BDF, a pair "a+b"
	Verdict     Verdict    `json:"verdict"`
	Observed    string     `json:"observed"`
	Expected    string     `json:"expected"`
	Summary     string     `json:"summary"` // one line
	Note        string     `json:"note"`
	Evidence    []Evidence `json:"evidence"`
	Cause       *string    `json:"cause"`  // id of the finding that explains this one
	Remedy      string     `json:"remedy"` // code of remediation; every warn and fail has one
	Fingerprint string     `json:"fingerprint"`

	// Args are the values that a remedy's steps are filled with ("bdf", "parent", "cap_watts" …).
	Args map[string]string `json:"args,omitempty"`
	// Known is, for an unknown, what would make it known ("declare psu {} in rigs.hcl").
	Known string `json:"make_known,omitempty"`
}

// fingerprint is stable across runs: it holds what the finding is about, not what was measured.
func fingerprint(check, subject, remedy string) string {
	sum := sha256.Sum256([]byte(check + "\x00" + subject + "\x00" + remedy))
	return hex.EncodeToString(sum[:8])
}
