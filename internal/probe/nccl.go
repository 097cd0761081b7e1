package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the script
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"preflight/internal/facts"
)

//go:embed all_reduce.sh
var allReduceScript string

// Runner runs one script with /bin/sh on a host and copies its output. It must return soon after ctx ends, even when
// the host does not.
type Runner interface {
	RunScript(ctx context.Context, script []byte, stdout io.Writer) error
}

// Options are what a user may choose of the all-reduce probe.
type Options struct {
	Limit time.Duration // deadline of the run on the host; 0 means DefaultLimit
	Force bool          // probe although cards are busy
}

// DefaultLimit is the deadline of an all-reduce: a healthy one takes seconds, and eight cards may take half a minute
// to initialise.
const DefaultLimit = 120 * time.Second

// outputLimit bounds what one probe may send, bytes.
const outputLimit = 4 << 20

// grace is what the connection waits beyond the host's own deadline.
const grace = 20 * time.Second

// NCCL runs the all-reduce over all cards of a host and adds the result to its snapshot. A host on which it cannot
// or must not run gets a result that says why. An error means that the host did not answer at all; the snapshot then
// holds a hang.
func NCCL(ctx context.Context, host Runner, h *facts.Host, s *facts.Snapshot, o Options) error {
	if why, skip := notNow(h, o); skip {
		if why.Busy != "" || why.Missing != "" {
			save(s, why, nil)
		}
		return nil
	}
	limit := o.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	nonce := newNonce()
	script := fill(h, nonce, limit)
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	out := &capped{limit: outputLimit}
	err := host.RunScript(ctx, script, out)
	parts := sections(out.Bytes(), nonce)
	if len(parts) == 0 && err != nil {
		save(s, facts.NCCLRun{Engine: "nccl-tests", Ranks: len(h.Cards), Wrong: -1, Hung: true, Phase: "the connection", Error: err.Error(), Source: "probe:nccl-tests"}, nil)
		return err
	}
	run := result(parts, len(h.Cards))
	save(s, run, samples(parts, h))
	return nil
}

// Ready says whether NCCL would run anything on this host.
func Ready(h *facts.Host, o Options) bool {
	_, skip := notNow(h, o)
	return !skip
}

// notNow says why a probe does not run: too few cards, cards at work, or no driver.
func notNow(h *facts.Host, o Options) (facts.NCCLRun, bool) {
	run := facts.NCCLRun{Engine: "nccl-tests", Wrong: -1, Source: "probe:nccl-tests"}
	attached := 0
	for _, c := range h.Cards {
		if c.Index.Known() {
			attached++
		}
	}
	switch {
	case len(h.Cards) < 2 && len(h.Cards) == attached:
		return run, true
	case attached < 2:
		run.Missing = "the driver shows fewer than two cards"
		return run, true
	case h.Driver.SMIHung.Value:
		run.Missing = "the driver does not answer; a probe would hang as well"
		return run, true
	}
	if busy := Busy(h); busy != "" && !o.Force {
		run.Busy = busy
		return run, true
	}
	return run, false
}

// busyMiB and busyPercent are when a card counts as at work. Policy: 1 GiB used, or more than 5 % twice.
const (
	busyMiB     = 1024
	busyPercent = 5
)

// Busy names the first card that is at work, or "". A display server is not work: a card that drives a display may
// hold memory without a compute process.
func Busy(h *facts.Host) string {
	for _, c := range h.Cards {
		switch {
		case c.Processes.Value > 0:
			return fmt.Sprintf("%s runs %d compute processes", c.BDF, c.Processes.Value)
		case c.UsedMiB.Value > busyMiB && !c.Display.Value:
			return fmt.Sprintf("%s holds %d MiB", c.BDF, c.UsedMiB.Value)
		case c.MinUtil.Value > busyPercent:
			return fmt.Sprintf("%s is at %d %%", c.BDF, c.MinUtil.Value)
		}
	}
	return ""
}

// fill writes the host's own numbers into the script. Sizes: on PCIe the plateau begins at 32 MB, so 64 to 256 MB do;
// NVLink needs 1 GB and more.
func fill(h *facts.Host, nonce string, limit time.Duration) []byte {
	begin, end := "64M", "256M"
	if nvlink(h) {
		begin, end = "512M", "2G"
	}
	var buses []string
	seen := map[string]bool{}
	for _, c := range h.Cards {
		for _, bdf := range append(append([]string{}, c.Chain...), c.BDF) {
			if !seen[bdf] {
				seen[bdf] = true
				buses = append(buses, bdf)
			}
		}
	}
	attached := 0
	for _, c := range h.Cards {
		if c.Index.Known() {
			attached++
		}
	}
	return []byte(strings.NewReplacer(
		"@NONCE@", nonce, "@CARDS@", strconv.Itoa(attached), "@LIMIT@", strconv.Itoa(int(limit.Seconds())),
		"@BEGIN@", begin, "@END@", end, "@BUSES@", strings.Join(buses, " "),
	).Replace(allReduceScript))
}

func nvlink(h *facts.Host) bool {
	for _, p := range h.Topo {
		if strings.HasPrefix(p.Level, "NV") {
			return true
		}
	}
	return false
}

func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (Go 1.24)
	return "preflight-" + hex.EncodeToString(b[:])
}

// sections splits the stream at lines that begin with the nonce. The words after a section's name open its text.
func sections(raw []byte, nonce string) map[string]string {
	out := map[string]string{}
	name := ""
	for _, line := range strings.SplitAfter(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, nonce+" "); ok {
			var value string
			name, value, _ = strings.Cut(strings.TrimRight(rest, "\r\n"), " ")
			out[name] = value
			if value != "" {
				out[name] += "\n"
			}
			continue
		}
		if name != "" {
			out[name] += line
		}
	}
	return out
}

// result reads the sections into one run.
func result(parts map[string]string, cards int) facts.NCCLRun {
	const source = "probe:nccl-tests"
	word := func(name string) string { return strings.TrimSpace(parts[name]) }
	for _, name := range []string{"missing", "failed"} {
		if w := word(name); w != "" {
			return facts.NCCLRun{Engine: "nccl-tests", Wrong: -1, Missing: w, Source: source}
		}
	}
	run := facts.ParseNCCLTests(parts["output"], source)
	if js := parts["json"]; js != "" {
		if fromJSON, err := facts.ParseNCCLTestsJSON([]byte(js), source); err == nil && len(fromJSON.Rows) >= len(run.Rows) {
			fromJSON.Error, fromJSON.SingleRanks = run.Error, run.SingleRanks
			run = fromJSON
		}
	}
	debug := facts.ParseNCCLDebug(parts["debug"])
	run.Transport, run.Library = first(debug.Transport, run.Transport), first(run.Library, debug.Library)
	run.Exit, _ = strconv.Atoi(word("exit"))
	ended := word("ended")
	run.Hung = ended != ""
	_, complete := parts["end"]
	switch {
	case ended == "wedged":
		run.Phase = "the kernel (state D): the driver is wedged, the host needs a reboot"
	case run.Hung && debug.Started > debug.Complete, run.Hung && run.Ranks == 0:
		run.Phase = "initialisation"
	case run.Hung:
		run.Phase = "the first all-reduce"
	case !complete:
		run.Hung, run.Phase = true, "the connection: it ended during the run"
	case run.Exit != 0 && run.Error == "" && len(run.Rows) == 0:
		run.Error = first(debug.FirstWarn, lastLine(parts["output"]), fmt.Sprintf("all_reduce_perf ended with %d", run.Exit))
	}
	if run.Exit == 127 {
		run.Missing = first(run.Error, lastLine(parts["output"]), "all_reduce_perf cannot start")
	}
	if run.Ranks == 0 && run.Hung {
		run.Ranks = cards
	}
	return run
}

func first(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// save puts results where facts.FromSnapshot finds them.
func save(s *facts.Snapshot, run facts.NCCLRun, links []facts.LinkSample) {
	if s.Files == nil {
		s.Files = map[string][]byte{}
	}
	s.Files[facts.ProbeNCCLPath], _ = json.MarshalIndent([]facts.NCCLRun{run}, "", "  ")
	if len(links) > 0 {
		s.Files[facts.ProbeLinksPath], _ = json.MarshalIndent(links, "", "  ")
	}
}

// capped keeps the first bytes and drops the rest, so that a host cannot fill the memory here.
type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
