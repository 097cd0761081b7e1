package checks

import (
	"fmt"
	"regexp"
	"strings"

	"preflight/internal/facts"
	"preflight/inventory"
)

// runtime.torch: will the PyTorch on this host train on these cards?
//
//	import fails, or the declared Python has none              fail
//	import does not end                                        unknown
//	built without CUDA                                         fail
//	driver below the floor of its CUDA, and CUDA not available fail (a cuda-compat package lifts the floor: then it is available)
//	no code for a card: no sm_XY it runs, no compute_XY below  fail
//	only PTX fits, and the driver's CUDA is older              fail: PTX is not covered by minor version compatibility
//	CUDA not available although the driver answers             fail
//	fewer devices than cards, CUDA_VISIBLE_DEVICES set         warn
//	fewer devices than cards                                   fail
//	another NCCL is loaded than came with it                   warn
//	otherwise                                                  pass
//	found, but not run                                         what its version proves wrong, else unknown
//	no torch in the usual places                               skip; `python` in the inventory names another
//	torch lies where the Python beside it does not look        skip: left by an older Python
//
// With several environments and none declared, what fails is a warn: nobody said which one trains; and those past the
// third, which are not run, are skipped. Traps: a driver older than torch's CUDA is fine within a major version; sm_86
// code runs on 8.9, but sm_90a on 9.0 only; a wheel of NCCL in an environment whose torch has NCCL linked in is no
// second NCCL.
var runtimeTorch = Check{ID: "runtime.torch", Title: "PyTorch", Decide: decideTorch}

func decideTorch(s Subject) []Finding {
	w := s.Host.Software
	switch {
	case len(w.Torch) == 0 && w.PythonSought.Known():
		return []Finding{skip(rigSubject, "no Python with torch in the usual places").noting("`python` in rigs.hcl names another").because(ev(w.PythonSought))}
	case len(w.Torch) == 0:
		return []Finding{unknown(rigSubject, "which torch is installed is not in the input").knownBy("give the output of python -m torch.utils.collect_env, or a snapshot of the host")}
	}
	sole := len(w.Torch) == 1 || s.Rig.Python != ""
	run := 0
	for _, t := range w.Torch {
		if wasRun(t) {
			run++
		}
	}
	var out []Finding
	for _, t := range w.Torch {
		f := judgeTorch(s, t)
		if f.Verdict == Unknown && !sole && !wasRun(t) && run >= torchRuns {
			f = skip(rigSubject, "torch %s was not run: more than %d Pythons have one", t.Version, torchRuns).noting("`python` in rigs.hcl names the one that trains")
		}
		f = f.because(evs(t.Source, torchWords(t)), ev(s.Host.Driver.Version))
		f.Subject = firstOf(t.Python, rigSubject)
		if f.Verdict == Fail && !sole {
			f.Verdict = Warn
			f = f.noting("there are several Pythons with torch; `python` in rigs.hcl says which one trains")
		}
		out = append(out, f)
	}
	return out
}

// torchRuns is how many Pythons the collector lets describe their torch.
const torchRuns = 3

// wasRun: torch itself was asked, and came to the end: whether CUDA is available is the last that it says. Its version
// alone is read from a file.
func wasRun(t facts.Torch) bool { return t.Works.Known() || t.Error != "" || t.Hung }

// judgeTorch finds the first thing that is wrong with one environment, causes before consequences.
func judgeTorch(s Subject, t facts.Torch) Finding {
	for _, rule := range []func(Subject, facts.Torch) (Finding, bool){
		torchImports, torchHasCUDA, torchDriver, torchArchs, torchAvailable, torchDevices, torchNCCL,
	} {
		if f, wrong := rule(s, t); wrong {
			return f
		}
	}
	if !wasRun(t) {
		return unknown(rigSubject, "torch %s for CUDA %s was found, but not run", firstOf(t.Version, "?"), firstOf(t.CUDA, "?")).
			knownBy("run the check again, or give the output of python -m torch.utils.collect_env")
	}
	f := pass(rigSubject, "torch %s for CUDA %s fits driver and cards", t.Version, t.CUDA).saw(t.Version, "")
	if t.Devices >= 0 {
		f = f.noting("it sees %s", plural(t.Devices, "card"))
	}
	if t.NCCL != "" {
		f = f.noting("NCCL %s", t.NCCL)
	}
	if have := s.Host.Driver.CUDA.Value; have != "" && !atLeastVersion(have, t.CUDA) {
		f = f.noting("the driver's own CUDA is %s: code compiled at run time from PTX may be refused", have)
	}
	return f
}

// noTorch is how Python says that it has none, and a shell that there is no such Python.
var noTorch = regexp.MustCompile(`No module named 'torch'|^[^:]*sh: .*(?:not found|No such file)`)

func torchImports(s Subject, t facts.Torch) (Finding, bool) {
	switch text := t.Error; {
	case t.Hung:
		return unknown(rigSubject, "importing torch did not end within its deadline").knownBy(fmt.Sprintf("run it by hand: %s -c 'import torch'", t.Python)), true
	case text == "":
		return Finding{}, false
	case noTorch.MatchString(text) && s.Rig.Python == "" && !strings.HasPrefix(s.Host.Software.PythonSought.Source, "inventory:"):
		return skip(rigSubject, "the torch beside %s was left by another Python", t.Python).noting("%s", text).noting("`python` in rigs.hcl names another"), true
	case noTorch.MatchString(text):
		return fail(rigSubject, "this Python has no torch: %s", text).saw(text, "torch").fix("runtime.torch/missing", "python", t.Python), true
	default:
		return fail(rigSubject, "torch cannot be imported: %s", text).saw(text, "").fix("runtime.torch/broken", "python", t.Python), true
	}
}

func torchHasCUDA(_ Subject, t facts.Torch) (Finding, bool) {
	if t.CUDA != "" || t.Version == "" {
		return Finding{}, false
	}
	return fail(rigSubject, "torch %s is built without CUDA", t.Version).saw(t.Version, "a build for CUDA").fix("runtime.torch/cpu-build", "python", t.Python), true
}

func torchDriver(s Subject, t facts.Torch) (Finding, bool) {
	driver := s.Host.Driver.Version
	major, _, _ := strings.Cut(t.CUDA, ".")
	floor, ok := s.Cat.DriverForCUDA(major)
	if !ok || !driver.Known() || atLeastVersion(driver.Value, floor.From) || t.Works.Value {
		return Finding{}, false
	}
	return fail(rigSubject, "torch %s is built for CUDA %s, which wants driver %s; %s is loaded", t.Version, t.CUDA, floor.From, driver.Value).saw(driver.Value, "≥ "+floor.From).
		fix("runtime.torch/driver-old", "python", t.Python, "want", floor.From), true
}

func torchArchs(s Subject, t facts.Torch) (Finding, bool) {
	for _, c := range s.Cards {
		g, ok := s.Cat.GPU(c.Product, memoryOf(s, c))
		if !ok || g.Compute == "" {
			continue
		}
		code := archCode(s, t, g.Compute)
		if code == archNative || code == archUnknown {
			continue
		}
		have := s.Host.Driver.CUDA.Value
		if code == archPTX && (have == "" || atLeastVersion(have, t.CUDA)) {
			continue
		}
		f := fail(rigSubject, "torch %s has no code for %s (sm_%s)", t.Version, modelName(c), strings.ReplaceAll(g.Compute, ".", ""))
		if code == archPTX {
			f = fail(rigSubject, "torch %s has only PTX of CUDA %s for %s, which a driver of CUDA %s cannot compile", t.Version, t.CUDA, modelName(c), have)
		}
		if code == archDoubtful || !g.Confirmed["id"] {
			f.Verdict = Warn
		}
		return f.saw(firstOf(strings.Join(t.Archs, " "), "CUDA "+t.CUDA), "sm_"+strings.ReplaceAll(g.Compute, ".", "")).fix("runtime.torch/arch", "python", t.Python, "card", modelName(c)), true
	}
	return Finding{}, false
}

// driverAnswers says whether devices can be expected at all.
func driverAnswers(s Subject) bool {
	d := s.Host.Driver
	return d.Loaded.Or(true) && !d.SMIHung.Value && d.SMIExit.Or(0) == 0 && !d.SMIError.Known()
}

func torchAvailable(s Subject, t facts.Torch) (Finding, bool) {
	if !t.Works.Known() || t.Works.Value {
		return Finding{}, false
	}
	if !driverAnswers(s) {
		return unknown(rigSubject, "torch finds no CUDA, but the driver does not answer either").knownBy("mend the driver first (driver.loaded)"), true
	}
	if t.Visible != nil {
		return hidden(t, 0, attached(s)), true
	}
	return fail(rigSubject, "torch %s finds no CUDA, although the driver answers", t.Version).saw("not available", "available").fix("runtime.torch/no-cuda", "python", t.Python), true
}

// attached is how many devices torch can find: those that the driver lists, else the cards.
func attached(s Subject) int { return s.Host.Driver.Attached.Or(len(s.Host.Cards)) }

func torchDevices(s Subject, t facts.Torch) (Finding, bool) {
	want := attached(s)
	for _, c := range s.Host.Cards {
		if c.MIG.Value {
			return Finding{}, false // a slice is counted once, whatever the number of cards
		}
	}
	switch {
	case t.Devices < 0, t.Devices >= want, !driverAnswers(s):
		return Finding{}, false
	case t.Visible != nil:
		return hidden(t, t.Devices, want), true
	}
	return fail(rigSubject, "torch sees %d of %d cards", t.Devices, want).saw(fmt.Sprint(t.Devices), fmt.Sprint(want)).fix("runtime.torch/fewer", "python", t.Python), true
}

func hidden(t facts.Torch, have, want int) Finding {
	return warn(rigSubject, "CUDA_VISIBLE_DEVICES=%s hides cards from torch: it sees %d of %d", *t.Visible, have, want).saw(fmt.Sprint(have), fmt.Sprint(want)).
		fix("runtime.torch/visible", "python", t.Python)
}

func torchNCCL(_ Subject, t facts.Torch) (Finding, bool) {
	bundled, _, _ := strings.Cut(t.NCCLBuilt, ".post")
	ofWheel := t.NCCLLoaded == "" || strings.Contains(t.NCCLLoaded, "/nvidia/nccl/") // linked in, or from a wheel of another CUDA
	if bundled == "" || t.NCCL == "" || bundled == t.NCCL || ofWheel {
		return Finding{}, false
	}
	return warn(rigSubject, "torch came with NCCL %s, but %s is loaded", bundled, t.NCCL).saw(t.NCCL, bundled).because(evs("proc:maps", t.NCCLLoaded)).
		noting("%s", t.NCCLLoaded).fix("runtime.torch/nccl-override", "python", t.Python), true
}

func torchWords(t facts.Torch) string {
	words := []string{firstOf(t.Version, "?"), fmt.Sprintf("CUDA %s", firstOf(t.CUDA, "none"))}
	if len(t.Archs) > 0 {
		words = append(words, strings.Join(t.Archs, " "))
	}
	if t.Devices >= 0 {
		words = append(words, fmt.Sprintf("%d devices", t.Devices))
	}
	return strings.Join(words, ", ")
}

// atLeastVersion compares runs of digits; what cannot be compared is not called old.
func atLeastVersion(have, want string) bool {
	ok, err := inventory.VersionAtLeast(have, want)
	return err != nil || ok
}
