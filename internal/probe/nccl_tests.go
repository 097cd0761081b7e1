package probe

import (
	"context"
	_ "embed" // the script
	"fmt"
	"strconv"
	"strings"
	"time"

	"preflight/internal/facts"
)

//go:embed all_reduce.sh
var allReduceScript string

// ncclTests runs all_reduce_perf where the host has it.
func ncclTests(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) (ran bool, why string, err error) {
	limit := o.limit()
	nonce := newNonce()
	script := fill(h, nonce, limit)
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	out := &capped{limit: outputLimit}
	err = host.RunScript(ctx, script, out)
	parts := sections(out.Bytes(), nonce)
	if len(parts) == 0 && err != nil {
		saveRuns(s, facts.NCCLRun{Engine: "nccl-tests", Ranks: len(h.Cards), Wrong: -1, Cut: err.Error(), Source: "probe:nccl-tests"})
		return true, "", err
	}
	run := result(parts, len(h.Cards))
	if run.Missing != "" {
		return false, run.Missing, nil
	}
	saveRuns(s, run)
	saveLinks(s, samples(parts["links"], loadedCards(parts["cards"]), h))
	return true, "", nil
}

// fill writes the host's own numbers into the script. Sizes: on PCIe the plateau begins at 32 MB, so 64 to 256 MB do;
// NVLink needs 1 GB and more.
func fill(h *facts.Host, nonce string, limit time.Duration) []byte {
	begin, end := "64M", "256M"
	if nvlink(h) {
		begin, end = "512M", "2G"
	}
	attached := 0
	for _, c := range h.Cards {
		if c.Index.Known() {
			attached++
		}
	}
	return []byte(strings.NewReplacer(
		"@PROCESSES@", processes, "@NONCE@", nonce, "@CARDS@", strconv.Itoa(attached), "@LIMIT@", strconv.Itoa(int(limit.Seconds())),
		"@BEGIN@", begin, "@END@", end, "@BUSES@", strings.Join(hops(h), " "),
	).Replace(allReduceScript))
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
	run.Transport, run.Library = firstNonEmpty(debug.Transport, run.Transport), firstNonEmpty(run.Library, debug.Library)
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
		run.Cut = cutWords
	case run.Exit != 0 && run.Error == "" && len(run.Rows) == 0:
		run.Error = firstNonEmpty(debug.FirstWarn, lastLine(parts["output"]), fmt.Sprintf("all_reduce_perf ended with %d", run.Exit))
	}
	if run.Exit == 127 {
		run.Missing = firstNonEmpty(run.Error, lastLine(parts["output"]), "all_reduce_perf cannot start")
	}
	if run.Ranks == 0 && run.Hung {
		run.Ranks = cards
	}
	return run
}
