//go:build linux

package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"preflight/internal/probe/wire"
)

// Two helpers find each other: one listens, the other dials it, and a port that nobody listens on is refused. After the next
// request of another kind the door is closed.
func TestReach(t *testing.T) {
	first, second := start(t), start(t)
	first.send(wire.Request{Command: wire.CommandReach, Reach: &wire.ReachRequest{Listen: true, Toward: []string{"127.0.0.1"}}})
	at := pick(first.until(done), func(l wire.Line) bool { return l.Reach != nil })
	if len(at) != 1 || at[0].Reach.Interface != "lo" || at[0].Reach.Address != "127.0.0.1" || at[0].Reach.Port == 0 || !at[0].Reach.Virtual || at[0].Reach.HighPort == 0 {
		t.Fatalf("the listener says %+v", at)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	there := fmt.Sprintf("127.0.0.1:%d", at[0].Reach.Port)
	dial := func() map[string]string {
		second.send(wire.Request{Command: wire.CommandReach, Reach: &wire.ReachRequest{Dial: []string{there, nobody}}})
		out := map[string]string{}
		for _, l := range pick(second.until(done), func(l wire.Line) bool { return l.Reach != nil }) {
			out[l.Reach.To] = l.Reach.Result
		}
		return out
	}
	if got := dial(); got[there] != wire.ReachOK || got[nobody] != wire.ReachRefused {
		t.Errorf("dialed: %v", got)
	}
	first.send(wire.Request{Command: wire.CommandHello})
	first.until(done)
	if got := dial(); got[there] != wire.ReachRefused {
		t.Errorf("the door stayed open: %v", got)
	}
	if a, b := first.end(), second.end(); a != 0 || b != 0 {
		t.Errorf("exit %d and %d", a, b)
	}
}

func TestReachNamesWhatIsThere(t *testing.T) {
	for _, r := range []*wire.ReachRequest{{Listen: true, Interface: "gremlin0"}, {Listen: true}} {
		h := start(t)
		h.send(wire.Request{Command: wire.CommandReach, Reach: r})
		lines := pick(h.until(done), func(l wire.Line) bool { return l.Error != nil })
		if len(lines) != 1 || lines[0].Error.Key != wire.KeyNetwork || r.Interface != "" && !strings.Contains(lines[0].Error.Text, "there are lo") {
			t.Errorf("%+v: %+v", r, lines)
		}
		h.end()
	}
	for _, bad := range []*wire.ReachRequest{nil, {}, {Listen: true, Dial: []string{"127.0.0.1:1"}}, {Dial: []string{"example.org:80"}}, {Dial: []string{"127.0.0.1"}}} {
		if (wire.Request{Command: wire.CommandReach, Reach: bad}).Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
