package probe

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"fmt"
	"strings"

	"preflight/internal/facts"
)

//go:embed torch.sh
var torchScript string

//go:embed torch_all_reduce.py
var torchProgram string

// torch runs the all-reduce through torch.distributed of a Python on the host: the one that the rig names, else the
// first whose torch answered when facts were read. The program goes in by standard input; nothing is written.
func torch(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) (ran bool, why string, err error) {
	python := o.Python
	for _, t := range h.Software.Torch {
		if python == "" && t.Error == "" && t.CUDA != "" {
			python = t.Python
		}
	}
	if python == "" {
		return false, "no Python with torch for CUDA was found (name one: `python` in rigs.hcl)", nil
	}
	limit := o.limit()
	nonce := newNonce()
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	sizes := "1,64,256"
	if nvlink(h) {
		sizes = "1,512,2048"
	}
	script := strings.NewReplacer("@PROCESSES@", processes, "@NONCE@", nonce, "@LIMIT@", fmt.Sprint(int(limit.Seconds())), "@BUSES@", strings.Join(hops(h), " "),
		"@PYTHON@", shellWord(python), "@SIZES@", sizes, "@PROGRAM@", shellWord(torchProgram)).Replace(torchScript)
	out := &capped{limit: outputLimit}
	err = host.RunScript(ctx, []byte(script), out)
	parts := sections(out.Bytes(), nonce)
	if why := strings.TrimSpace(firstNonEmpty(parts["missing"], parts["failed"])); why != "" {
		return false, why, nil
	}
	if len(parts) == 0 && err != nil {
		saveRuns(s, facts.NCCLRun{Engine: "torch", Tool: python, Ranks: len(h.Cards), Wrong: -1, Cut: err.Error(), Source: "probe:torch"})
		return true, "", err
	}
	run, can := torchRun(parts, python, len(h.Cards))
	if !can {
		return false, run.Error, nil
	}
	saveRuns(s, run)
	saveLinks(s, samples(parts["links"], loadedCards(parts["cards"]), h))
	return true, "", nil
}

// shellWord is a text as one word of the shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// torchLine is what the program prints, one JSON value a line.
type torchLine struct {
	Phase   string  `json:"phase"`
	Torch   string  `json:"torch"`
	NCCL    string  `json:"nccl"`
	Ranks   int     `json:"ranks"`
	Bytes   int64   `json:"bytes"`
	TimeUS  float64 `json:"time_us"`
	Wrong   int64   `json:"wrong"`
	Error   string  `json:"error"`
	Missing string  `json:"missing"`
}

// torchRun reads the program's lines; false when torch cannot run here at all, with the reason as its error.
func torchRun(parts map[string]string, python string, cards int) (facts.NCCLRun, bool) {
	run := facts.NCCLRun{Engine: "torch", Tool: python, Wrong: -1, Layout: "ranks", Source: "probe:torch"}
	phase := "starting Python"
	for _, line := range strings.Split(parts["output"], "\n") {
		var l torchLine
		if json.Unmarshal([]byte(strings.TrimSpace(line)), &l) != nil {
			continue
		}
		run.Library, run.Ranks = firstNonEmpty(l.NCCL, run.Library), max(run.Ranks, l.Ranks)
		phase = firstNonEmpty(l.Phase, phase)
		switch {
		case l.Missing != "":
			run.Error = l.Missing
			return run, false
		case l.Error != "":
			run.Error = firstNonEmpty(run.Error, l.Error)
		case l.Bytes > 0 && l.TimeUS > 0 && l.Ranks > 1:
			n := float64(l.Ranks)
			alg := float64(l.Bytes) / l.TimeUS / 1e3
			run.Rows = append(run.Rows, facts.NCCLRow{Bytes: l.Bytes, TimeUS: l.TimeUS, AlgBW: alg, BusBW: alg * 2 * (n - 1) / n, Wrong: l.Wrong})
			run.Wrong = max(run.Wrong, 0) + l.Wrong
		}
	}
	debug := facts.ParseNCCLDebug(parts["debug"])
	run.Transport, run.Library = debug.Transport, firstNonEmpty(run.Library, debug.Library)
	ended := strings.TrimSpace(parts["ended"])
	run.Hung, run.Wedged = ended == "hung" || ended == "wedged", ended == "wedged"
	if run.Hung {
		run.Phase = phase
	}
	if run.Ranks == 0 {
		run.Ranks = cards
	}
	if _, complete := parts["end"]; !complete && !run.Hung {
		run.Cut, run.Error = cutWords, ""
		return run, true
	}
	if !run.Hung && run.Error == "" && len(run.Rows) == 0 {
		run.Error = firstNonEmpty(debug.FirstWarn, lastLine(parts["errors"]), "the program ended without a figure")
	}
	return run, true
}
