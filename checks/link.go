package checks

import (
	"slices"
	"strings"
)

// consequence says that a finding of `effect` is explained by one of `cause`. Codes are remedy codes; an empty code
// matches any warn or fail of the check.
type consequence struct {
	effect, effectCode string
	cause, causeCode   string
	sameCard           bool // both must be about the same card; a finding about a pair is about either
}

// consequences in order of preference: the first cause that is present explains the effect.
var consequences = []consequence{
	{effect: "gpu.count", effectCode: "gpu.count/driver-lost", cause: "gpu.health", causeCode: "gpu.health/off-bus", sameCard: true},
	{effect: "gpu.health", effectCode: "gpu.health/off-bus", cause: "pcie.errors", causeCode: "pcie.errors/uncorrected", sameCard: true},
	{effect: "gpu.health", effectCode: "gpu.health/off-bus", cause: "power.psu", causeCode: "power.psu/short"},
	{effect: "driver.version", effectCode: "driver.version/mismatch", cause: "driver.loaded", causeCode: "driver.loaded/version-mismatch"},
	{effect: "driver.version", effectCode: "driver.version/open-module", cause: "driver.loaded", causeCode: "driver.loaded/open-module"},
	{effect: "gpu.throttle", effectCode: "gpu.throttle/power-brake", cause: "power.psu", causeCode: "power.psu/short"},
	{effect: "gpu.throttle", effectCode: "gpu.throttle/thermal", cause: "chassis.slot-spacing", causeCode: "chassis.slot-spacing/tight", sameCard: true},
	{effect: "gpu.power-limit", effectCode: "gpu.power-limit/lowered", cause: "power.psu", causeCode: "power.psu/cap-not-permanent"},
	{effect: "pcie.errors", effectCode: "pcie.errors/link", cause: "pcie.width", causeCode: "pcie.width/slot-fault", sameCard: true},
	{effect: "firmware.resizable-bar", effectCode: "firmware.resizable-bar/enable", cause: "firmware.boot-mode"},
	{effect: "firmware.above-4g", effectCode: "firmware.above-4g/off", cause: "firmware.boot-mode"},
	{effect: "topology.p2p", effectCode: "topology.p2p/required", cause: "firmware.iommu"},
	{effect: "nccl.all-reduce", cause: "gpu.health", causeCode: "gpu.health/off-bus"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/hang", cause: "firmware.iommu", causeCode: "firmware.iommu/faults"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/wrong-data", cause: "firmware.iommu", causeCode: "firmware.iommu/faults"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/wrong-data", cause: "gpu.health", causeCode: "gpu.health/memory"},
	{effect: "gpu.count", effectCode: "gpu.count/driver-lost", cause: "firmware.above-4g", causeCode: "firmware.above-4g/unassigned", sameCard: true},
	{effect: "gpu.count", effectCode: "gpu.count/driver-lost", cause: "driver.loaded", sameCard: true},
	{effect: "gpu.count", effectCode: "gpu.count/missing-card", cause: "firmware.above-4g", causeCode: "firmware.above-4g/off"},
	{effect: "driver.loaded", effectCode: "driver.loaded/unbound", cause: "firmware.above-4g", causeCode: "firmware.above-4g/unassigned", sameCard: true},
	{effect: "pcie.width", effectCode: "pcie.width/off-bus", cause: "gpu.health", causeCode: "gpu.health/off-bus", sameCard: true},
	{effect: "firmware.resizable-bar", effectCode: "firmware.resizable-bar/enable", cause: "firmware.above-4g"},
	{effect: "firmware.resizable-bar", effectCode: "firmware.resizable-bar/partial", cause: "firmware.above-4g"},
	{effect: "pcie.width", effectCode: "pcie.width/slot-limit", cause: "cpu.lanes"},
	{effect: "nccl.all-reduce", cause: "driver.loaded"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/ranks", cause: "gpu.count"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/hang", cause: "topology.p2p"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/hang", cause: "pcie.acs"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/hang", cause: "firmware.iommu"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/wrong-data", cause: "topology.p2p"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/wedged", cause: "topology.p2p"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/error", cause: "topology.p2p", causeCode: "topology.p2p/corrupt"},
	{effect: "link.bandwidth", cause: "pcie.errors", sameCard: true},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.width"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.speed"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.uplink"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "link.bandwidth"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.errors"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "pcie.acs"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "firmware.iommu"},
	{effect: "nccl.all-reduce", effectCode: "nccl.all-reduce/slow", cause: "gpu.throttle"},
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
		if bad && c.Check == rule.cause && c.ID != e.ID && (rule.causeCode == "" || c.Remedy == rule.causeCode) && (!rule.sameCard || slices.Contains(strings.Split(c.Subject, "+"), e.Subject)) {
			return c.ID
		}
	}
	return ""
}
