package probe

import (
	"bufio"
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"preflight/internal/facts"
	"preflight/internal/sample"
)

//go:embed ddp.sh
var ddpScript string

//go:embed ddp.py
var ddpProgram string

// DDPOptions are what a user may choose of a scaling test.
type DDPOptions struct {
	Parameters int64         // of the synthetic model; 0 means DDPParameters
	Tokens     int           // rows of a card's batch; 0 means DDPTokens
	Steps      int           // timed steps of a stage; 0 means DDPSteps
	Data       string        // folder on the host from which batches are read; "" for none
	Command    string        // of the user's own, to be watched instead; "" for none
	Limit      time.Duration // of the whole test
	Every      time.Duration // between two samples
}

// Defaults of a scaling test. 350 million parameters with gradients of 32 bits are 1.4 GB that travel each step, and fit on any
// card that trains.
const (
	DDPParameters = 350_000_000
	DDPTokens     = 4096
	DDPSteps      = 30
	DDPLimit      = 15 * time.Minute
)

// scaling is one scaling test of one host.
type scaling struct {
	host Host
	h    *facts.Host
	o    Options
	d    DDPOptions
	bdf  []string // by CUDA ordinal

	mu     sync.Mutex
	result facts.DDP
	series sample.Series
	first  time.Time
	open   facts.DDPStage
	say    map[string]string // sections of the shell
}

// ddp runs a scaling test and adds what came of it to the host's snapshot.
func ddp(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) error {
	x := &scaling{host: host, h: h, o: o, d: *o.DDP, say: map[string]string{}}
	x.result = facts.DDP{Tokens: x.d.Tokens, Source: "probe:ddp"}
	for _, c := range h.Cards {
		if c.Index.Known() {
			x.bdf = append(x.bdf, c.BDF)
		}
	}
	err := x.whole(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.series.Cards) > 0 {
		x.result.Series = &x.series
	}
	x.result.Gradient = 4 * x.result.Parameters // gradients of 32 bits
	raw, jerr := json.Marshal(x.result)
	s.Files[facts.ProbeDDPPath] = raw
	return errors.Join(err, jerr)
}

func (x *scaling) whole(ctx context.Context) error {
	word, why := notBurnable(x.h, x.o)
	switch word {
	case facts.BurnBusy:
		if x.o.Force {
			break
		}
		x.result.Ended, x.result.Text = facts.DDPBusy, why
		return nil
	case facts.BurnMissing:
		x.result.Ended, x.result.Text = facts.DDPMissing, why
		return nil
	}
	python := x.o.Python
	for _, t := range x.h.Software.Torch {
		if python == "" && t.Error == "" && t.CUDA != "" {
			python = t.Python
		}
	}
	if python == "" && x.d.Command == "" {
		x.result.Ended, x.result.Text = facts.DDPMissing, "no Python with torch for CUDA was found (name one: `python` in rigs.hcl)"
		return nil
	}
	x.result.Python = python
	reading, enough := context.WithCancel(ctx)
	defer enough()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = sample.Read(reading, x.host, x.d.Every, x.heard)
	}()
	err := x.train(ctx, python)
	enough()
	<-read
	return err
}

// train runs the script and hears it.
func (x *scaling) train(ctx context.Context, python string) error {
	nonce := newNonce()
	script := x.script(python, nonce)
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, x.d.Limit+grace, errors.New("the host did not answer in time"))
	defer cancel()
	err := x.host.Talk(ctx, script, func(in io.WriteCloser, out io.Reader) error {
		defer func() { _ = in.Close() }()
		return x.listen(out, nonce)
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.d.Command != "" {
		x.result.Observed = &facts.DDPObserved{Command: x.d.Command, Seconds: time.Since(began).Seconds(), Exit: -1, Tail: strings.TrimSpace(x.say["out"])}
	}
	return x.ended(ctx, err)
}

// ended decides how it ended. x.mu is held.
func (x *scaling) ended(ctx context.Context, err error) error {
	r := &x.result
	how := strings.Fields(x.say["ended"])
	switch {
	case x.say["missing"] != "" || x.say["failed"] != "":
		r.Ended, r.Text = facts.DDPMissing, strings.TrimSpace(x.say["missing"]+x.say["failed"])
	case r.Ended != "": // the program said why
	case ctx.Err() != nil && err != nil:
		r.Ended, r.Text = facts.DDPStopped, "interrupted"
		return context.Cause(ctx)
	case len(how) == 0:
		r.Ended, r.Text = facts.DDPCut, firstNonEmpty(reason(err), cutWords)
		return err
	case r.Observed != nil:
		r.Ended = facts.DDPDone
		if how[0] == "exit" && len(how) > 1 {
			_, _ = fmt.Sscan(how[1], &r.Observed.Exit)
		}
	case how[0] != "exit":
		r.Ended, r.Text = facts.DDPHang, fmt.Sprintf("no step ended within %s on %s", x.d.Limit, strings.Join(x.open.Cards, ", "))
	default:
		r.Ended, r.Text = facts.DDPError, firstNonEmpty(lastLine(x.say["errors"]), "the program ended without a figure")
	}
	return nil
}

// script writes what the host is to run.
func (x *scaling) script(python, nonce string) []byte {
	settings := fmt.Sprintf("PREFLIGHT_PARAMETERS=%d PREFLIGHT_TOKENS=%d PREFLIGHT_STEPS=%d PREFLIGHT_STAGES=%s PREFLIGHT_DATA=%s",
		x.d.Parameters, x.d.Tokens, x.d.Steps, shellWord(Stages(len(x.bdf))), shellWord(x.d.Data))
	return []byte(strings.NewReplacer("@PROCESSES@", processes, "@NONCE@", nonce, "@LIMIT@", fmt.Sprint(int(x.d.Limit.Seconds())), "@PYTHON@", shellWord(python),
		"@COMMAND@", shellWord(x.d.Command), "@SETTINGS@", settings, "@PROGRAM@", shellWord(ddpProgram)).Replace(ddpScript))
}

// Stages are the sets of cards that train, by ordinal: each alone, then 2, 4, 8, and at last all.
func Stages(cards int) string {
	var out []string
	for i := range cards {
		out = append(out, fmt.Sprint(i))
	}
	for _, n := range []int{2, 4, 8, 16} {
		if n < cards {
			out = append(out, firstCards(n))
		}
	}
	if cards > 1 {
		out = append(out, firstCards(cards))
	}
	return strings.Join(out, ",")
}

func firstCards(n int) string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return strings.Join(ids, "+")
}

// ddpLine is what the program prints, one JSON value a line.
type ddpLine struct {
	Phase      string  `json:"phase"`
	Cards      []int   `json:"cards"`
	Torch      string  `json:"torch"`
	NCCL       string  `json:"nccl"`
	Parameters int64   `json:"parameters"`
	Step       float64 `json:"step_ms"`
	NoSync     float64 `json:"no_sync_ms"`
	Wait       float64 `json:"wait_ms"`
	Peak       int64   `json:"peak"` // bytes
	Fetched    int64   `json:"fetched"`
	Error      string  `json:"error"`
	Missing    string  `json:"missing"`
}

// listen reads what program and shell say.
func (x *scaling) listen(out io.Reader, nonce string) error {
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, lineLimit)
	section := ""
	heard := 0
	for scan.Scan() {
		line := scan.Text()
		if heard += len(line) + 1; heard > outputLimit {
			return fmt.Errorf("the host said more than %d bytes", outputLimit)
		}
		if rest, ok := strings.CutPrefix(line, nonce+" "); ok {
			var words string
			section, words, _ = strings.Cut(rest, " ")
			x.mu.Lock()
			x.say[section] += words
			x.mu.Unlock()
			if section == "end" || section == "missing" || section == "failed" {
				return nil
			}
			continue
		}
		var l ddpLine
		switch {
		case section == "errors" || section == "out":
			x.mu.Lock()
			x.say[section] += line + "\n"
			x.mu.Unlock()
		case json.Unmarshal([]byte(strings.TrimSpace(line)), &l) == nil:
			x.line(l)
		}
	}
	return scan.Err()
}

// line takes one line of the program.
func (x *scaling) line(l ddpLine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	cards := make([]string, 0, len(l.Cards))
	for _, i := range l.Cards {
		if i >= 0 && i < len(x.bdf) {
			cards = append(cards, x.bdf[i])
		}
	}
	r := &x.result
	r.Torch, r.NCCL, r.Parameters = firstNonEmpty(l.Torch, r.Torch), firstNonEmpty(l.NCCL, r.NCCL), max(l.Parameters, r.Parameters)
	switch {
	case l.Missing != "":
		r.Ended, r.Text = facts.DDPMissing, l.Missing
	case l.Error != "" && r.Ended == "":
		r.Ended, r.Text = facts.DDPError, l.Error
	case l.Phase == "training":
		x.open = facts.DDPStage{Cards: cards, Begin: x.now()}
		x.o.tell(fmt.Sprintf("training on %d of %d cards", len(cards), len(x.bdf)))
	case l.Phase == "measured" && l.Step > 0 && len(cards) > 0:
		st := facts.DDPStage{Cards: cards, Step: l.Step, NoSync: l.NoSync, Wait: l.Wait, Peak: l.Peak >> 20, Begin: x.open.Begin, End: x.now(), Fetched: l.Fetched}
		r.Stages = append(r.Stages, st)
	case l.Phase == "done":
		r.Ended = facts.DDPDone
	}
}

func (x *scaling) heard(it sample.Item) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.series.Add(it)
	if it.Card != nil && x.first.IsZero() {
		x.first = time.Now()
	}
	return nil
}

// now is the time since the first sample, seconds. x.mu is held.
func (x *scaling) now() float64 {
	if x.first.IsZero() {
		return 0
	}
	return time.Since(x.first).Seconds()
}
