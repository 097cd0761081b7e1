package checks

// consequence says that a finding of `effect` is explained by one of `cause`. Codes are remedy codes; an empty code
// matches any warn or fail of the check.
type consequence struct {
	effect, effectCode string
	cause, causeCode   string
	sameCard           bool // both must be about the same card
}

// consequences in order of preference: the first cause that is present explains the effect.
var consequences = []consequence{
	{effect: "gpu.count", effectCode: "gpu.count/driver-lost", cause: "firmware.above-4g", causeCode: "firmware.above-4g/unassigned", sameCard: true},
	{effect: "gpu.count", effectCode: "gpu.count/driver-lost", cause: "driver.loaded", sameCard: true},
	{effect: "gpu.count", effectCode: "gpu.count/missing-card", cause: "firmware.above-4g", causeCode: "firmware.above-4g/off"},
	{effect: "driver.loaded", effectCode: "driver.loaded/unbound", cause: "firmware.above-4g", causeCode: "firmware.above-4g/unassigned", sameCard: true},
	{effect: "pcie.width", effectCode: "pcie.width/off-bus", cause: "driver.loaded", causeCode: "driver.loaded/card-lost", sameCard: true},
	{effect: "firmware.resizable-bar", cause: "firmware.above-4g"},
	{effect: "pcie.width", effectCode: "pcie.width/slot-limit", cause: "cpu.lanes"},
	{effect: "nccl.all-reduce", cause: "driver.loaded"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/ranks", cause: "gpu.count"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/hang", cause: "topology.p2p"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/wrong-data", cause: "topology.p2p"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.width"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.speed"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.uplink"},
}

// link points each consequence at its root cause, in place.
func link(all []Finding) {
	for i := range all {
		e := &all[i]
		if e.Verdict != Warn && e.Verdict != Fail {
			continue
		}
		for _, rule := range consequences {
			if e.Check != rule.effect || (rule.effectCode != "" && e.Remedy != rule.effectCode) {
				continue
			}
			if id := causeOf(all, *e, rule); id != "" {
				e.Cause = &id
				break
			}
		}
	}
}

func causeOf(all []Finding, e Finding, rule consequence) string {
	for _, c := range all {
		bad := c.Verdict == Fail || c.Verdict == Warn
		if bad && c.Check == rule.cause && c.ID != e.ID && (rule.causeCode == "" || c.Remedy == rule.causeCode) && (!rule.sameCard || c.Subject == e.Subject) {
			return c.ID
		}
	}
	return ""
}
