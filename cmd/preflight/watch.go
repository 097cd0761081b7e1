package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"preflight/checks"
	"preflight/internal/diff"
	"preflight/internal/report"
)

// untilPass judges again and again: for somebody who swaps risers and wants to see the rig turn well. A rig that is off in
// between is a result like any other. It ends when nothing fails and nothing required is unknown.
func (r rounds) untilPass(ctx context.Context, env *environment) error {
	_, tty := terminal(env.stdout)
	tty = tty && os.Getenv("TERM") != "dumb"
	begun := time.Now()
	var last []diff.State
	for n := 1; ; n++ {
		if tty && n > 1 && r.sinks[0].path == "" {
			_, _ = fmt.Fprint(env.stdout, "\x1b[H\x1b[2J") // the report of this round in the place of the last one's
		}
		run, err := r.one(ctx, env)
		var e exit
		if err != nil && (!errors.As(err, &e) || e.err != nil) {
			return err // a report that cannot be written is not watched
		}
		now := states(run)
		what := ""
		if last != nil {
			what = ": " + report.Round(diff.Compare(last, now, nil), env.lang())
		}
		last = now
		_, _ = fmt.Fprintf(env.stderr, "preflight: round %d, %s%s\n", n, time.Now().Format(time.TimeOnly), what)
		switch {
		case ctx.Err() != nil:
			return exit{code: checks.ExitInterrupted}
		case run.code == checks.ExitOK:
			_, _ = fmt.Fprintf(env.stderr, "preflight: all is well after %s in %s\n", rounded(n), time.Since(begun).Round(time.Second))
			return nil
		}
		select {
		case <-ctx.Done():
			return exit{code: run.code} // what was last seen is the answer
		case <-time.After(r.f.watch):
		}
	}
}

func rounded(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// states are the rigs of a run as a comparison takes them.
func states(run judgement) []diff.State {
	var out []diff.State
	for _, r := range run.results {
		out = append(out, stateOf(r))
	}
	return out
}
