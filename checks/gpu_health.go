package checks

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// gpu.health: does a card, or the kernel's log of it, tell of damage?
//
//	fell off the bus, or the driver lost it (ERR!, GPU is lost, no handle)      fail
//	an Xid graded as damage (48, 79, 94, 95 …), or an NVLink's                  fail
//	an Xid that wants a reset (62, 109, 119 …)                                  warn; twice or more: fail
//	Xid 154, gpu_recovery_action or gpu_reset_status asks for reset or reboot   fail
//	any other Xid that is not a program's                                       warn
//	an Xid of a program (13, 31, 43, 45 …)                                      a note; ten or more on one card alone: warn
//	memory errors that ECC could not correct since the driver was loaded        fail
//	rows or pages: remapping failed                                             fail
//	rows or pages: remapped for good, or waiting for a reset                    warn
//	log and cards read, nothing of this                                         pass
//	only one of the two read, or not of every card, nothing of this             unknown
//
// An Xid after another is often its echo; the finding names the first one of the worst grade. Names, grades and echoes
// stand in the catalogue (xids.csv), after NVIDIA's nverror.h and Xid catalogue; the grades are ours. A network
// driver's "XID" is none of this.
var gpuHealth = Check{ID: "gpu.health", Title: "health of the cards", Decide: decideHealth}

func decideHealth(s Subject) []Finding {
	var out []Finding
	var notes []string
	for _, bdf := range healthSubjects(s) {
		problems, note := healthOf(s, bdf)
		if note != "" {
			notes = append(notes, note)
		}
		if len(problems) > 0 {
			out = append(out, worstOf(problems))
		}
	}
	for _, look := range []func(Subject, []Finding) (Finding, bool){noHandle, nameless, cardExit} {
		if f, lost := look(s, out); lost {
			out = append(out, f)
		}
	}
	if len(out) > 0 {
		return out
	}
	return []Finding{healthState(s).noting("%s", strings.Join(notes, "; "))}
}

// healthSubjects are the cards, and what only the log names as one.
func healthSubjects(s Subject) []string {
	var out []string
	said := map[string]bool{"": true}
	add := func(bdf string) {
		if !said[bdf] {
			said[bdf] = true
			out = append(out, bdf)
		}
	}
	for _, c := range s.Host.Cards {
		add(c.BDF)
	}
	for _, e := range s.Host.Log.Events {
		if e.Kind == "xid" || e.Kind == "off-bus" {
			add(e.BDF)
		}
	}
	return out
}

// healthOf lists what is wrong with one card, and what is worth a remark.
func healthOf(s Subject, bdf string) (problems []Finding, note string) {
	f, note, bad := xidProblem(s, bdf)
	if bad {
		problems = append(problems, f)
	}
	lost := bad && f.Remedy == "gpu.health/off-bus"
	for _, e := range s.Host.Log.Events {
		if e.Kind == "off-bus" && e.BDF == bdf && !lost {
			lost = true
			problems = append(problems, fail(bdf, "%s fell off the bus since boot", bdf).saw("fallen off the bus", "on the bus").
				because(evs(e.Source, e.Text)).fix("gpu.health/off-bus", "bdf", bdf))
		}
	}
	for _, c := range s.Host.Cards {
		if c.BDF != bdf {
			continue
		}
		if f, sick := sickCard(c); sick && !lost {
			problems = append(problems, f)
		}
		problems = append(problems, memoryProblems(c)...)
		if f, before := lostBefore(s, bdf); before && len(problems) == 0 {
			problems = append(problems, f)
		}
		if c.ECCAggregate.Value > 0 && len(problems) == 0 {
			life := fmt.Sprintf("%s: %d uncorrected memory errors in its life", bdf, c.ECCAggregate.Value)
			note = strings.TrimPrefix(note+"; "+life, "; ")
		}
	}
	return problems, note
}

// xidLost is the Xid of a card that fell off the bus.
const xidLost = 79

// lostBefore is a card that an earlier boot of the same log lost. It is there now, and may go again.
func lostBefore(s Subject, bdf string) (Finding, bool) {
	for _, e := range s.Host.Log.Earlier {
		if e.BDF == bdf && (e.Kind == "off-bus" || e.Code == xidLost) {
			return warn(bdf, "%s fell off the bus in an earlier boot, and not since", bdf).saw("fallen off the bus, earlier", "on the bus").
				because(evs(e.Source, e.Text)).fix("gpu.health/off-bus", "bdf", bdf), true
		}
	}
	return Finding{}, false
}

// sickCard is one that the driver can no longer talk to, or that it wants to be reset.
func sickCard(c facts.Card) (Finding, bool) {
	action, told := c.Recovery.Get()
	switch sick := c.Sick.Value; {
	case strings.Contains(sick, "requires reset"):
		return fail(c.BDF, "%s needs a reset", c.BDF).saw(sick, "answers").because(ev(c.Sick)).fix("gpu.health/reset", "bdf", c.BDF), true
	case c.Sick.Known():
		return fail(c.BDF, "%s: nvidia-smi says %q", c.BDF, sick).saw(sick, "answers").because(ev(c.Sick)).fix("gpu.health/off-bus", "bdf", c.BDF), true
	case c.Link.Broken.Value:
		return fail(c.BDF, "%s no longer answers on the bus", c.BDF).saw("reads all ones", "answers").because(ev(c.Link.Broken)).fix("gpu.health/off-bus", "bdf", c.BDF), true
	case told && action != "None":
		return fail(c.BDF, "%s: the driver asks for: %s", c.BDF, action).saw(action, "None").because(ev(c.Recovery)).fix("gpu.health/reset", "bdf", c.BDF), true
	}
	return Finding{}, false
}

// memoryProblems reads the card's own account of its memory. N/A, as on most GeForce cards, is no account.
func memoryProblems(c facts.Card) []Finding {
	var out []Finding
	if c.RemapFailure.Value {
		out = append(out, fail(c.BDF, "%s has no spare rows left: a faulty one could not be remapped", c.BDF).saw("failure", "none").
			because(ev(c.RemapFailure)).fix("gpu.health/memory", "bdf", c.BDF))
	}
	if n := c.ECCVolatile.Value; n > 0 {
		out = append(out, fail(c.BDF, "%s: %d memory errors that ECC could not correct", c.BDF, n).saw(fmt.Sprint(n), "0").
			because(ev(c.ECCVolatile)).fix("gpu.health/memory", "bdf", c.BDF))
	}
	if c.RemapPending.Value || c.RetiredPending.Value {
		out = append(out, warn(c.BDF, "%s: faulty memory is set aside at the next reset", c.BDF).saw("pending", "none").
			because(ev(c.RemapPending), ev(c.RetiredPending)).fix("gpu.health/reset", "bdf", c.BDF))
	}
	if n := c.Remapped.Value; n > 0 {
		out = append(out, warn(c.BDF, "%s: %d rows were remapped after errors that ECC could not correct", c.BDF, n).saw(fmt.Sprint(n), "0").
			because(ev(c.Remapped), ev(c.ECCAggregate)).fix("gpu.health/memory", "bdf", c.BDF))
	}
	return out
}

// worstOf makes one finding of several about a card: the worst leads, the rest are remarks.
func worstOf(problems []Finding) Finding {
	lead := 0
	for i, p := range problems {
		if order[p.Verdict] < order[problems[lead].Verdict] {
			lead = i
		}
	}
	f := problems[lead]
	for i, p := range problems {
		if i != lead {
			f = f.noting("%s", p.Summary).because(p.Evidence...)
		}
	}
	return f
}

// noHandle is nvidia-smi giving up over a card that it can name and not reach.
func noHandle(s Subject, found []Finding) (Finding, bool) {
	e := s.Host.Driver.SMIError
	if !strings.Contains(e.Value, "Unable to determine the device handle") && !strings.Contains(e.Value, "GPU is lost") {
		return Finding{}, false
	}
	bdf := handleBDF(e.Value)
	for _, f := range found {
		if f.Subject == bdf {
			return Finding{}, false
		}
	}
	subject := bdf
	if !strings.Contains(bdf, ":") {
		subject = rigSubject
	}
	return fail(subject, "the driver lost %s", bdf).saw(e.Value, "answers").because(ev(e)).fix("gpu.health/off-bus", "bdf", bdf), true
}

// nameless is a line of the log that says that a card fell off the bus, and not which, where no other line names one.
func nameless(s Subject, found []Finding) (Finding, bool) {
	for _, e := range s.Host.Log.Events {
		if e.Kind == "off-bus" && e.BDF == "" && len(found) == 0 {
			return fail(rigSubject, "a card fell off the bus since boot").saw("fallen off the bus", "on the bus").because(evs(e.Source, e.Text)).fix("gpu.health/off-bus"), true
		}
	}
	return Finding{}, false
}

// cardExit is nvidia-smi that printed nothing, and ended with the status of a card's fault.
func cardExit(s Subject, found []Finding) (Finding, bool) {
	rc := s.Host.Driver.SMIExit
	words, bad := cardExits[rc.Value]
	_, unread := s.Host.Gaps[facts.KindSMI]
	return fail(rigSubject, "nvidia-smi ends with %d: %s", rc.Value, words).saw(fmt.Sprintf("exit %d", rc.Value), "answers").
		because(ev(rc)).noting("%s", logHint(s)).fix("gpu.health/off-bus"), bad && unread && len(found) == 0 && !s.Host.Driver.SMIError.Known()
}

// lateLog is from when on, seconds after boot, a log has lost its beginning: the driver is loaded in the first minutes.
const lateLog = 600

// healthState is what remains when nothing is wrong in what was read.
func healthState(s Subject) Finding {
	_, noSMI := s.Host.Gaps[facts.KindSMI]
	var silent []facts.Card
	for _, c := range s.Cards {
		if noSMI && !c.Reasons.Known() || !strings.HasPrefix(c.Name.Source, "nvidia-smi:") && !c.Reasons.Known() {
			silent = append(silent, c)
		}
	}
	asked := len(silent) < len(s.Cards)
	read := s.Host.Log.Read
	switch {
	case hostKindIn(s.Host, "wsl"): // the driver that would log runs on the other side
		return unknown(rigSubject, "the driver runs on Windows, which keeps what it logs").because(ev(s.Host.Kind)).
			knownBy("look for events of nvlddmkm in Windows' event viewer: they carry the Xid")
	case asked && len(silent) > 0:
		return unknown(rigSubject, "nvidia-smi tells nothing of %s", bdfs(silent)).because(ev(read)).knownBy("see which driver holds it (driver.loaded), and ask again")
	case read.Value && asked:
		f := pass(rigSubject, "no Xid in the kernel's log, and no card reports damage").because(ev(read))
		if since := s.Host.Log.Since.Value; since >= lateLog {
			f = f.noting("the kernel's log begins %.1f hours after the boot: what was before it has been overwritten", float64(since)/3600)
		}
		return f
	case read.Value:
		return unknown(rigSubject, "no Xid in the kernel's log; the cards were not asked").because(ev(read)).knownBy(howToKnow[facts.KindSMI])
	case asked:
		return unknown(rigSubject, "no card reports damage; the kernel's log was not read").knownBy(readTheLog)
	}
	return unknown(rigSubject, "neither the kernel's log nor nvidia-smi was read").knownBy("give dmesg and nvidia-smi -q -x, or a snapshot of the host")
}
