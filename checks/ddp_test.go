package checks

import (
	"strings"
	"testing"
	"time"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/internal/sample"
)

// trained gives a host a scaling test: steps in ms alone, and of all cards with and without synchronising; change may spoil it.
func trained(alone, all, noSync float64, change func(*facts.DDP)) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		d := &facts.DDP{Ended: facts.DDPDone, Parameters: 350e6, Gradient: 1_400_000_000, Tokens: 4096, Source: src, Series: &sample.Series{}}
		var names []string
		for i, c := range h.Cards {
			d.Stages = append(d.Stages, facts.DDPStage{Cards: []string{c.BDF}, Step: alone, NoSync: alone, Begin: float64(10 * i), End: float64(10*i + 10)})
			names = append(names, c.BDF)
			d.Series.Cards = append(d.Series.Cards, &sample.Track{BDF: c.BDF})
		}
		d.Stages = append(d.Stages, facts.DDPStage{Cards: names, Step: all, NoSync: noSync, Begin: 100, End: 160})
		for _, t := range d.Series.Cards {
			for at := 0; at <= 160; at += 2 {
				v := sample.NoValues()
				v[sample.Utilization], v[sample.Power], v[sample.PowerLimit], v[sample.Reasons] = 99, 400, 450, sample.ReasonPowerCap
				t.At, t.Values = append(t.At, time.Duration(at)*time.Second), append(t.Values, v)
			}
		}
		if change != nil {
			change(d)
		}
		h.DDP = d
	}
}

func TestDDPScaling(t *testing.T) {
	last := func(change func(*facts.DDPStage)) func(*facts.DDP) {
		return func(d *facts.DDP) { change(&d.Stages[len(d.Stages)-1]) }
	}
	end := func(how, text string) func(*facts.DDP) {
		return func(d *facts.DDP) { d.Ended, d.Text = how, text }
	}
	watched := func(seconds int, metric sample.Metric, v float64) func(*facts.DDP) {
		return func(d *facts.DDP) {
			d.Stages, d.Observed = nil, &facts.DDPObserved{Command: "torchrun train.py", Seconds: float64(seconds)}
			for _, track := range d.Series.Cards {
				track.At, track.Values = track.At[:seconds/2], track.Values[:seconds/2]
				for i := range track.Values {
					track.Values[i][metric] = v
				}
			}
		}
	}
	// The host's all-reduce was measured: 14.2 GB/s over 4 cards. 1.4 GB take 148 ms; of 104 ms alone, 62 hide them.
	runRows(t, "ddp.scaling", []row{
		{"never run", 4, nil, Unknown, ""},
		{"one card", 1, nil, Skip, ""},
		{"as the links allow, bound by them", 4, trained(104, 192, 106, nil), Pass, ""},
		{"everything hides", 4, trained(600, 610, 604, nil), Pass, ""},
		{"a little slower", 4, trained(104, 240, 106, nil), Warn, "ddp.scaling/communication"},
		{"much slower", 4, trained(104, 300, 106, nil), Fail, "ddp.scaling/communication"},
		{"above linear", 4, trained(104, 90, 90, nil), Unknown, ""},
		{"one card is slow", 4, trained(104, 192, 106, func(d *facts.DDP) { d.Stages[2].Step = 130 }), Warn, "ddp.scaling/slow-card"},
		{"held back by heat", 4, trained(104, 192, 106, func(d *facts.DDP) {
			for i := 55; i < 70; i++ {
				d.Series.Cards[1].Values[i][sample.Reasons] = sample.ReasonSWThermal
			}
		}), Warn, "ddp.scaling/thermal"},
		{"held back before it", 4, trained(104, 192, 106, func(d *facts.DDP) { d.Series.Cards[1].Values[1][sample.Reasons] = sample.ReasonSWThermal }), Pass, ""},
		{"the cards share something", 4, trained(104, 192, 140, nil), Warn, "ddp.scaling/contention"},
		{"waits for its files", 4, trained(104, 192, 106, last(func(s *facts.DDPStage) { s.Wait, s.Fetched = 60, 1<<20 })), Warn, "ddp.scaling/input"},
		{"files keep up", 4, trained(104, 192, 106, last(func(s *facts.DDPStage) { s.Wait, s.Fetched = 2, 1<<20 })), Pass, ""},
		{"hangs", 4, trained(104, 0, 0, end(facts.DDPHang, "x")), Fail, "ddp.scaling/hang"},
		{"an error", 4, trained(104, 0, 0, end(facts.DDPError, "OutOfMemoryError")), Fail, "ddp.scaling/error"},
		{"done without a step", 4, trained(104, 0, 0, func(d *facts.DDP) { d.Stages = nil }), Unknown, ""},
		{"steps of no time", 4, trained(104, 0, 0, nil), Unknown, ""},
		{"no torch", 4, trained(104, 0, 0, end(facts.DDPMissing, "x")), Unknown, ""},
		{"cards at work", 4, trained(104, 0, 0, end(facts.DDPBusy, "x")), Unknown, ""},
		{"broken off", 4, trained(104, 192, 106, end(facts.DDPStopped, "interrupted")), Unknown, ""},
		{"nothing is known of the links", 4, inTurn(trained(104, 192, 106, nil), func(_ *rg, h *ho) {
			h.NCCL, h.Topo = nil, nil
			for i := range h.Cards {
				h.Cards[i].Product, h.Cards[i].Gen, h.Cards[i].Link = "ffff", facts.SMILink{}, facts.Link{}
			}
			h.PCI = nil
		}), Unknown, ""},
		{"the user's own, and it computes", 4, trained(104, 0, 0, watched(120, sample.Utilization, 98)), Pass, ""},
		{"the user's own waits for input", 4, trained(104, 0, 0, watched(120, sample.Utilization, 40)), Warn, "ddp.scaling/input"},
		{"the user's own waits for its like", 4, trained(104, 0, 0, watched(120, sample.Power, 150)), Warn, "ddp.scaling/communication"},
		{"the user's own ended at once", 4, trained(104, 0, 0, watched(4, sample.Utilization, 40)), Unknown, ""},
	})
	rig, h := goodRig(4), goodHost(4)
	trained(104, 192, 106, nil)(rig, h)
	_, f := verdictOf(judge(rig, h), "ddp.scaling")
	if !strings.Contains(f.Summary, "4 cards 2.17×; communication-bound, as the links allow") || !strings.Contains(f.Note, "14.2 GB/s (measured)") || !strings.Contains(f.Note, "input was not tested") {
		t.Errorf("%s / %s", f.Summary, f.Note)
	}
	g := FiguresOf(rig, h, PolicyFor(nil, 4), catalog.MustLoad()).DDP
	if g == nil || len(g.Stages) != 2 || g.Stages[0].Cards != 1 || g.Stages[1].Efficiency < 0.54 || g.Stages[1].Efficiency > 0.55 || g.Stages[1].Busy != 99 || g.Stages[1].Watts != 1600 {
		t.Errorf("%+v", g)
	}
}
