package collect

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"preflight/internal/facts"
)

// canned writes something and ends with an error.
type canned struct {
	say    func(nonce string) string
	err    error
	access Access
}

func (c canned) Run(_ context.Context, script []byte, stdout io.Writer) (Access, error) {
	_, rest, _ := strings.Cut(string(script), "NONCE='")
	nonce, _, _ := strings.Cut(rest, "'")
	if _, err := io.WriteString(stdout, c.say(nonce)); err != nil {
		return Access{}, err
	}
	return c.access, c.err
}

// TestCollectEnds: how a run ends decides between a snapshot, a cut one and an error with the reason behind.
func TestCollectEnds(t *testing.T) {
	lost := errors.New("connection lost")
	say := func(frames ...string) func(string) string {
		return func(nonce string) string {
			out := "hello\n"
			for _, f := range frames {
				out += "\n@@preflight " + nonce + " " + f + "\n"
			}
			return out
		}
	}
	for name, c := range map[string]struct {
		run            canned
		cut, err, root string
	}{
		"whole, through sudo":      {canned{say: say("begin 1 0", "end"), access: Access{Root: "sudo"}}, "", "", "sudo"},
		"sudo refused":             {canned{say: say("begin 1 1000", "end"), access: Access{Root: "none", Why: "sudo needs a password"}}, "", "", "none"},
		"lost half-way":            {canned{say: say("begin 1 0", "text cmd/x"), err: lost}, "connection lost", "", "none"},
		"lost before it began":     {canned{say: func(string) string { return "" }, err: lost}, "", "connection lost", ""},
		"a shell that is no shell": {canned{say: func(string) string { return "fish: Unknown command" }}, "", "did not start", ""},
		"malformed, not masked":    {canned{say: say("begin 1 0", "nonsense"), err: context.Canceled}, "", "unknown kind", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Collect(t.Context(), c.run, Request{})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(s.Manifest.Cut, c.cut) || (c.cut == "") != (s.Manifest.Cut == "") {
				t.Errorf("cut %q, want %q", s.Manifest.Cut, c.cut)
			}
			if c.cut == "" && (s.Manifest.Root != c.root || s.Manifest.RootWhy != c.run.access.Why) {
				t.Errorf("root %q (%s), want %q", s.Manifest.Root, s.Manifest.RootWhy, c.root)
			}
			if s.Manifest.Schema != facts.SnapshotSchema {
				t.Errorf("schema %q", s.Manifest.Schema)
			}
		})
	}
}
