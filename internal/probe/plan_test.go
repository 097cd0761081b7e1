package probe

import (
	"strings"
	"testing"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

func told(r wire.Request, outcome string, lines ...wire.Line) answer {
	return answer{request: r, outcome: outcome, lines: lines}
}

// word is a request in a few letters: its command, layout, and whether P2P is off.
func word(r wire.Request) string {
	s := r.Command
	if l := layoutOf(r); l != "" {
		s = l
	}
	if r.Env["NCCL_P2P_DISABLE"] == "1" {
		s += "-p2p"
	}
	return s
}

func TestPlan(t *testing.T) {
	two := wire.Line{Hello: &wire.Hello{Devices: []wire.Device{{Ordinal: 0}, {Ordinal: 1}}}}
	one := wire.Line{Hello: &wire.Hello{Devices: []wire.Device{{Ordinal: 0}}}}
	pair := func(result string) wire.Line {
		return wire.Line{Pair: &wire.Pair{Path: wire.PathP2P, Result: result}}
	}
	for _, row := range []struct {
		name  string
		plan  plan
		reply func(word string) (outcome string, lines []wire.Line)
		want  string
	}{
		{"no P2P at all", plan{links: true, nccl: true}, nil, "hello links peers single ranks"},
		{"P2P that works is compared with none", plan{links: true, nccl: true}, func(w string) (string, []wire.Line) {
			if w == "peers" {
				return wire.OutcomeOK, []wire.Line{pair(wire.PairOK)}
			}
			return wire.OutcomeOK, nil
		}, "hello links peers single ranks single-p2p"},
		{"P2P that corrupts is never trusted", plan{nccl: true}, func(w string) (string, []wire.Line) {
			if w == "peers" {
				return wire.OutcomeOK, []wire.Line{pair(wire.PairCorrupt)}
			}
			return wire.OutcomeOK, nil
		}, "hello peers single-p2p ranks-p2p"},
		{"a hang is tried again without P2P", plan{nccl: true}, func(w string) (string, []wire.Line) {
			if w == "single" {
				return wire.OutcomeTimeout, nil
			}
			return wire.OutcomeOK, nil
		}, "hello peers single single-p2p ranks-p2p"},
		{"wrong sums are tried again without P2P", plan{nccl: true}, func(w string) (string, []wire.Line) {
			if w == "ranks" {
				return wire.OutcomeOK, []wire.Line{{AllReduce: &wire.AllReduce{Wrong: 1}}}
			}
			return wire.OutcomeOK, nil
		}, "hello peers single ranks ranks-p2p"},
		{"a wedged driver is left alone", plan{links: true, nccl: true}, func(w string) (string, []wire.Line) {
			if w == "links" {
				return wire.OutcomeWedged, nil
			}
			return wire.OutcomeOK, nil
		}, "hello links"},
		{"a helper that is gone is asked nothing", plan{nccl: true}, func(w string) (string, []wire.Line) {
			if w == "peers" {
				return "", nil
			}
			return wire.OutcomeOK, nil
		}, "hello peers"},
		{"no driver", plan{links: true, nccl: true}, func(string) (string, []wire.Line) { return wire.OutcomeError, nil }, "hello"},
		{"one card has links only", plan{links: true, nccl: true}, func(w string) (string, []wire.Line) {
			if w == "hello" {
				return wire.OutcomeOK, []wire.Line{one}
			}
			return wire.OutcomeOK, nil
		}, "hello links"},
		{"one card of several is visible", plan{links: true, nccl: true, several: true}, func(w string) (string, []wire.Line) {
			if w == "hello" {
				return wire.OutcomeOK, []wire.Line{one}
			}
			return wire.OutcomeOK, nil
		}, "hello links single"},
		{"links alone", plan{links: true}, nil, "hello links peers"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var done []answer
			var words []string
			for range 20 {
				r, more := row.plan.next(done)
				if !more {
					break
				}
				if err := r.Check(); err != nil {
					t.Fatal(err)
				}
				outcome, lines := wire.OutcomeOK, []wire.Line(nil)
				if row.reply != nil {
					outcome, lines = row.reply(word(r))
				}
				if r.Command == wire.CommandHello && len(lines) == 0 {
					lines = append(lines, two)
				}
				words = append(words, word(r))
				done = append(done, told(r, outcome, lines...))
			}
			if got := strings.Join(words, " "); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
	if p := newPlan(&facts.Host{Software: facts.Software{Torch: []facts.Torch{{Python: "/opt/venv/bin/python3"}}}}, Options{Python: "~/mine/bin/python"}); strings.Join(p.pythons, " ") != "~/mine/bin/python /opt/venv/bin/python3" {
		t.Error(p.pythons)
	}
}
