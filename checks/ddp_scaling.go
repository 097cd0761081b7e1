package checks

import (
	"fmt"
	"math"
	"strings"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

// ddp.scaling: does training over several cards go as the links and the cards allow?
//
//	a step of n cards against what one card, and the all-reduce of its gradients, let expect:
//	  predicted = alone + what of the all-reduce does not hide behind 0.6 of the step
//	  ≤ 1.15 × predicted   pass        ≤ 1.4 ×   warn        above   fail
//	a card alone more than 10 % slower than the fastest          warn: that card holds the others back
//	heat or a brake held a card back while it trained            warn: thermally limited
//	without synchronising still 10 % slower than alone           warn: the cards share power, memory or processors
//	more than a tenth of a step spent waiting for its files      warn: input-bound (only with --data)
//	faster than linear                                           unknown: a measuring mistake
//	a hang, an error                                             fail
//	one card                                                     skip
//	not run, no torch, no expectation                            unknown
//
// What it is bound by is told from the pattern: communication is what is left of a step when gradients are not synchronised.
// A rig whose links are slow by design is communication-bound and passes. Figures are policy, of a year of such runs; healthy
// rigs: 2 cards do 1.7 to 1.9 times the work of one, 4 cards 1.5 to 1.7 times that of two, 8 cards 2.5 to 3 times that of two.
var ddpScaling = Check{ID: "ddp.scaling", Title: "training over several cards", Decide: decideDDP}

// Shares that part the verdicts.
const (
	ddpPass      = 1.15
	ddpWarn      = 1.4
	ddpSlowCard  = 0.10
	ddpContended = 0.10
	ddpWaiting   = 0.10
	ddpBound     = 0.20 // share of a step that is communication, from which it is the bound
	ddpHides     = 0.6  // share of a step behind which gradients travel unseen
	ddpLinear    = 1.03 // above it a speed-up is no speed-up
)

func decideDDP(s Subject) []Finding {
	d := s.Host.DDP
	const run = "train for some minutes: preflight probe ddp"
	switch {
	case cardCount(s) == 1:
		return []Finding{skip(rigSubject, "one card has nobody to share a training with")}
	case d == nil:
		return []Finding{unknown(rigSubject, "no scaling test was run").knownBy(run)}
	case d.Observed != nil:
		return []Finding{observed(s, d)}
	case d.Ended == facts.DDPHang:
		return []Finding{fail(rigSubject, "a training over several cards hangs: %s", d.Text).because(evs(d.Source, d.Text)).fix("ddp.scaling/hang")}
	case d.Ended == facts.DDPError:
		return []Finding{fail(rigSubject, "a training ends with an error: %s", d.Text).because(evs(d.Source, d.Text)).fix("ddp.scaling/error")}
	case d.Ended != facts.DDPDone:
		return []Finding{unknown(rigSubject, "no scaling test: %s", firstOf(d.Text, d.Ended)).because(evs(d.Source, d.Ended)).knownBy(run)}
	}
	if f, slow := slowCard(d); slow {
		return []Finding{f}
	}
	last := facts.DDPStage{}
	if n := len(d.Stages); n > 0 {
		last = d.Stages[n-1]
	}
	if len(last.Cards) < 2 || last.Step <= 0 {
		return []Finding{unknown(rigSubject, "only single cards were trained").knownBy(run)}
	}
	return []Finding{judgeScaling(s, d, last)}
}

// stepAlone is the step of the slowest of some cards by itself, ms.
func stepAlone(d *facts.DDP, cards []string) float64 {
	t := 0.0
	for _, st := range d.Stages {
		for _, c := range cards {
			if len(st.Cards) == 1 && st.Cards[0] == c {
				t = max(t, st.Step)
			}
		}
	}
	return t
}

// slowCard compares the cards alone.
func slowCard(d *facts.DDP) (Finding, bool) {
	fast, slow := facts.DDPStage{Step: math.Inf(1)}, facts.DDPStage{}
	for _, st := range d.Stages {
		if len(st.Cards) != 1 {
			continue
		}
		if st.Step < fast.Step {
			fast = st
		}
		if st.Step > slow.Step {
			slow = st
		}
	}
	if len(slow.Cards) == 0 || slow.Step <= fast.Step*(1+ddpSlowCard) {
		return Finding{}, false
	}
	return warn(slow.Cards[0], "%s alone takes %.0f ms a step, %s takes %.0f: it holds the others back", slow.Cards[0], slow.Step, fast.Cards[0], fast.Step).
		saw(fmt.Sprintf("%.0f ms", slow.Step), fmt.Sprintf("≤ %.0f ms", fast.Step*(1+ddpSlowCard))).because(evs(d.Source, fmt.Sprintf("%.1f ms and %.1f ms", slow.Step, fast.Step))).
		fix("ddp.scaling/slow-card", "bdf", slow.Cards[0]), true
}

// judgeScaling judges the largest set of cards.
func judgeScaling(s Subject, d *facts.DDP, st facts.DDPStage) Finding {
	n, one := len(st.Cards), stepAlone(d, st.Cards)
	if one == 0 {
		return unknown(rigSubject, "no card was trained alone").knownBy("run it again: preflight probe ddp")
	}
	words := scalingWords(d)
	evidence := evs(d.Source, words)
	if one/st.Step > ddpLinear {
		return unknown(rigSubject, "%d cards do more than %d times the work of one: a measuring mistake", n, n).saw(fmt.Sprintf("%.2f×", float64(n)*one/st.Step), fmt.Sprintf("≤ %d×", n)).
			because(evidence).knownBy("run it again with nothing else on the rig")
	}
	if f, bound := boundBy(s, d, st, one); bound {
		return f.because(evidence)
	}
	bus := busOf(s, n)
	if bus.GBs == 0 {
		return unknown(rigSubject, "%s; what the links let expect is not known", words).because(evidence).knownBy("measure the host: preflight probe nccl")
	}
	travel := float64(d.Gradient) * 2 * float64(n-1) / float64(n) / (bus.GBs * 1e9) * 1e3
	predicted := one + max(0, travel-ddpHides*one)
	f := Finding{Subject: rigSubject, Verdict: Pass, Observed: fmt.Sprintf("%.0f ms a step", st.Step), Expected: fmt.Sprintf("≤ %.0f ms", predicted*ddpPass)}.because(evidence)
	how := "measured"
	if !bus.Measured {
		how = "expected"
	}
	f = f.noting("%.0f ms alone, %.0f ms for the gradients at %.1f GB/s (%s)", one, travel, bus.GBs, how)
	if st.Fetched == 0 {
		f = f.noting("its input was not tested (--data)")
	}
	share := (st.Step - st.NoSync) / st.Step
	pattern := "healthy"
	if share > ddpBound {
		pattern = "communication-bound"
	}
	f.Summary = fmt.Sprintf("%s; %s, as the links allow", words, pattern)
	switch ratio := st.Step / predicted; {
	case ratio > ddpWarn:
		f.Verdict = Fail
	case ratio > ddpPass:
		f.Verdict = Warn
	default:
		return f
	}
	f.Summary = fmt.Sprintf("%s; %s, slower than the links allow (%.0f ms a step)", words, pattern, predicted)
	return f.fix("ddp.scaling/communication")
}

// boundBy tells what other than the links holds a training back: heat, its files, or what the cards share.
func boundBy(s Subject, d *facts.DDP, st facts.DDPStage, one float64) (Finding, bool) {
	if bdf, n := heldWhile(d, st); n > 1 {
		return warn(bdf, "%s was held back by heat or a brake in %d samples of the training: thermally limited", bdf, n).saw("held back", "full clocks").fix("ddp.scaling/thermal", "bdf", bdf), true
	}
	if st.Wait > ddpWaiting*st.Step {
		return warn(rigSubject, "%.0f of %.0f ms a step wait for data: input-bound", st.Wait, st.Step).saw(fmt.Sprintf("%.0f ms", st.Wait), fmt.Sprintf("≤ %.0f ms", ddpWaiting*st.Step)).fix("ddp.scaling/input"), true
	}
	if st.NoSync > one*(1+ddpContended) {
		return warn(rigSubject, "without synchronising a step takes %.0f ms, %.0f alone: the cards share power, memory or processors", st.NoSync, one).
			saw(fmt.Sprintf("%.0f ms", st.NoSync), fmt.Sprintf("≤ %.0f ms", one*(1+ddpContended))).fix("ddp.scaling/contention"), true
	}
	return Finding{}, false
}

// heldWhile is the card that heat or a brake held back in most samples of a stage.
func heldWhile(d *facts.DDP, st facts.DDPStage) (bdf string, samples int) {
	if d.Series == nil {
		return "", 0
	}
	for _, t := range d.Series.Cards {
		n := 0
		for i, v := range t.Values {
			if at := t.At[i].Seconds(); at >= st.Begin && at <= st.End && v.Has(sample.ReasonBad) {
				n++
			}
		}
		if n > samples {
			bdf, samples = t.BDF, n
		}
	}
	return bdf, samples
}

// scalingWords are the speed-ups, with what healthy rigs reach beside them.
func scalingWords(d *facts.DDP) string {
	var out []string
	for _, st := range d.Stages {
		if n := len(st.Cards); n > 1 {
			one := stepAlone(d, st.Cards)
			out = append(out, fmt.Sprintf("%d cards %.2f×", n, float64(n)*one/st.Step))
		}
	}
	return strings.Join(out, ", ")
}

// busOf is what an all-reduce over so many cards carries: measured, else expected.
func busOf(s Subject, n int) Bus {
	if measured, _ := measuredBus(s); measured.GBs > 0 {
		return measured
	}
	if e, ok := expect(s, facts.NCCLRun{Ranks: n}, false); ok {
		return Bus{Cards: n, GBs: e.busbw, Why: e.why}
	}
	return Bus{}
}

// observed judges a command of the user's own by how the cards looked meanwhile: a card that waits for others is busy and draws
// little, one that waits for its input is idle.
func observed(s Subject, d *facts.DDP) Finding {
	o := d.Observed
	if d.Ended != facts.DDPDone || d.Series == nil {
		return unknown(rigSubject, "%s was not observed to an end: %s", o.Command, firstOf(d.Text, "nothing was sampled")).knownBy("run it again")
	}
	var util, share, n float64
	held := 0
	for _, t := range d.Series.Cards {
		for i, v := range t.Values {
			if t.At[i].Seconds() < startUp {
				continue
			}
			u, ok := v.Get(sample.Utilization)
			w, known := v.Get(sample.Power)
			l, limited := v.Get(sample.PowerLimit)
			if ok && known && limited && l > 0 {
				util, share, n = util+u, share+w/l, n+1
			}
			if v.Has(sample.ReasonBad) {
				held++
			}
		}
	}
	if n < 5 {
		return unknown(rigSubject, "%s ran %.0f s: too few samples", o.Command, o.Seconds).knownBy("observe it for a minute or more")
	}
	util, share = util/n, share/n
	seen := fmt.Sprintf("%.0f %% busy, %.0f %% of the power", util, share*100)
	f := func(v Verdict, text string) Finding {
		return finding(v, rigSubject, "%s: %s (%s)", o.Command, text, seen).saw(seen, "busy at full power").because(evs(d.Source, seen))
	}
	switch {
	case held > 1:
		return f(Warn, "thermally limited").fix("ddp.scaling/thermal", "bdf", "the cards")
	case util < 70:
		return f(Warn, "the cards wait for their input").fix("ddp.scaling/input")
	case share < 0.5:
		return f(Warn, "busy but idle in truth: they wait for each other").fix("ddp.scaling/communication")
	}
	return f(Pass, "the cards compute")
}
