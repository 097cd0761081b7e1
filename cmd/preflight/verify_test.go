package main

import "testing"

func TestVerifyNamesWhatWasLookedAt(t *testing.T) {
	const command = "preflight check -i rigs.hcl --only pcie.width node-a"
	for _, row := range []struct {
		name  string
		flags *targetFlags
		want  string
	}{
		{"an inventory of another name", &targetFlags{inventory: "lab.hcl"}, "preflight check -i lab.hcl --only pcie.width node-a"},
		{"the demo's", &targetFlags{inventory: "/tmp/x/rigs.hcl", shown: "rigs.hcl"}, command},
		{"this machine", &targetFlags{local: true}, "preflight check --local --only pcie.width"},
		{"saved input without an inventory", &targetFlags{from: []string{"x.gz"}}, "preflight check --local --only pcie.width"},
	} {
		if got := verifyWith(command, "node-a", row.flags); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
