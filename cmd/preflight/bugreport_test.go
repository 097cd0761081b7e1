package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// testdata/bugreport/rig4.log is made up: a rig of four cards as nvidia-bug-report.sh of driver 580 writes it, with the
// journals of X servers, the driver's lines of three boots, and several commands in one section. One card runs x8; another
// fell off the bus in the boot before; an Xid of a program stands in this one.
func TestTwinOfAWholeBugReport(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "bugreport", "rig4.log"))
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	whole := string(raw)
	rows := map[string]struct {
		change func(string) string
		want   map[string]checks.Verdict
	}{
		"whole": {func(s string) string { return s }, map[string]checks.Verdict{
			"pcie.width@0000:81:00.0": checks.Fail, "gpu.health@0000:41:00.0": checks.Warn, "firmware.resizable-bar": checks.Pass, "firmware.above-4g": checks.Pass,
			"ram.per-card": checks.Pass, "ram.channels": checks.Pass, "driver.loaded": checks.Pass, "driver.version": checks.Pass, "driver.persistence": checks.Pass,
			"gpu.power-limit": checks.Pass, "pcie.acs": checks.Pass, "cpu.cores": checks.Pass, "topology.p2p": checks.Unknown, "chassis.slot-spacing": checks.Unknown,
		}},
		"of the boot before only": {dropSection("dmesg:", "  journalctl -b -0:"), map[string]checks.Verdict{"gpu.health@0000:41:00.0": checks.Warn}},
		"in this boot": {func(s string) string {
			return strings.Replace(s, "\n[ 2348.512345] NVRM: Xid (PCI:0000:01:00): 31", "\n[ 2300.000000] NVRM: Xid (PCI:0000:c1:00): 79, pid=1, GPU has fallen off the bus.\n[ 2348.512345] NVRM: Xid (PCI:0000:01:00): 31", 1)
		}, map[string]checks.Verdict{"gpu.health@0000:c1:00.0": checks.Fail, "gpu.health@0000:41:00.0": checks.Warn}},
		"safe mode: nvidia-smi was not run": {dropSection("/usr/bin/nvidia-smi --query"), map[string]checks.Verdict{
			"pcie.width@0000:81:00.0": checks.Fail, "gpu.health@0000:41:00.0": checks.Warn, "gpu.power-limit": checks.Unknown, "driver.loaded": checks.Unknown,
		}},
		"no log at all": {dropSection("dmesg:", "Scanning kernel log files"), map[string]checks.Verdict{"gpu.health": checks.Unknown}},
		"pasted in a forum": {func(s string) string { return "See my report:\n\n```\n" + s + "```\n" }, map[string]checks.Verdict{
			"pcie.width@0000:81:00.0": checks.Fail, "gpu.health@0000:41:00.0": checks.Warn,
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "nvidia-bug-report.log.gz")
			if err := os.WriteFile(path, zipped(t, row.change(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := loadInput(&environment{}, path)
			if err != nil {
				t.Fatal(err)
			}
			h := facts.FromSnapshot(s)
			if len(h.Cards) != 4 || len(h.Conflicts) > 0 {
				t.Errorf("%d cards, conflicts %v", len(h.Cards), h.Conflicts)
			}
			found := map[string]checks.Verdict{}
			for _, f := range checks.Run(&inventory.Rig{Name: "twin"}, h, checks.PolicyFor(nil, 4), cat) {
				found[f.Check+"@"+f.Subject] = f.Verdict
				if v, seen := found[f.Check]; !seen || v == checks.Pass {
					found[f.Check] = f.Verdict
				}
			}
			for id, want := range row.want {
				if found[id] != want {
					t.Errorf("%s: %q, want %q", id, found[id], want)
				}
			}
		})
	}
}

// dropSection takes sections out by the beginning of a line in them.
func dropSection(headings ...string) func(string) string {
	ruler := strings.Repeat("_", 44) + "\n"
	return func(s string) string {
		var kept []string
	sections:
		for _, section := range strings.Split(s, ruler) {
			for _, h := range headings {
				if strings.HasPrefix(strings.TrimSpace(section), strings.TrimSpace(h)) {
					continue sections
				}
			}
			kept = append(kept, section)
		}
		return strings.Join(kept, ruler)
	}
}
