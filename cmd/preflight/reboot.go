package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"preflight/internal/facts"
)

// rebootLimit is how long a rig may take to come back: servers with much memory train it for minutes.
const rebootLimit = 20 * time.Minute

// rebootPoll is how often it is looked for.
const rebootPoll = 3 * time.Second

// reboot restarts a rig and waits until it is another boot. A rig that does not come back is an error of that rig.
func (w *worksite) reboot(ctx context.Context, s *site, seen *facts.Host) error {
	was := bootID(seen)
	if was == "" {
		return fmt.Errorf("not rebooted: the host does not tell its boot id, so nobody could see that it came back")
	}
	w.at(s, booting)
	w.tell(s, "reboots")
	var out bytes.Buffer
	// In the background and a moment later, so that the connection ends before the machine does.
	_, _ = s.host.Run(ctx, []byte("(sleep 2; systemctl reboot || shutdown -r now || reboot) >/dev/null 2>&1 </dev/null &\n"), &out)
	_ = s.host.Close()
	s.host = nil
	ctx, cancel := context.WithTimeoutCause(ctx, rebootLimit, fmt.Errorf("it did not come back within %s", rebootLimit))
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rebootPoll):
		}
		host, err := w.open(ctx, s.rig)
		if err != nil {
			continue
		}
		out.Reset()
		if _, err := host.Run(ctx, []byte("cat \"${PREFLIGHT_ROOT-}/proc/sys/kernel/random/boot_id\"\n"), &out); err == nil {
			if now := strings.TrimSpace(out.String()); now != "" && now != was {
				s.host, s.reboot = host, false
				w.tell(s, "is back")
				return nil
			}
		}
		_ = host.Close()
	}
}
