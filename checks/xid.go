package checks

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/facts"
)

// programXids: so many Xids of programs on one card, and on no other, point at the card. Policy.
const programXids = 10

// xidLine is one Xid of one card, in the order of the log.
type xidLine struct {
	number int
	count  int
	echo   bool
	named  bool // not in the log itself, but named there as the cause of another
	x      catalog.Xid
	ev     facts.LogEvent
}

var causedBy = regexp.MustCompile(`caused by previous Xid (\d+)`)

// xidLines are the Xids of one card, each number once, at its first place.
func xidLines(s Subject, bdf string) []xidLine {
	var out []xidLine
	put := func(n int, e facts.LogEvent, echo, named bool) {
		for i := range out {
			if out[i].number == n {
				out[i].count++
				out[i].ev, out[i].echo = pick(n == 154, e, out[i].ev), out[i].echo && echo
				return
			}
		}
		x, ok := s.Cat.Xid(n)
		if !ok {
			x = catalog.Xid{Number: n, Severity: "warn", Part: "hardware", Name: "unknown number", Action: "reset the card"}
		}
		out = append(out, xidLine{n, 1, echo, named, x, e})
	}
	for _, e := range s.Host.Log.Events {
		if e.Kind != "xid" || e.BDF != bdf {
			continue
		}
		echo := false
		if m := causedBy.FindStringSubmatch(e.Text); m != nil {
			n, _ := strconv.Atoi(m[1])
			put(n, e, false, true)
			echo = true
		}
		x, _ := s.Cat.Xid(e.Code)
		for _, l := range out {
			echo = echo || x.Echoes(l.number)
		}
		put(e.Code, e, echo, false)
	}
	return out
}

// pick keeps the latest of what changes (Xid 154 tells the state), and the first of everything else.
func pick(latest bool, e, old facts.LogEvent) facts.LogEvent {
	if latest {
		return e
	}
	return old
}

// grade is the verdict that a line gives by itself; Pass for one that is no more than a remark.
func (l xidLine) grade(s Subject) Verdict {
	switch l.x.Severity {
	case "fail":
		return Fail
	case "link":
		if knownWithoutNVLink(s) {
			return Warn
		}
		return Fail
	case "reset":
		if l.count > 1 {
			return Fail
		}
		return Warn
	case "warn":
		return Warn
	case "text":
		if strings.Contains(l.ev.Text, "Required") || strings.Contains(l.ev.Text, "Drain") {
			if !regexp.MustCompile(`to 0x0 \(None\)`).MatchString(l.ev.Text) {
				return Fail
			}
		}
	}
	return Pass
}

func knownWithoutNVLink(s Subject) bool { return len(s.Host.Topo) > 0 && !hasNVLink(s) }

// xidProblem judges the Xids of one card: the first of the worst grade leads; what only echoes it, and what came
// before it, is remarked.
func xidProblem(s Subject, bdf string) (f Finding, note string, bad bool) {
	lines := xidLines(s, bdf)
	lead, worst := -1, Pass
	for i, l := range lines {
		g := l.grade(s)
		if l.number == 154 && g == Fail {
			worst = Fail // it says what the first Xid asks for, and is not itself the fault
		}
		if l.echo || l.number == 154 {
			continue
		}
		if lead < 0 || order[g] < order[lines[lead].grade(s)] {
			lead = i
		}
	}
	if lead < 0 && len(lines) > 0 {
		lead = 0
	}
	if lead < 0 {
		return Finding{}, "", false
	}
	l := lines[lead]
	if g := l.grade(s); order[g] < order[worst] {
		worst = g
	}
	if worst == Pass && programStorm(s, lines) {
		worst = Warn
	}
	if worst == Pass {
		return Finding{}, fmt.Sprintf("%s: Xid %d, %s", bdf, l.number, l.x.Name), false
	}
	return xidFinding(bdf, worst, l, lines), "", true
}

func xidFinding(bdf string, v Verdict, l xidLine, lines []xidLine) Finding {
	f := finding(v, bdf, "%s: Xid %d, %s", bdf, l.number, l.x.Name).saw(fmt.Sprintf("Xid %d", l.number), "no Xid").
		because(evs(l.ev.Source, l.ev.Text)).fix(xidRemedy(l.x), "bdf", bdf, "xid", strconv.Itoa(l.number))
	if l.x.Cause != "" {
		f = f.noting("usual cause: %s", l.x.Cause)
	}
	if l.count > 1 {
		f = f.noting("seen %d times or more", l.count)
	}
	var others []string
	for _, o := range lines {
		if o.number == l.number {
			continue
		}
		word := strconv.Itoa(o.number)
		others = append(others, word)
		if o.number == 154 {
			f = f.because(evs(o.ev.Source, o.ev.Text))
		}
	}
	if len(others) > 0 {
		f = f.noting("also Xid %s", strings.Join(slices.Compact(others), ", "))
	}
	return f
}

// xidRemedy is the remedy by the part that an Xid is about.
func xidRemedy(x catalog.Xid) string {
	code, ok := map[string]string{
		"bus": "gpu.health/off-bus", "memory": "gpu.health/memory", "nvlink": "gpu.health/nvlink", "firmware": "gpu.health/reset", "program": "gpu.health/program",
	}[x.Part]
	if !ok {
		return "gpu.health/xid"
	}
	return code
}

// programStorm: many faults of programs on this card, and none on the others.
func programStorm(s Subject, lines []xidLine) bool {
	total, here := 0, 0
	for _, e := range s.Host.Log.Events {
		if x, ok := s.Cat.Xid(e.Code); e.Kind == "xid" && ok && x.Severity == "app" {
			total++
		}
	}
	for _, l := range lines {
		if l.x.Severity == "app" {
			here += l.count
		}
	}
	return here >= programXids && here == total && len(s.Host.Cards) > 1
}
