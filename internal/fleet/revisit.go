package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"preflight/internal/facts"
)

// A host that went silent under load is asked again for as long as a server may take to boot.
const (
	revisitFor   = 4 * time.Minute
	revisitEvery = 5 * time.Second
	revisitLimit = 20 * time.Second // of one try
)

// revisit looks what became of a host that went silent under load: whether it was started anew tells a supply that gave in from
// a network that did.
func revisit(ctx context.Context, s *facts.Snapshot, h *facts.Host, reopen func(context.Context) (Host, error), say func(string)) {
	if h.BurnIn == nil || h.BurnIn.Ended != facts.BurnLostHost || reopen == nil || ctx.Err() != nil {
		return
	}
	burn := *h.BurnIn
	burn.After = facts.AfterSilent
	say("the host went silent; asking again for " + revisitFor.String())
	for until := time.Now().Add(revisitFor); time.Now().Before(until) && ctx.Err() == nil; {
		if id := bootID(ctx, reopen); id != "" {
			burn.After = facts.AfterRebooted
			if id == h.OS.BootID.Value {
				burn.After = facts.AfterSameBoot
			}
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(revisitEvery):
		}
	}
	if raw, err := json.Marshal(burn); err == nil {
		s.Files[facts.ProbeBurnInPath] = raw
	}
}

// bootID asks a host anew which boot it is in; "" when it does not answer.
func bootID(ctx context.Context, reopen func(context.Context) (Host, error)) string {
	ctx, cancel := context.WithTimeout(ctx, revisitLimit)
	defer cancel()
	host, err := reopen(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = host.Close() }()
	var out bytes.Buffer
	if _, err := host.Run(ctx, []byte("cat \"${PREFLIGHT_ROOT-}/proc/sys/kernel/random/boot_id\"\n"), &out); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}
