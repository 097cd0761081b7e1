package checks

import (
	"fmt"
	"regexp"
	"strings"

	"preflight/internal/facts"
)

// driver.loaded: does the NVIDIA driver run every card, and does nvidia-smi answer?
//
//	nvidia-smi does not come back                          fail: driver wedged
//	it answers for no card, since one is lost              unknown: gpu.health judges the card
//	nouveau, vfio-pci or nothing bound to a card           fail
//	library and module of different versions               fail
//	module not loaded, or no driver installed              fail
//	nvidia-smi says by its exit status what is wrong       fail
//	driver answers for its cards                           pass
//	module loaded, nvidia-smi not read                     unknown
//	only a kernel log, and it says that no card came up    fail
//	neither the kernel nor nvidia-smi was asked            unknown
var driverLoaded = Check{ID: "driver.loaded", Title: "NVIDIA driver", Decide: decideDriver}

func decideDriver(s Subject) []Finding {
	d := s.Host.Driver
	if d.SMIHung.Value {
		return []Finding{fail(rigSubject, "nvidia-smi did not answer within its deadline").saw("hung", "answers").because(ev(d.SMIHung)).fix("driver.loaded/hung")}
	}
	var out []Finding
	for _, c := range s.Cards {
		if f, bad := cardDriver(s, c); bad {
			out = append(out, f)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, trouble := range []func(Subject) (Finding, bool){smiTrouble, smiExit} {
		if f, bad := trouble(s); bad {
			return []Finding{f}
		}
	}
	return []Finding{driverState(s)}
}

// cardDriver looks at one card: still on the bus, and bound to the right driver.
func cardDriver(s Subject, c facts.Card) (Finding, bool) {
	switch {
	case c.Link.Broken.Value || c.Sick.Known(): // gpu.health says so
		return Finding{}, false
	case !c.Driver.Known() || c.Driver.Value == "nvidia":
		return Finding{}, false
	case strings.HasPrefix(c.Driver.Value, "nouveau") || c.Driver.Value == "nova_core":
		return fail(c.BDF, "%s is bound to %s", c.BDF, c.Driver.Value).saw(c.Driver.Value, "nvidia").because(ev(c.Driver)).fix("driver.loaded/nouveau", "bdf", c.BDF), true
	case strings.HasPrefix(c.Driver.Value, "vfio"):
		return fail(c.BDF, "%s is reserved for a virtual machine (%s)", c.BDF, c.Driver.Value).saw(c.Driver.Value, "nvidia").because(ev(c.Driver)).fix("driver.loaded/vfio", "bdf", c.BDF), true
	case c.Driver.Value == "" && s.Host.Driver.Loaded.Value:
		return fail(c.BDF, "%s has no driver bound", c.BDF).saw("none", "nvidia").because(ev(c.Driver)).noting("%s", logHint(s)).fix(unboundFix(s), "bdf", c.BDF), true
	}
	return Finding{}, false
}

// unboundFix tells a card that needs the open module from one that simply was not bound.
func unboundFix(s Subject) string {
	for _, e := range s.Host.Log.Events {
		if e.Kind == "open-needed" {
			return "driver.loaded/open-module"
		}
	}
	return "driver.loaded/unbound"
}

func logHint(s Subject) string {
	for _, e := range s.Host.Log.Events {
		switch e.Kind {
		case "open-needed", "init-failed", "bar-invalid", "not-called", "api-mismatch", "unsigned":
			return e.Text
		}
	}
	return "the kernel log names no reason"
}

// smiTrouble reads the ways in which nvidia-smi fails as a whole.
func smiTrouble(s Subject) (Finding, bool) {
	e := s.Host.Driver.SMIError
	text := e.Value
	f := fail(rigSubject, "nvidia-smi: %s", text).saw(text, "answers").because(ev(e), ev(s.Host.Driver.SMIExit))
	switch {
	case !e.Known():
		return f, false
	case strings.Contains(text, "version mismatch"):
		return f.fix("driver.loaded/version-mismatch"), true
	case strings.Contains(text, "Unable to determine the device handle"):
		return lostCard(s), true
	case strings.Contains(text, "couldn't communicate"), strings.Contains(text, "Failed to initialize NVML"):
		return f.fix(notLoadedFix(s)), true
	case strings.Contains(text, "No devices were found"):
		if len(s.Cards) == 0 {
			return f, false // gpu.count tells that there is no card
		}
		return f.noting("%s", logHint(s)).fix("driver.loaded/unbound", "bdf", s.Cards[0].BDF), true
	case strings.Contains(text, "libnvidia-ml"):
		return f.fix("driver.loaded/version-mismatch"), true
	case strings.Contains(text, "command not found") && s.Host.Driver.Loaded.Value:
		return f, false
	}
	return f.fix(notLoadedFix(s)), true
}

// handleBDF picks the address out of "… handle for GPU0000:0B:00.0: Unknown Error", or of "… for GPU2: 0000:0B:00.0: …"
// as drivers since 550 write it.
func handleBDF(text string) string {
	if m := handleAddress.FindString(text); m != "" {
		return strings.ToLower(m)
	}
	return "the card"
}

var handleAddress = regexp.MustCompile(`[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]`)

func notLoadedFix(s Subject) string {
	for _, e := range s.Host.Log.Events {
		switch e.Kind {
		case "unsigned":
			return "driver.loaded/secure-boot"
		case "api-mismatch":
			return "driver.loaded/version-mismatch"
		case "open-needed":
			return "driver.loaded/open-module"
		}
	}
	return "driver.loaded/not-loaded"
}

// lostCard: the driver is there and talks of a card that it cannot reach, so it says nothing of the others.
func lostCard(s Subject) Finding {
	return unknown(rigSubject, "nvidia-smi answers for no card while one is lost").because(ev(s.Host.Driver.SMIError), ev(s.Host.Driver.SMIExit)).knownBy("mend gpu.health first")
}

// cardExits are the exit statuses of nvidia-smi that tell of a fault of a card, which gpu.health judges.
var cardExits = map[int]string{
	8: "a card's power cables are not attached", 10: "the kernel found an interrupt problem with a card", 15: "a card fell off the bus or is not accessible",
}

// smiExits are those that tell of a fault of the driver (its manual, section RETURN VALUE), and the remedy.
// Others, as those of a signal or of a missing permission, leave the driver unknown.
var smiExits = map[int]struct{ words, remedy string }{
	9: {"the driver is not loaded", "driver.loaded/not-loaded"}, 12: {"the NVML library is missing", "driver.loaded/version-mismatch"},
}

// smiExit judges an nvidia-smi that ended with an error and left nothing that could be read.
func smiExit(s Subject) (Finding, bool) {
	rc := s.Host.Driver.SMIExit
	exit, fault := smiExits[rc.Value]
	_, unread := s.Host.Gaps[facts.KindSMI]
	if _, card := cardExits[rc.Value]; unread && card {
		return lostCard(s), true
	}
	if !unread || !fault {
		return Finding{}, false
	}
	return fail(rigSubject, "nvidia-smi ends with %d: %s", rc.Value, exit.words).saw(fmt.Sprintf("exit %d", rc.Value), "answers").
		because(ev(rc)).noting("%s", logHint(s)).fix(exit.remedy, "bdf", "the card"), true
}

// driverState is what remains when no single card and no message shows a fault.
func driverState(s Subject) Finding {
	d := s.Host.Driver
	loaded, known := d.Loaded.Get()
	switch {
	case len(s.Cards) == 0 && len(s.Host.PCI) > 0:
		return unknown(rigSubject, "there is no card for a driver to run").knownBy("mend gpu.count first")
	case known && loaded:
		f := pass(rigSubject, "driver %s", firstOf(d.Version.Value, "loaded")).saw(firstOf(d.Version.Value, "loaded"), "loaded").because(ev(d.Loaded), ev(d.Version))
		if why, gap := s.Host.Gaps[facts.KindSMI]; gap && strings.HasSuffix(d.Loaded.Source, facts.DriverInUse) {
			return f.noting("every card shown is bound to it; nvidia-smi is not in the input")
		} else if gap {
			f.Verdict, f.Summary = Unknown, fmt.Sprintf("the module is loaded; whether nvidia-smi answers is not known: %s", why)
			f = f.knownBy("put nvidia-smi on the PATH of non-interactive logins, or give nvidia-smi -q -x")
			if strings.Contains(why, "not reached") { // the reading was cut before it came to nvidia-smi
				f = f.knownBy("run the check again")
			}
		}
		return f
	case known && d.Nouveau.Value:
		return fail(rigSubject, "nouveau is loaded instead of the NVIDIA driver").saw("nouveau", "nvidia").because(ev(d.Nouveau), ev(d.Loaded)).fix("driver.loaded/nouveau", "bdf", bdfs(s.Cards))
	case known:
		code := "driver.loaded/not-installed"
		if d.SMIExit.Known() && d.SMIExit.Value != 127 {
			code = notLoadedFix(s)
		}
		return fail(rigSubject, "the NVIDIA kernel module is not loaded").saw("not loaded", "loaded").because(ev(d.Loaded), ev(d.SMIExit)).fix(code)
	}
	for _, e := range s.Host.Log.Events {
		if e.Kind == "none-initialized" {
			return fail(rigSubject, "the driver initialised none of the cards").saw("none", "all cards").because(evs(e.Source, e.Text)).noting("%s", logHint(s)).
				fix("driver.loaded/unbound", "bdf", firstOf(bdfs(s.Cards), "the cards"))
		}
	}
	return unknown(rigSubject, "neither the kernel nor nvidia-smi was asked").knownBy("give nvidia-smi -q -x, or a snapshot of the host")
}
