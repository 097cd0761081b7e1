package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

func reading(set map[sample.Metric]float64) sample.Item {
	v := sample.NoValues()
	for m, x := range set {
		v[m] = x
	}
	return sample.Item{Card: &sample.Card{At: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), BDF: "0000:01:00.0", Values: v}}
}

// What a sample says decides whether load goes on.
func TestDanger(t *testing.T) {
	b := BurnOptions{Core: 90, MemoryTemp: 105}
	lost := reading(nil)
	lost.Card.Lost = true
	for name, test := range map[string]struct {
		item sample.Item
		want string
	}{
		"warm":          {reading(map[sample.Metric]float64{sample.Temperature: 89, sample.MemoryTemp: 104}), ""},
		"hot core":      {reading(map[sample.Metric]float64{sample.Temperature: 90}), facts.BurnHot},
		"hot memory":    {reading(map[sample.Metric]float64{sample.Temperature: 70, sample.MemoryTemp: 105}), facts.BurnHot},
		"tells nothing": {reading(nil), ""},
		"lost":          {lost, facts.BurnLostCard},
		"off the bus":   {sample.Item{Kernel: &sample.Kernel{Xid: 79, Text: "x"}}, facts.BurnXid},
		"another Xid":   {sample.Item{Kernel: &sample.Kernel{Xid: 13}}, ""},
		"a link":        {sample.Item{Kernel: &sample.Kernel{Text: "AER: Corrected error"}}, ""},
	} {
		if got, text := danger(test.item, b); got != test.want || (got != "") != (text != "") {
			t.Errorf("%s: %q %q, want %q", name, got, text, test.want)
		}
	}
}

// A host is loaded only when its cards are there and idle, whatever --force says.
func TestNotBurnable(t *testing.T) {
	idle := facts.Card{Device: facts.Device{BDF: "0000:01:00.0"}, Index: facts.Of(0, "x")}
	working := idle
	working.Processes = facts.Of(2, "x")
	for name, test := range map[string]struct {
		host facts.Host
		want string
	}{
		"one idle card": {facts.Host{Cards: []facts.Card{idle}}, ""},
		"at work":       {facts.Host{Cards: []facts.Card{idle, working}}, facts.BurnBusy},
		"no driver":     {facts.Host{Cards: []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}}}}, facts.BurnMissing},
		"no card":       {facts.Host{}, facts.BurnMissing},
		"hung":          {facts.Host{Cards: []facts.Card{idle}, Driver: facts.Driver{SMIHung: facts.Of(true, "x")}}, facts.BurnMissing},
	} {
		if got, why := notBurnable(&test.host, Options{Force: true}); got != test.want || (got != "") != (why != "") {
			t.Errorf("%s: %q %q, want %q", name, got, why, test.want)
		}
	}
}

// A sweep counts what came after the clocks settled, leaves out a step that was cut short, and recommends the lowest cap that
// keeps the speed.
func TestJudgeCaps(t *testing.T) {
	x := &burning{sweep: &sweep{each: 30 * time.Second, steps: []capStep{{450, 10}, {350, 40}, {250, 70}, {150, 100}}}}
	x.result.Begin, x.result.End = 10, 105 // the last step lasted 5 s
	speeds := map[float64]float64{450: 100, 350: 97, 250: 80, 150: 50}
	for at := 11.0; at < 105; at++ {
		step := 0
		for i, s := range x.sweep.steps {
			if at > s.at {
				step = i
			}
		}
		tflops := speeds[x.sweep.steps[step].watts]
		if at-x.sweep.steps[step].at < 5 {
			tflops = 1 // unsettled
		}
		x.totals = append(x.totals, capReport{at, 0, tflops}, capReport{at, 1, tflops * 2})
	}
	rows, advice := x.judgeCaps(x.sweep)
	if len(rows) != 3 || advice != 350 {
		t.Fatalf("advice %g, rows %+v", advice, rows)
	}
	for i, want := range []float64{1, 0.97, 0.8} {
		if math.Abs(rows[i].Speed-want) > 1e-9 || rows[i].TFLOPS != speeds[rows[i].Watts]*3 {
			t.Errorf("row %d: %+v, want a speed of %g", i, rows[i], want)
		}
	}
	if rows, advice := (&burning{}).judgeCaps(&sweep{}); rows != nil || advice != 0 {
		t.Errorf("without a sweep: %+v, %g", rows, advice)
	}
}

// scriptHost runs scripts here, with stand-ins for nvidia-smi and id before all else.
type scriptHost struct {
	dir string
}

func newScriptHost(t *testing.T, smi, uid string) scriptHost {
	t.Helper()
	h := scriptHost{t.TempDir()}
	for name, body := range map[string]string{"nvidia-smi": smi, "id": "echo " + uid} {
		if err := os.WriteFile(h.dir+"/"+name, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h scriptHost) RunScript(ctx context.Context, script []byte, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "/bin/sh")
	cmd.Env = []string{"PATH=" + h.dir + ":/usr/bin:/bin"}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(script), out
	return cmd.Run()
}

func (scriptHost) Talk(context.Context, []byte, func(io.WriteCloser, io.Reader) error) error {
	return errors.New("nobody talks here")
}

const twoLimits = `printf '00000000:01:00.0, 450.00, 150.00, 600.00\n00000000:41:00.0, 450.00, 150.00, 600.00\n'`

// A sweep that cannot be done is refused before any load: caps outside of a card's limits, no root, a card that tells none.
func TestOpenSweep(t *testing.T) {
	for name, test := range map[string]struct {
		smi  string
		caps []float64
		load time.Duration
		want string
	}{
		"within":       {twoLimits, []float64{450, 300}, time.Minute, ""},
		"too low":      {twoLimits, []float64{450, 100}, time.Minute, "a cap of 100 W is outside of what 0000:01:00.0 takes: 150 to 600 W"},
		"too high":     {twoLimits, []float64{700}, time.Minute, "a cap of 700 W is outside"},
		"no root":      {"UID1000", []float64{300}, time.Minute, "changing power limits needs root"},
		"tells none":   {"echo '00000000:01:00.0, [N/A], [N/A], [N/A]'", []float64{300}, time.Minute, "0000:01:00.0 does not tell its power limits"},
		"fails":        {"echo 'NVIDIA-SMI has failed'; exit 9", []float64{300}, time.Minute, "NVIDIA-SMI has failed"},
		"little time":  {twoLimits, []float64{450, 300}, 30 * time.Second, "a sweep over 2 caps takes at least 40s of load"},
		"no sweep":     {"", nil, time.Second, ""},
		"answers late": {":", []float64{300}, time.Minute, "nvidia-smi tells no power limits"},
	} {
		uid := "0"
		if test.smi == "UID1000" {
			test.smi, uid = twoLimits, "1000"
		}
		x := &burning{host: newScriptHost(t, test.smi, uid), b: BurnOptions{Caps: test.caps, Load: test.load}}
		_, err := x.openSweep(t.Context())
		if got := fmt.Sprint(err); err == nil && test.want != "" || err != nil && (test.want == "" || !strings.Contains(got, test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// The script holds the caps in order and puts back what was, also when it is ended in the middle or a cap is refused.
func TestSweepScriptPutsBack(t *testing.T) {
	for name, test := range map[string]struct {
		refuse string
		end    bool
		want   string
	}{
		"whole":   {"", false, "set 300,set 200,restored"},
		"refused": {"200", false, "set 300,failed 00000000:01:00.0 refused,restored"},
		"ended":   {"", true, "set 300"}, // nobody hears the rest
	} {
		log := t.TempDir() + "/log"
		h := newScriptHost(t, fmt.Sprintf(`case "$*" in *query*) %s ;; *) if [ "$4" = "%s" ]; then echo refused; exit 1; fi; echo "$2 $4" >>%s ;; esac`, twoLimits, test.refuse, log), "0")
		s := &sweep{host: h, each: time.Second, caps: []float64{300, 200}, before: []cardLimit{{bus: "00000000:01:00.0", now: 450}, {bus: "00000000:41:00.0", now: 420.5}}}
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		w := &lineWriter{heard: func(line string) {
			if !strings.HasPrefix(line, "limit") && line != "held" {
				told = append(told, line)
			}
		}}
		if test.end {
			pr, pw := io.Pipe()
			go func() {
				buf := make([]byte, 4096)
				for {
					n, err := pr.Read(buf)
					_, _ = w.Write(buf[:n])
					if err != nil || strings.Contains(strings.Join(told, ","), "set 300") {
						_ = pr.Close() // as a connection that is cut
						return
					}
				}
			}()
			_ = h.RunScript(ctx, s.script(s.before, s.caps), pw)
		} else if err := h.RunScript(ctx, s.script(s.before, s.caps), w); err != nil && test.refuse == "" {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if got := strings.Join(told, ","); got != test.want {
			t.Errorf("%s: told %q, want %q", name, got, test.want)
		}
		var last string
		for range 50 {
			raw, _ := exec.Command("tail", "-n", "2", log).Output()
			if last = string(bytes.TrimSpace(raw)); strings.HasSuffix(last, "420.5") {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if last != "00000000:01:00.0 450\n00000000:41:00.0 420.5" {
			t.Errorf("%s: the last limits are %q", name, last)
		}
	}
}

// What is not as it was is told by card.
func TestDiffer(t *testing.T) {
	before := []cardLimit{{bus: "00000000:01:00.0", now: 450}, {bus: "00000000:41:00.0", now: 450}}
	if got := differ(before, before); got != "" {
		t.Errorf("%q", got)
	}
	if got := differ(before, []cardLimit{{bus: "00000000:01:00.0", now: 300}, before[1]}); got != "0000:01:00.0 is at 300 W and was at 450 W" {
		t.Errorf("%q", got)
	}
}
