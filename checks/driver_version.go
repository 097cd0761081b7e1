package checks

import (
	"fmt"
	"regexp"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// driver.version: is the driver new enough for the cards and for today's CUDA, and of one piece?
//
//	library and module of different versions                         fail; a program's own library, in a container: a note
//	a card needs the open kernel module, and the log says so         fail
//	the same, only the proprietary module was seen                   warn
//	older than what the cards' generation needs, or too new for it   warn (these floors are recalled)
//	below the floor of CUDA 12 (525.60.13)                           warn: current PyTorch does not start
//	otherwise                                                        pass, with the highest CUDA that it runs
//	version not known, or only the module's                          unknown
//
// Floors are those of CUDA's minor version compatibility: any 12.x program loads from 525.60.13 on, any 13.x from
// 580.65.06 on; the driver that a toolkit was built with is no floor. They stand in the catalogue (drivers.csv).
var driverVersion = Check{ID: "driver.version", Title: "driver version", Decide: decideDriverVersion}

var mismatched = regexp.MustCompile(`client has the version (\d+[\d.]*\d)`)

func decideDriverVersion(s Subject) []Finding {
	v := s.Host.Driver.Version
	if f, bad := mixedVersions(s); bad {
		return []Finding{f}
	}
	if f, bad := closedModule(s); bad {
		return []Finding{f}
	}
	if !v.Known() {
		return []Finding{unknown(rigSubject, "the driver's version is not in the input").knownBy("give nvidia-smi -q, or a snapshot of the host")}
	}
	if f, bad := archFloor(s); bad {
		return []Finding{f}
	}
	cuda := highestCUDA(s, v.Value)
	f := pass(rigSubject, "driver %s, runs programs of CUDA %s", v.Value, cuda).saw(v.Value, "").because(ev(v), ev(s.Host.Driver.CUDA), ev(s.Host.Driver.Open))
	if floor, ok := s.Cat.DriverForCUDA("12"); ok && !atLeast(v.Value, floor.From) {
		return []Finding{warn(rigSubject, "driver %s runs no program of CUDA 12", v.Value).saw(v.Value, floor.From).because(ev(v)).
			fix("driver.version/old", "want", floor.From)}
	}
	if _, gap := s.Host.Gaps[facts.KindSMI]; gap && !strings.Contains(s.Host.Driver.SMIError.Value, "device handle") {
		return []Finding{unknown(rigSubject, "the module is %s; whether the library is of that version is not known", v.Value).saw(v.Value, "").because(ev(v)).knownBy(howToKnow[facts.KindSMI])}
	}
	return []Finding{f.noting("%s", foreignClient(s))}
}

// foreignClient names a library that the module refused although it fits the host's.
func foreignClient(s Subject) string {
	for _, e := range s.Host.Log.Events {
		if m := mismatched.FindStringSubmatch(e.Text); e.Kind == "api-mismatch" && m != nil && m[1] != s.Host.Driver.Version.Value {
			return fmt.Sprintf("a program came with the driver's library %s and was refused: a container that has one of its own", m[1])
		}
	}
	return ""
}

// mixedVersions: the library was updated, and the module of before is still loaded.
func mixedVersions(s Subject) (Finding, bool) {
	for _, e := range s.Host.Log.Events {
		if e.Kind != "api-mismatch" {
			continue
		}
		client := ""
		if m := mismatched.FindStringSubmatch(e.Text); m != nil {
			client = m[1]
		}
		if v := s.Host.Driver.Version.Value; client != "" && v == client || oneVersion(s) {
			continue // said before the module was loaded anew, or of a container that brought a library of its own
		}
		return fail(rigSubject, "the driver's library and the loaded module are of different versions").saw(firstOf(client, "different"), "one version").because(evs(e.Source, e.Text), ev(s.Host.Driver.Version)).fix("driver.version/mismatch"), true
	}
	if e := s.Host.Driver.SMIError; strings.Contains(e.Value, "version mismatch") {
		return fail(rigSubject, "the driver's library and the loaded module are of different versions").saw("different", "one version").because(ev(e), ev(s.Host.Driver.Version)).
			fix("driver.version/mismatch"), true
	}
	return Finding{}, false
}

// oneVersion: nvidia-smi, which loads the host's library, got an answer from the module.
func oneVersion(s Subject) bool {
	_, gap := s.Host.Gaps[facts.KindSMI]
	return !gap && !s.Host.Driver.SMIError.Known() && strings.HasPrefix(s.Host.Driver.CUDA.Source, "nvidia-smi:")
}

// closedModule: cards of some generations are driven by the open kernel module only.
func closedModule(s Subject) (Finding, bool) {
	for _, c := range s.Cards {
		g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value)
		if !ok || !s.Cat.NeedsOpenModule(g.Arch) {
			continue
		}
		for _, e := range s.Host.Log.Events {
			if e.Kind == "open-needed" && !c.MemoryMiB.Known() {
				return fail(c.BDF, "%s needs the open kernel module", c.BDF).saw("proprietary", "open").because(evs(e.Source, e.Text)).fix("driver.version/open-module"), true
			}
		}
		if open, known := s.Host.Driver.Open.Get(); known && !open {
			return warn(c.BDF, "%s needs the open kernel module, another one is loaded", c.BDF).saw("proprietary", "open").because(ev(s.Host.Driver.Open)).fix("driver.version/open-module"), true
		}
	}
	return Finding{}, false
}

// archFloor holds the version against what the cards' generations ask. The figures are recalled, so they warn at most.
func archFloor(s Subject) (Finding, bool) {
	v := s.Host.Driver.Version
	for _, c := range s.Cards {
		g, ok := s.Cat.GPU(c.Product, c.MemoryMiB.Value)
		if !ok {
			continue
		}
		floor, ok := s.Cat.DriverForArch(g.Arch)
		switch {
		case !ok:
		case floor.From != "" && !atLeast(v.Value, floor.From):
			return warn(c.BDF, "driver %s is older than %s needs (%s)", v.Value, g.Name, floor.From).saw(v.Value, floor.From).because(ev(v), evs("catalogue:drivers", floor.Source)).
				fix("driver.version/old", "want", floor.From), true
		case floor.Until != "" && newerBranch(v.Value, floor.Until):
			return warn(c.BDF, "driver %s no longer supports %s; its last branch is %s", v.Value, g.Name, floor.Until).saw(v.Value, floor.Until).
				because(ev(v), evs("catalogue:drivers", floor.Source)).fix("driver.version/too-new", "want", floor.Until), true
		}
	}
	return Finding{}, false
}

// highestCUDA is the newest major version whose programs load on a driver: "12.x".
func highestCUDA(s Subject, version string) string {
	best := catalog.Floor{}
	for _, major := range []string{"11", "12", "13"} {
		if f, ok := s.Cat.DriverForCUDA(major); ok && atLeast(version, f.From) {
			best = f
		}
	}
	if best.Key == "" {
		return "10 at most"
	}
	return fmt.Sprintf("%s.x", best.Key)
}

func atLeast(have, want string) bool {
	ok, err := inventory.VersionAtLeast(have, want)
	return err != nil || ok // a version that cannot be compared is not called old
}

// newerBranch compares the first part only: 580.95 is of branch 580.
func newerBranch(have, branch string) bool {
	first, _, _ := strings.Cut(have, ".")
	return first != branch && atLeast(first, branch)
}
