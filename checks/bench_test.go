package checks

import "testing"

// BenchmarkJudge1000Hosts is one judgement of a thousand 8-card hosts; the target is under 2 s on two cores.
func BenchmarkJudge1000Hosts(b *testing.B) {
	rig, h := goodRig(8), goodHost(8)
	for b.Loop() {
		for range 1000 {
			judge(rig, h)
		}
	}
}
