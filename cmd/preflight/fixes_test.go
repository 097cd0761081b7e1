package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"preflight/checks"
	"preflight/internal/fleet"
	"preflight/inventory"
)

// One fix stands for all findings with its remedy: it names every card, and claims the figure of none.
func TestAFixForSeveralNamesThemAll(t *testing.T) {
	lowered := func(bdf, limit string) checks.Finding {
		return checks.Finding{Remedy: "gpu.power-limit/lowered", Args: map[string]string{"bdf": bdf, "limit": limit, "default": "450"}}
	}
	cause := "power.psu@rig"
	explained := lowered("0000:f1:00.0", "200")
	explained.Cause = &cause
	for _, row := range []struct {
		name     string
		findings []checks.Finding
		want     map[string]string
	}{
		{"one card", []checks.Finding{lowered("0000:01:00.0", "300")}, map[string]string{"rig": "a", "bdf": "0000:01:00.0", "limit": "300", "default": "450"}},
		{"two cards alike", []checks.Finding{lowered("0000:01:00.0", "300"), lowered("0000:21:00.0", "300")}, map[string]string{"rig": "a", "bdf": "0000:01:00.0, 0000:21:00.0", "limit": "300", "default": "450"}},
		{"two cards that differ", []checks.Finding{lowered("0000:01:00.0", "300"), lowered("0000:21:00.0", "320")}, map[string]string{"rig": "a", "bdf": "0000:01:00.0, 0000:21:00.0", "default": "450"}},
		{"five", []checks.Finding{lowered("0000:01:00.0", "300"), lowered("0000:21:00.0", "300"), lowered("0000:41:00.0", "300"), lowered("0000:61:00.0", "300"), lowered("0000:81:00.0", "300")}, map[string]string{"rig": "a", "bdf": "0000:01:00.0, 0000:21:00.0, 0000:41:00.0, +2", "limit": "300", "default": "450"}},
		{"what another fault explains is not among them", []checks.Finding{lowered("0000:01:00.0", "300"), explained}, map[string]string{"rig": "a", "bdf": "0000:01:00.0", "limit": "300", "default": "450"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := argsOf(fleet.Result{Rig: &inventory.Rig{Name: "a"}, Findings: row.findings}, "gpu.power-limit/lowered")
			if d := cmp.Diff(row.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
