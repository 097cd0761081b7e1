package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"preflight/checks"
	"preflight/internal/lang"
	"preflight/internal/workload"
)

// FitVerdict is the verdict of a fit in the words of checks, for its mark and colour.
func FitVerdict(a workload.Assessment) checks.Verdict {
	switch {
	case a.Fit == workload.FitsNot:
		return checks.Fail
	case a.Speed == workload.Unclear:
		return checks.Unknown
	case a.Fit == workload.FitsChanged, a.Speed != workload.Suited:
		return checks.Warn
	}
	return checks.Pass
}

// FitNames are the rigs of an assessment: the first few by name.
func FitNames(r workload.Rig) string {
	const most = 6
	names := r.Names
	if len(names) > most {
		return Safe(strings.Join(names[:most], ", ")) + fmt.Sprintf(" +%d", len(names)-most)
	}
	return Safe(strings.Join(names, ", "))
}

// FitHead is the machine with its names, where they say more than the machine itself.
func FitHead(r workload.Rig) string {
	label := Safe(r.Label())
	if r.Reference || r.Described || len(r.Names) == 0 {
		return label
	}
	return FitNames(r) + "  " + label
}

// fit writes the jobs: whole where nothing else is in the report or details are wanted, else a line a rig.
func (t *textWriter) fit(r *Report) {
	whole := len(r.Rigs) == 0 || t.o.Verbose
	for i, j := range r.Fit {
		if i > 0 || len(r.Rigs) > 0 {
			t.line("")
		}
		head := t.paint(text.Colors{text.Bold}, t.say("fit")+"  "+Safe(j.Title))
		if j.Name != "" {
			head = t.paint(text.Colors{text.Bold}, t.say("fit")+"  "+Safe(j.Name)) + "  " + Safe(j.Title)
		}
		t.line("%s", head)
		if len(j.Assumed) > 0 && whole {
			var said []string
			for _, s := range j.Assumed {
				said = append(said, t.o.Lang.Say(s))
			}
			t.wrapped("  "+t.label("assumed:"), 4, Safe(strings.Join(said, t.o.Lang.Say(", "))))
		}
		for _, a := range j.Assessments {
			t.fitted(a, whole && !t.o.Quiet)
		}
		for _, o := range j.Open {
			t.wrapped("  "+t.mark(checks.Unknown)+" ", 4, Safe(o.Rig)+"  "+Safe(t.o.Lang.Say(o.Why)))
		}
		t.references(j)
		t.costs(j)
	}
}

// fitWords is the verdict of a fit in words: whether it fits, and how the links suit it.
func (t *textWriter) fitWords(a workload.Assessment) string {
	s := t.say("%s", a.Fit)
	if a.Chosen != nil && a.Rig.Cards > 1 {
		s += " · " + t.say("%s", SpeedWords(a.Speed))
	}
	return t.paint(append(text.Colors{text.Bold}, marks[FitVerdict(a)].color...), s)
}

// SpeedWords says what an unknown is about.
func SpeedWords(speed string) string {
	if speed == workload.Unclear {
		return "speed unknown"
	}
	return speed
}

func (t *textWriter) fitted(a workload.Assessment, whole bool) {
	if whole {
		t.line("")
	}
	t.wrapped("  "+t.mark(FitVerdict(a))+" ", 4, FitHead(a.Rig)+"  "+t.fitWords(a))
	t.wrapped("    ", 6, Safe(t.o.Lang.Say(a.Summary)))
	if len(a.Changes) > 0 {
		t.wrapped("    ", 6, t.label("with:")+Safe(t.o.Lang.Say(strings.Join(a.Changes, "; "))))
	}
	if !whole {
		return
	}
	t.fourSteps(a)
	t.memory(a)
	t.strategies(a)
	t.speedUps(a)
	t.start(a)
	for _, x := range a.Answers {
		t.wrapped("    ✎ ", 6, Safe(t.say("“%s”: %s", t.o.Lang.Say(x.Claim), t.o.Lang.Say(x.Text))))
	}
}

func (t *textWriter) fourSteps(a workload.Assessment) {
	room := 0
	for _, s := range a.Steps {
		room = max(room, visible(t.say("%s", s.Step)))
	}
	for i, s := range a.Steps {
		mark := t.mark(checks.Pass)
		if !s.Good {
			mark = t.mark(checks.Warn)
		}
		prefix := fmt.Sprintf("    %d %s  %s ", i+1, pad(t.say("%s", s.Step), room), mark)
		t.wrapped(prefix, visible(prefix), Safe(t.o.Lang.Say(s.Number)+t.o.Lang.Say(": ")+t.o.Lang.Say(s.Text)))
	}
}

// memory lists the items of the chosen strategy, each with its formula; with -v also its source.
func (t *textWriter) memory(a workload.Assessment) {
	o := a.Chosen
	if o == nil {
		return
	}
	t.line("    %s", t.say("memory of a card under %s, GB (10^9 bytes)", o.Strategy))
	row := func(name string, bytes float64, rest string) {
		prefix := fmt.Sprintf("      %s %8.2f  ", pad(t.say("%s", name), 14), bytes/1e9)
		t.wrapped(prefix, visible(prefix), Safe(rest))
	}
	for _, l := range o.Memory.Lines {
		rest := l.Formula
		if t.o.Verbose {
			rest += "   [" + t.o.Lang.Say(l.Source) + "]"
		}
		row(l.Part, l.Bytes, rest)
	}
	row("in all", o.Memory.Total(), t.say("of %.2f that a card has", o.Memory.Limit/1e9))
}

// strategies ranks them, each with what it needs and how much of the time its cards compute.
func (t *textWriter) strategies(a workload.Assessment) {
	if a.Rig.Cards < 2 {
		return
	}
	t.line("    %s", t.say("strategies, the best first on these links"))
	pace := 1
	for _, o := range a.Options {
		pace = max(pace, visible(Pace(a, o)))
	}
	for _, o := range a.Options {
		v, need, share := checks.Pass, fmt.Sprintf("%.1f GB", o.Memory.Total()/1e9), Pace(a, o)
		switch {
		case o.Impossible != "":
			v, need, share = checks.Skip, "–", "–"
		case !o.Fits:
			v = checks.Fail
		case o.Speed == workload.Unclear:
			v = checks.Unknown
		case o.Speed != workload.Suited:
			v = checks.Warn
		}
		why := o.Reason
		if o.Impossible != "" {
			why = o.Impossible
		}
		prefix := fmt.Sprintf("      %s %d %s %9s %s  ", t.mark(v), o.Rank, pad(o.Strategy, 9), need, pad(share, pace))
		t.wrapped(prefix, visible(prefix), Safe(t.o.Lang.Say(why)))
	}
	if len(a.Rig.Bandwidth) > 0 {
		b := a.Rig.Bandwidth[min(len(a.Rig.Bandwidth)-1, barFor(a.Rig))]
		why := t.o.Lang.Say(b.Why)
		if !b.Measured {
			why = t.say("expected: %s", why)
		}
		if b.GBs > 0 {
			t.wrapped("      ", 8, Safe(t.say("all-reduce over %d cards: %.1f GB/s bus bandwidth, %s", a.Rig.Cards, b.GBs, why)))
		} else {
			t.wrapped("      ", 8, Safe(t.o.Lang.Say(b.Why)))
		}
	}
	for _, line := range FitPace(a, t.o.Lang) {
		t.wrapped("      ", 8, Safe(line))
	}
}

// FitPace says how the time of the chosen strategy's step comes about, and what of it hides; nothing where it is not known.
func FitPace(a workload.Assessment, l lang.Language) []string {
	s := chosenStep(a)
	switch {
	case !s.Known:
		return nil
	case a.Workload.Serving():
		return []string{
			l.Sayf("a token of every request: at least %s to read weights and cache, %s on the links; the delay of each message is not counted", seconds(s.Compute), seconds(s.Communication)),
			l.Sayf("computing: %s", s.Formula) + "   [" + l.Say(s.Source) + "]",
		}
	}
	return []string{
		l.Sayf("a step: %s computing, %s on the links, of it %s that nothing hides", seconds(s.Compute), seconds(s.Communication), seconds(s.Exposed+s.Bubble)),
		l.Sayf("computing: %s", l.Say(s.Formula)) + "   [" + l.Say(s.Source) + "]",
		l.Sayf("overlap: communication hides behind at most %.0f %% of the computing", 100*s.Overlap),
	}
}

func chosenStep(a workload.Assessment) workload.Step {
	if a.Chosen == nil {
		return workload.Step{}
	}
	return a.Chosen.Step
}

// Pace is how fast an option is: the share of the time in which its cards compute, and tokens a second; of serving, the
// tokens a second that the memory allows.
func Pace(a workload.Assessment, o workload.Option) string {
	switch {
	case o.Impossible != "":
		return "–"
	case !o.Step.Known:
		return "?"
	case a.Workload.Serving():
		return fmt.Sprintf("≤ %.0f tok/s", o.Step.Rate())
	}
	return fmt.Sprintf("%3.0f %% %7.0f tok/s", 100*o.Efficiency, o.Step.Rate())
}

// barFor is the entry of bandwidth that is meant for all cards.
func barFor(r workload.Rig) int {
	for i, b := range r.Bandwidth {
		if b.Cards >= r.Cards {
			return i
		}
	}
	return len(r.Bandwidth) - 1
}

// seconds is a time with a fitting unit.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 0.001:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.1f s", s)
}

func (t *textWriter) speedUps(a workload.Assessment) {
	if len(a.Scaling) < 2 || a.Rig.Cards < 2 {
		return
	}
	t.line("    %s", t.say("speed-up over one card, at best, with %s", a.Chosen.Strategy))
	for _, p := range a.Scaling {
		s := t.say("%.2f, %.0f %% of linear", p.SpeedUp, 100*p.Efficiency)
		if p.Low > 0 {
			s += t.o.Lang.Say("; ") + t.say("healthy rigs reach %.1f–%.1f", p.Low, p.High)
		}
		if p.Measured > 0 && p.Cards > 1 {
			s += t.o.Lang.Say("; ") + t.say("measured %.2f", p.Measured)
		}
		if p.Remark != "" {
			s += t.o.Lang.Say(": ") + t.o.Lang.Say(p.Remark)
		}
		t.wrapped(fmt.Sprintf("      %2d  ", p.Cards), 10, Safe(s))
	}
}

// start is the line that starts the job, with the reason of each variable.
func (t *textWriter) start(a workload.Assessment) {
	l := a.Launch
	if l == nil {
		return
	}
	t.line("    %s", t.say("start it"))
	t.line("      %s", t.paint(text.Colors{text.FgCyan}, "$ "+Safe(l.Command)))
	for _, e := range l.Env {
		t.wrapped("      ", 8, Safe(e.Name+t.o.Lang.Say(": ")+t.o.Lang.Say(e.Why)))
	}
	if l.Docker != "" {
		t.wrapped("      ", 8, t.label("in Docker:")+Safe(l.Docker))
	}
	for _, n := range l.Notes {
		t.wrapped("      ", 8, Safe(t.o.Lang.Say(n)))
	}
}

// references are the machines to compare with, a line each.
func (t *textWriter) references(j workload.Job) {
	if len(j.References) == 0 || t.o.Quiet {
		return
	}
	t.line("")
	t.line("  %s", t.say("to compare with"))
	room := 0
	for _, a := range j.References {
		room = max(room, visible(Safe(a.Rig.Label())))
	}
	for _, a := range j.References {
		s := t.fitWords(a) + "  " + Safe(t.o.Lang.Say(a.Summary))
		if len(a.Changes) > 0 {
			s += t.o.Lang.Say("; ") + Safe(t.o.Lang.Say(strings.Join(a.Changes, "; ")))
		}
		prefix := "    " + t.mark(FitVerdict(a)) + " " + pad(Safe(a.Rig.Label()), room) + "  "
		t.wrapped(prefix, visible(prefix), s)
	}
}

// costs is the table of hours and money.
func (t *textWriter) costs(j workload.Job) {
	if len(j.Costs) == 0 || t.o.Quiet {
		return
	}
	t.line("")
	t.line("  %s", t.say("cost = cards × price of a card's hour × hours, in your own currency"))
	for _, c := range j.Costs {
		t.wrapped("    "+pad(Safe(c.Rig), 26)+"  ", 6, Safe(FitCost(c, t.o.Lang)))
	}
}
