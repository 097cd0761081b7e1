package checks

import "preflight/inventory"

// Judged is what the exit code needs to know of one rig.
type Judged struct {
	Rig         *inventory.Rig
	Policy      Policy
	Findings    []Finding
	Unreachable bool
}

// The exit codes of check.
const (
	ExitOK          = 0
	ExitTool        = 1 // the tool itself failed
	ExitUsage       = 2 // bad usage or inventory
	ExitFail        = 3 // at least one fail
	ExitUnknown     = 4 // a required check is unknown, or a rig was unreachable
	ExitInterrupted = 130
)

// FailOn moves the line between good and bad: Fail is the default, Warn counts warnings as fails, Unknown counts every
// unknown as if it were required.
type FailOn Verdict

// ExitCode decides the exit code of a run; a fail wins over an unknown.
func ExitCode(rigs []Judged, on FailOn) int {
	code := ExitOK
	for _, r := range rigs {
		if r.Unreachable {
			code = max(code, ExitUnknown)
		}
		for _, f := range r.Findings {
			switch {
			case f.Verdict == Fail, f.Verdict == Warn && Verdict(on) == Warn:
				return ExitFail
			case f.Verdict != Unknown:
			case Verdict(on) == Unknown, r.Policy.Required(r.Rig, f.Check):
				code = ExitUnknown
			}
		}
	}
	return code
}

// Verdict is the rig's worst verdict. Unknowns that nobody requires are shown, but do not make a rig unknown, unless
// nothing else was found out about it: that it all does not apply would be a guess.
func (r Judged) Verdict() Verdict {
	if r.Unreachable || len(r.Findings) == 0 {
		return Unknown
	}
	worst, unseen := Skip, false
	for _, f := range r.Findings {
		unseen = unseen || f.Verdict == Unknown && !LeftOut(f)
		if f.Verdict != Unknown || r.Policy.Required(r.Rig, f.Check) {
			worst = Worst(worst, f.Verdict)
		}
	}
	if worst == Skip && unseen {
		return Unknown
	}
	return worst
}
