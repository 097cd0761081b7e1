package probe

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"preflight/internal/facts"
)

//go:embed sweep.sh
var sweepScript string

// SweepKeeps is the share of the uncapped speed that a recommended cap keeps. Policy: what is lost below it is felt.
const SweepKeeps = 0.95

// ShortestStep is the least time of one cap: clocks and power need some seconds to settle.
const ShortestStep = 20 * time.Second

// settle is the part of a step that is left out of its speed.
const settle = 1.0 / 3

// sweep changes the power limits of a host's cards while they are under load, and puts them back. Its zero value does nothing.
type sweep struct {
	host   Host
	before []cardLimit
	caps   []float64
	each   time.Duration
	cancel context.CancelFunc
	ended  chan struct{}
	steps  []capStep
	failed string
}

// cardLimit is a card's power limit, W.
type cardLimit struct {
	bus              string
	now, least, most float64
}

// capStep is when a cap came into force, seconds since the first sample.
type capStep struct{ watts, at float64 }

// capReport is what one card computed, as it was told.
type capReport struct {
	at     float64
	card   int
	tflops float64
}

// openSweep looks whether the caps can be set on these cards.
func (x *burning) openSweep(ctx context.Context) (*sweep, error) {
	if len(x.b.Caps) == 0 {
		return &sweep{}, nil
	}
	s := &sweep{host: x.host, caps: x.b.Caps, each: x.b.Load / time.Duration(len(x.b.Caps))}
	if s.each < ShortestStep {
		return nil, fmt.Errorf("a sweep over %d caps takes at least %s of load", len(s.caps), ShortestStep*time.Duration(len(s.caps)))
	}
	var err error
	if s.before, err = s.limits(ctx, nil); err != nil {
		return nil, err
	}
	for _, c := range s.before {
		for _, w := range s.caps {
			if w < c.least || w > c.most {
				return nil, fmt.Errorf("a cap of %g W is outside of what %s takes: %g to %g W", w, shortBus(c.bus), c.least, c.most)
			}
		}
	}
	return s, nil
}

// limits runs the script without caps: it tells the limits, and puts back those that are given.
func (s *sweep) limits(ctx context.Context, back []cardLimit) ([]cardLimit, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out := capped{limit: outputLimit}
	if err := s.host.RunScript(ctx, s.script(back, nil), &out); err != nil {
		return nil, fmt.Errorf("the power limits could not be read: %w", err)
	}
	var all []cardLimit
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 2 && f[0] == "failed":
			return nil, errors.New(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "failed "+f[1])))
		case len(f) == 5 && f[0] == "limit":
			c := cardLimit{bus: f[1]}
			for i, to := range []*float64{&c.now, &c.least, &c.most} {
				v, err := strconv.ParseFloat(f[2+i], 64)
				if err != nil {
					return nil, fmt.Errorf("%s does not tell its power limits", shortBus(c.bus))
				}
				*to = v
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("nvidia-smi tells no power limits")
	}
	return all, nil
}

func (s *sweep) script(back []cardLimit, caps []float64) []byte {
	var old, watts []string
	for _, c := range back {
		old = append(old, fmt.Sprintf("%s=%g", c.bus, c.now))
	}
	for _, w := range caps {
		watts = append(watts, strconv.FormatFloat(w, 'g', -1, 64))
	}
	return []byte(strings.NewReplacer("@LIMITS@", strings.Join(old, " "), "@CAPS@", strings.Join(watts, " "), "@SECONDS@", strconv.Itoa(int(s.each.Seconds()))).Replace(sweepScript))
}

// run holds one cap after another. It returns when all were held, when one is refused, or when it is closed.
func (s *sweep) run(ctx context.Context, x *burning) {
	ctx, cancel := context.WithCancel(ctx)
	x.mu.Lock()
	if len(s.caps) == 0 || s.ended != nil {
		x.mu.Unlock()
		cancel()
		return
	}
	s.cancel, s.ended = cancel, make(chan struct{})
	x.mu.Unlock()
	defer close(s.ended)
	_ = s.host.RunScript(ctx, s.script(s.before, s.caps), &lineWriter{heard: func(line string) {
		f := strings.Fields(line)
		if len(f) < 2 {
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		switch f[0] {
		case "set":
			if w, err := strconv.ParseFloat(f[1], 64); err == nil {
				s.steps = append(s.steps, capStep{w, x.now()})
			}
		case "failed":
			if s.failed == "" {
				s.failed = strings.TrimPrefix(line, "failed ")
			}
		}
	}})
}

// close waits for the script, which puts the limits back whether it was heard or not, and looks whether they are. What is not as
// it was is told.
func (s *sweep) close(ctx context.Context) string {
	if s.ended == nil {
		return ""
	}
	s.cancel()
	<-s.ended
	ctx = context.WithoutCancel(ctx)
	left := "the host does not tell its power limits any more; they are its defaults again after a boot"
	for try := range 6 {
		var back []cardLimit
		if try == 5 {
			back = s.before
		}
		now, err := s.limits(ctx, back)
		if err != nil {
			return left + ": " + err.Error()
		}
		if left = differ(s.before, now); left == "" || back != nil {
			break
		}
		time.Sleep(time.Second)
	}
	if left == "" {
		return ""
	}
	now, err := s.limits(ctx, nil)
	if err != nil {
		return left
	}
	return differ(s.before, now)
}

// differ tells the cards whose limit is not what it was.
func differ(before, now []cardLimit) string {
	at := map[string]float64{}
	for _, c := range now {
		at[c.bus] = c.now
	}
	var out []string
	for _, c := range before {
		if w, seen := at[c.bus]; !seen || math.Abs(w-c.now) > 0.5 {
			out = append(out, fmt.Sprintf("%s is at %g W and was at %g W", shortBus(c.bus), w, c.now))
		}
	}
	return strings.Join(out, "; ")
}

// shortBus writes nvidia-smi's address as everywhere else.
func shortBus(s string) string {
	s = strings.ToLower(s)
	if len(s) == len("00000000:01:00.0") {
		return s[4:]
	}
	return s
}

// judgeCaps makes a row of each cap that was held long enough, and finds the lowest that keeps the speed of the highest.
func (x *burning) judgeCaps(s *sweep) (rows []facts.CapStep, advice float64) {
	for i, step := range s.steps {
		end := x.result.End
		if i+1 < len(s.steps) {
			end = s.steps[i+1].at
		}
		from := step.at + (end-step.at)*settle
		row := facts.CapStep{Watts: step.watts, Seconds: end - step.at, TFLOPS: speed(x.totals, from, end)}
		row.Drawn, row.Hottest = seen(&x.series, from, end)
		if end-step.at < s.each.Seconds()*0.8 || row.TFLOPS == 0 {
			continue // cut short
		}
		rows = append(rows, row)
	}
	best := 0
	for i := range rows {
		if rows[i].Watts > rows[best].Watts {
			best = i
		}
	}
	for i := range rows {
		rows[i].Speed = rows[i].TFLOPS / rows[best].TFLOPS
		if rows[i].Speed >= SweepKeeps && rows[i].Watts < rows[best].Watts && (advice == 0 || rows[i].Watts < advice) {
			advice = rows[i].Watts
		}
	}
	return rows, advice
}
