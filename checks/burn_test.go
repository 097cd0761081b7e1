package checks

import (
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/sample"
	"preflight/inventory"
)

// burn gives a host a burn-in of so many seconds that went well: 2-second samples, 10 s idle, full power, 70 to 76 °C;
// change may spoil it.
func burn(seconds int, change func(*facts.BurnIn)) func(*rg, *ho) {
	return func(_ *rg, h *ho) {
		b := &facts.BurnIn{Quick: seconds < 1200, Asked: float64(seconds), Begin: 10, End: 10 + float64(seconds), Ended: facts.BurnDone, Series: &sample.Series{}, Source: src}
		for i, c := range h.Cards {
			b.Cards = append(b.Cards, facts.BurnInCard{BDF: c.BDF, Kernel: "mma80", Rounds: 100, Bytes: 20 << 30, Passes: 40})
			t := &sample.Track{BDF: c.BDF, Name: "GeForce RTX 4090"}
			for at := 0; at <= seconds+30; at += 2 {
				v := sample.NoValues()
				v[sample.Temperature], v[sample.Power], v[sample.PowerLimit], v[sample.CoreClock], v[sample.Reasons] = 35, 20, 450, 210, sample.ReasonIdle
				v[sample.LinkGen], v[sample.LinkWidth], v[sample.Utilization] = 1, 16, 0
				if at >= 10 && at <= seconds+10 {
					v[sample.Temperature], v[sample.Power], v[sample.CoreClock], v[sample.Reasons] = 70+2*float64(i%4), 449, 2520, sample.ReasonPowerCap
					v[sample.LinkGen], v[sample.Utilization] = 4, 100
				}
				t.At, t.Values = append(t.At, time.Duration(at)*time.Second), append(t.Values, v)
			}
			b.Series.Cards = append(b.Series.Cards, t)
		}
		if change != nil {
			change(b)
		}
		h.BurnIn = b
	}
}

// setting changes a metric of a card from a time on, s since the load began.
func setting(card int, m sample.Metric, from float64, to func(old float64) float64) func(*facts.BurnIn) {
	return func(b *facts.BurnIn) {
		t := b.Series.Cards[card]
		for i, at := range t.At {
			if sec := at.Seconds() - b.Begin; sec >= from && at.Seconds() <= b.End {
				t.Values[i][m] = to(t.Values[i][m])
			}
		}
	}
}

func at(v float64) func(float64) float64 { return func(float64) float64 { return v } }

func endedBy(how, text string) func(*facts.BurnIn) {
	return func(b *facts.BurnIn) { b.Ended, b.Text = how, text }
}

func event(kind, bdf string, n int) func(*facts.BurnIn) {
	return func(b *facts.BurnIn) {
		b.Series.Events = append(b.Series.Events, sample.Event{At: 60 * time.Second, Kind: kind, BDF: bdf, Xid: n, Text: "x"})
	}
}

func spoiled(changes ...func(*facts.BurnIn)) func(*facts.BurnIn) {
	return func(b *facts.BurnIn) {
		for _, c := range changes {
			c(b)
		}
	}
}

const fullBurn = 1800

// noLoad are the runs that say nothing of a rig, whatever is asked.
func noLoad() []row {
	return []row{
		{"never run", 4, nil, Unknown, ""},
		{"cards at work", 4, func(_ *rg, h *ho) { h.BurnIn = &facts.BurnIn{Ended: facts.BurnBusy, Text: "0000:01:00.0 is at 90 %"} }, Unknown, ""},
		{"no driver", 4, func(_ *rg, h *ho) {
			h.BurnIn = &facts.BurnIn{Ended: facts.BurnMissing, Text: "the driver shows no card"}
		}, Unknown, ""},
		{"stopped by hand", 4, burn(300, endedBy(facts.BurnStopped, "interrupted")), Unknown, ""},
		{"samples stayed away", 4, burn(300, endedBy(facts.BurnBlind, "nvidia-smi gave no sample for 20 s")), Unknown, ""},
	}
}

func TestBurnInThermal(t *testing.T) {
	runRows(t, "burn-in.thermal", append(noLoad(), []row{
		{"cool", 4, burn(fullBurn, nil), Pass, ""},
		{"cool, but too short", 4, burn(180, nil), Unknown, ""},
		{"hot", 4, burn(fullBurn, setting(2, sample.Temperature, 200, at(86))), Fail, "burn-in.thermal/hot"},
		{"hot in a short one", 4, burn(180, setting(2, sample.Temperature, 100, at(86))), Fail, "burn-in.thermal/hot"},
		{"hot in the first minute only", 4, burn(fullBurn, func(b *facts.BurnIn) {
			setting(2, sample.Temperature, 0, at(86))(b)
			setting(2, sample.Temperature, 50, at(74))(b)
		}), Pass, ""},
		{"just at the limit", 4, burn(fullBurn, spoiled(setting(0, sample.Temperature, 0, at(80)), setting(1, sample.Temperature, 0, at(80)), setting(2, sample.Temperature, 0, at(80)), setting(3, sample.Temperature, 0, at(80)))), Pass, ""},
		{"warm", 4, burn(fullBurn, setting(3, sample.Temperature, 600, at(82))), Warn, "burn-in.thermal/hot"},
		{"thermal slowdown", 4, burn(fullBurn, setting(1, sample.Reasons, 1000, at(sample.ReasonSWThermal))), Fail, "burn-in.thermal/hot"},
		{"thermal slowdown in one sample", 4, burn(fullBurn, func(b *facts.BurnIn) { b.Series.Cards[1].Values[20][sample.Reasons] = sample.ReasonSWThermal }), Pass, ""},
		{"power brake", 4, burn(fullBurn, setting(1, sample.Reasons, 1000, at(sample.ReasonPowerBrake|sample.ReasonHWSlowdown))), Fail, "burn-in.thermal/power-brake"},
		{"clock sags", 4, burn(fullBurn, setting(0, sample.CoreClock, 1000, at(2200))), Warn, "burn-in.thermal/hot"},
		{"clock sags a little", 4, burn(fullBurn, setting(0, sample.CoreClock, 1000, at(2300))), Pass, ""},
		{"clocks of a sweep", 4, burn(fullBurn, spoiled(setting(0, sample.CoreClock, 1000, at(1500)), func(b *facts.BurnIn) { b.Caps = []facts.CapStep{{Watts: 300}} })), Pass, ""},
		{"one card is warmer than the others", 4, burn(fullBurn, setting(0, sample.Temperature, 60, at(79))), Pass, ""},
		{"one card is much cooler", 4, burn(fullBurn, setting(0, sample.Temperature, 60, at(60))), Warn, "burn-in.thermal/spread"},
		{"aborted for heat", 4, burn(100, spoiled(setting(1, sample.Temperature, 20, at(91)), endedBy(facts.BurnHot, "0000:21:00.0 reached 91 °C; the load is aborted at 90"))), Fail, "burn-in.thermal/hot"},
		{"aborted for heat before a sample was kept", 4, burn(40, endedBy(facts.BurnHot, "0000:21:00.0 reached 91 °C; the load is aborted at 90")), Fail, "burn-in.thermal/hot"},
		{"no temperatures", 4, burn(fullBurn, spoiled(setting(0, sample.Temperature, 0, func(float64) float64 { return sample.NoValues()[0] }))), Unknown, ""},
		{"the host went silent", 4, burn(100, endedBy(facts.BurnLostHost, "cut")), Unknown, ""},
		{"a profile of its own", 4, inTurn(burn(fullBurn, setting(2, sample.Temperature, 200, at(86))), func(r *rg, _ *ho) {
			hot, apart := 88.0, 20.0
			r.Profile = &inventory.Profile{BurnHot: &hot, BurnWarm: &hot, BurnSpread: &apart}
		}), Pass, ""},
	}...))
}

func TestBurnInPower(t *testing.T) {
	lost := func(after string) func(*facts.BurnIn) {
		return spoiled(endedBy(facts.BurnLostHost, "the connection was cut"), func(b *facts.BurnIn) { b.After = after })
	}
	h100 := func(_ *rg, h *ho) {
		for i := range h.Cards {
			h.Cards[i].Product, h.Cards[i].MemoryMiB = "2330", of(int64(81559))
		}
	}
	noCap := setting(0, sample.Reasons, 0, at(0))
	runRows(t, "burn-in.power", append(noLoad(), []row{
		{"bears it", 4, burn(fullBurn, nil), Pass, ""},
		{"a short one proves it as well", 4, burn(180, nil), Pass, ""},
		{"even a very short one", 4, burn(8, nil), Pass, ""},
		{"started anew", 4, burn(20, lost(facts.AfterRebooted)), Fail, "burn-in.power/host-lost"},
		{"vanished", 4, burn(20, lost(facts.AfterSilent)), Fail, "burn-in.power/host-lost"},
		{"the network went", 4, burn(20, lost(facts.AfterSameBoot)), Unknown, ""},
		{"nobody asked again", 4, burn(20, lost("")), Unknown, ""},
		{"off the bus", 4, burn(20, spoiled(event("xid", "0000:21:00.0", 79), endedBy(facts.BurnXid, "x"))), Fail, "burn-in.power/card-lost"},
		{"lost, by nvidia-smi", 4, burn(20, spoiled(event("lost", "0000:21:00.0", 0), endedBy(facts.BurnLostCard, "x"))), Fail, "burn-in.power/card-lost"},
		{"stopped computing", 4, burn(20, spoiled(func(b *facts.BurnIn) { b.Cards[1].Error, b.Cards[1].Key = "unknown error (999)", "driver" }, endedBy(facts.BurnError, "x"))), Fail, "burn-in.power/card-lost"},
		{"hung, and nobody knows which", 4, burn(20, endedBy(facts.BurnHang, "x")), Fail, "burn-in.power/card-lost"},
		{"the driver refused something", 4, burn(20, endedBy(facts.BurnError, "x")), Unknown, ""},
		{"little drawn", 4, burn(fullBurn, spoiled(noCap, setting(0, sample.Power, 0, at(300)))), Warn, "burn-in.power/low-load"},
		{"little drawn, and held at the cap", 4, burn(fullBurn, setting(0, sample.Power, 0, at(300))), Pass, ""},
		{"three quarters", 4, burn(fullBurn, spoiled(noCap, setting(0, sample.Power, 0, at(338)))), Pass, ""},
		{"an H100 at 0.65", 4, inTurn(h100, burn(fullBurn, spoiled(noCap, setting(0, sample.Power, 0, at(293))))), Pass, ""},
		{"no power told", 4, burn(fullBurn, setting(0, sample.Power, 0, func(float64) float64 { return sample.NoValues()[0] })), Unknown, ""},
		{"aborted for heat", 4, burn(100, endedBy(facts.BurnHot, "0000:21:00.0 reached 91 °C")), Pass, ""},
	}...))
	rig, h := goodRig(4), goodHost(4)
	burn(20, lost(facts.AfterRebooted))(rig, h)
	if _, f := verdictOf(judge(rig, h), "burn-in.power"); !strings.Contains(f.Note, "0000:01:00.0 450 + ") || !strings.Contains(f.Expected, "W usable") {
		t.Errorf("without the arithmetic: %+v", f)
	}
}

func TestBurnInMemory(t *testing.T) {
	cards := func(change func(*facts.BurnInCard)) func(*facts.BurnIn) {
		return func(b *facts.BurnIn) { change(&b.Cards[1]) }
	}
	runRows(t, "burn-in.memory", append(noLoad(), []row{
		{"kept everything", 4, burn(fullBurn, nil), Pass, ""},
		{"a short one", 4, burn(180, nil), Pass, ""},
		{"wrong words", 4, burn(fullBurn, cards(func(c *facts.BurnInCard) { c.Wrong, c.First, c.Bits = 3, 16968, 0x10001 })), Fail, "burn-in.memory/wrong-bits"},
		{"wrong results", 4, burn(fullBurn, cards(func(c *facts.BurnInCard) { c.Different = 1 })), Fail, "burn-in.memory/wrong-bits"},
		{"wrong words before somebody stopped it", 4, burn(60, spoiled(cards(func(c *facts.BurnInCard) { c.Wrong = 1 }), endedBy(facts.BurnStopped, "interrupted"))), Fail, "burn-in.memory/wrong-bits"},
		{"nothing compared", 4, burn(fullBurn, cards(func(c *facts.BurnInCard) { c.Passes = 0 })), Unknown, ""},
		{"ECC counter rises", 4, burn(fullBurn, spoiled(setting(1, sample.ECC, 0, at(2)), setting(1, sample.ECC, 500, at(3)))), Fail, "burn-in.memory/ecc"},
		{"ECC counter of before", 4, burn(fullBurn, setting(1, sample.ECC, 0, at(2))), Pass, ""},
		{"an ECC error ended it", 4, burn(20, spoiled(cards(func(c *facts.BurnInCard) { c.Error, c.Key = "uncorrectable ECC error", "ecc" }), endedBy(facts.BurnError, "x"))), Fail, "burn-in.memory/ecc"},
		{"a card of another rig", 4, burn(fullBurn, func(b *facts.BurnIn) {
			b.Cards = append(b.Cards, facts.BurnInCard{BDF: "0000:fe:00.0", Wrong: 7, Passes: 3})
		}), Pass, ""},
		{"double-bit error", 4, burn(fullBurn, event("xid", "0000:21:00.0", 48)), Fail, "burn-in.memory/xid"},
		{"page fault of a kernel that is known", 4, burn(fullBurn, event("xid", "0000:21:00.0", 31)), Warn, "burn-in.memory/xid"},
		{"clean-up after something else", 4, burn(fullBurn, event("xid", "0000:21:00.0", 45)), Pass, ""},
		{"off the bus is the supply's", 4, burn(20, spoiled(event("xid", "0000:21:00.0", 79), endedBy(facts.BurnXid, "x"))), Unknown, ""},
	}...))
	rig, h := goodRig(4), goodHost(4)
	burn(fullBurn, cards(func(c *facts.BurnInCard) { c.Wrong, c.First, c.Bits = 3, 16968, 0x10001 }))(rig, h)
	if _, f := verdictOf(judge(rig, h), "burn-in.memory"); f.Subject != "0000:21:00.0" || !strings.Contains(f.Summary, "byte 0x4248, bits 0x00010001") {
		t.Errorf("card and address: %+v", f)
	}
}

// Links that give in under load are findings of the links.
func TestBurnInLinks(t *testing.T) {
	runRows(t, "pcie.width", []row{
		{"holds", 4, burn(fullBurn, nil), Pass, ""},
		{"narrows", 4, burn(fullBurn, setting(1, sample.LinkWidth, 900, at(8))), Fail, "pcie.width/slot-fault"},
		{"narrow in one sample", 4, burn(fullBurn, func(b *facts.BurnIn) { b.Series.Cards[1].Values[20][sample.LinkWidth] = 8 }), Pass, ""},
	})
	runRows(t, "pcie.speed", []row{
		{"holds", 4, burn(fullBurn, nil), Pass, ""},
		{"slows", 4, burn(fullBurn, setting(1, sample.LinkGen, 900, at(3))), Fail, "pcie.speed/under-load"},
		{"asleep because idle", 4, burn(fullBurn, spoiled(setting(1, sample.LinkGen, 900, at(1)), setting(1, sample.Utilization, 900, at(0)))), Pass, ""},
	})
}

// Nobody who never asked for a burn-in misses its result.
// A burn-in that is not there, that could not be read, and that the host could not begin are told apart, with what to do.
func TestBurnInSaysWhyThereIsNone(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*ho)
		summary string
		note    string
	}{
		"never run": {func(*ho) {}, "no burn-in was run", "put the cards under load"},
		"spoilt":    {func(h *ho) { h.Gaps[facts.KindBurnIn] = "probe/burn-in.json could not be read: it is cut" }, "could not be read", "put the cards under load"},
		"no driver": {func(h *ho) {
			h.BurnIn = &facts.BurnIn{Ended: facts.BurnMissing, Text: "the driver shows no card"}
		}, "the driver shows no card", "mend that first"},
	} {
		rig, h := goodRig(4), goodHost(4)
		if h.Gaps == nil {
			h.Gaps = map[facts.Kind]string{}
		}
		test.change(h)
		for _, f := range judge(rig, h) {
			if strings.HasPrefix(f.Check, "burn-in.") && (f.Verdict != Unknown || !strings.Contains(f.Summary, test.summary) || !strings.Contains(f.Known, test.note)) {
				t.Errorf("%s: %s is %s: %q, %q", name, f.Check, f.Verdict, f.Summary, f.Known)
			}
		}
	}
}

// What was looked at and could not be seen does not read "does not apply"; what was left out says nothing of a rig.
func TestVerdictOfWhatIsUnseen(t *testing.T) {
	rig, h := goodRig(4), goodHost(4)
	for _, test := range []struct {
		only string
		want Verdict
	}{{"burn-in", Unknown}, {"cluster", Skip}, {"gpu", Pass}} {
		findings, policy := Selection{Only: []string{test.only}}.Apply(judge(rig, h), PolicyFor(nil, 4))
		j := Judged{Rig: rig, Policy: policy, Findings: findings}
		if got := j.Verdict(); got != test.want {
			t.Errorf("only %s: %s, want %s", test.only, got, test.want)
		}
		if code := ExitCode([]Judged{j}, FailOn(Fail)); code != ExitOK {
			t.Errorf("only %s: exit %d; nobody asked for a burn-in", test.only, code)
		}
	}
}

func TestBurnInIsOnRequest(t *testing.T) {
	rig, h := goodRig(4), goodHost(4)
	findings, policy := Selection{}.Apply(judge(rig, h), PolicyFor(nil, 4))
	if code := ExitCode([]Judged{{Rig: rig, Policy: policy, Findings: findings}}, FailOn(Fail)); code != ExitOK {
		t.Errorf("not asked for: exit %d", code)
	}
	findings, policy = Selection{Asked: []string{"burn-in.power"}}.Apply(judge(rig, h), PolicyFor(nil, 4))
	if code := ExitCode([]Judged{{Rig: rig, Policy: policy, Findings: findings}}, FailOn(Fail)); code != ExitUnknown {
		t.Errorf("asked for, and not there: exit %d", code)
	}
	if _, p := (Selection{Only: []string{"burn-in"}, Asked: []string{"burn-in"}}).Apply(judge(rig, h), PolicyFor(nil, 4)); !p.Required(rig, "burn-in.memory") {
		t.Error("named by its first part, and not required")
	}
	policy = PolicyFor(&inventory.Profile{Require: []string{"burn-in.memory"}}, 4)
	if !policy.Required(rig, "burn-in.memory") {
		t.Error("required by a profile, and not required")
	}
}
