package checks

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// gpu.throttle: is a card held back by heat or by a power brake?
//
//	hardware slowdown in force (thermal, power brake)        fail
//	software thermal slowdown in force, or 85 °C and more    warn
//	a counter of hardware slowdowns above 0                  warn: it happened since the driver was loaded
//	reasons read, none of these                              pass
//	nvidia-smi -q was read, and prints N/A for all           unknown: the driver does not tell
//	reasons not read                                         unknown
//
// Normal, and no throttling: gpu_idle at P8, sw_power_cap (a card at its limit; its counter is large on every healthy
// card), clocks set by hand. Names: nvml.h, with both spellings of nvidia-smi (throttle, since 535 event reasons).
var gpuThrottle = Check{ID: "gpu.throttle", Title: "throttling", Decide: decideThrottle}

// hotCard is the temperature from which a card is too warm at any load, °C. Policy of the 30-minute burn-in.
const hotCard = 85

// slowdowns in order of weight. hw_slowdown comes along with one of the other two, or alone.
var slowdowns = []struct {
	reason, counter, words string
	verdict                Verdict
	code                   string
}{
	{"hw_power_brake_slowdown", "hw_power_brake", "power brake", Fail, "gpu.throttle/power-brake"},
	{"hw_thermal_slowdown", "hw_therm_slowdown", "hardware thermal slowdown", Fail, "gpu.throttle/thermal"},
	{"hw_slowdown", "", "hardware slowdown", Fail, "gpu.throttle/power-brake"},
	{"sw_thermal_slowdown", "", "thermal slowdown", Warn, "gpu.throttle/thermal"},
}

func decideThrottle(s Subject) []Finding {
	var out []Finding
	read, silent, temps := 0, 0, []int{}
	for _, c := range s.Cards {
		switch {
		case c.Reasons.Known():
			read++
		case c.SMIDevice.Known():
			silent++
		}
		if t, ok := c.Temperature.Get(); ok {
			temps = append(temps, t)
		}
		if f, bad := throttled(c); bad {
			out = append(out, f)
		}
	}
	sort.Ints(temps)
	switch {
	case len(out) > 0:
		return out
	case len(s.Cards) == 0:
		return []Finding{unknown(rigSubject, "no card was asked what holds its clocks back").knownBy("give nvidia-smi -q, or a snapshot of the host")}
	case silent == len(s.Cards):
		return []Finding{unknown(rigSubject, "the driver does not tell what holds the clocks of these cards back").knownBy("watch their clocks under load: nvidia-smi dmon -s pc")}
	case read < len(s.Cards):
		return []Finding{unknown(rigSubject, "what holds the clocks back was not read for %d of %d cards", len(s.Cards)-read, len(s.Cards)).
			knownBy("give nvidia-smi -q, or a snapshot of the host")}
	case len(temps) > 0:
		return []Finding{pass(rigSubject, "no card is held back, %d to %d °C", temps[0], temps[len(temps)-1]).because(ev(s.Cards[0].Reasons))}
	}
	return []Finding{pass(rigSubject, "no card is held back").because(ev(s.Cards[0].Reasons))}
}

// throttled judges one card: what is in force now, else its temperature, else what the counters remember.
func throttled(c facts.Card) (Finding, bool) {
	for _, r := range slowdowns {
		if !slices.Contains(c.Reasons.Value, r.reason) {
			continue
		}
		code := r.code
		if r.reason == "hw_slowdown" && c.Temperature.Value >= hotCard {
			code = "gpu.throttle/thermal"
		}
		return finding(r.verdict, c.BDF, "%s is held back: %s", c.BDF, r.words).saw(strings.Join(c.Reasons.Value, ", "), "none").
			because(ev(c.Reasons), ev(c.Temperature)).fix(code, "bdf", c.BDF), true
	}
	if t := c.Temperature.Value; t >= hotCard {
		return warn(c.BDF, "%s is at %d °C", c.BDF, t).saw(fmt.Sprintf("%d °C", t), fmt.Sprintf("below %d °C", hotCard)).
			because(ev(c.Temperature)).fix("gpu.throttle/thermal", "bdf", c.BDF), true
	}
	for _, r := range slowdowns {
		if us := c.ReasonUS.Value[r.counter]; r.counter != "" && us > 0 {
			return warn(c.BDF, "%s was held back for %.1f s since the driver was loaded: %s", c.BDF, float64(us)/1e6, r.words).
				saw(fmt.Sprintf("%d µs", us), "0").because(evs(c.ReasonUS.Source, fmt.Sprintf("%s %d us", r.counter, us))).fix(r.code, "bdf", c.BDF), true
		}
	}
	return Finding{}, false
}
