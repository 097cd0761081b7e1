package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"preflight/checks"
	"preflight/internal/fit"
	"preflight/internal/lang"
	"preflight/internal/report"
	"preflight/internal/workload"
	"preflight/inventory"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	target targetFlags
	output outputFlags

	ask        fit.Ask
	rigs       []string
	workloads  []string // names of the inventory's blocks
	references []string
	tokens     string
	prices     []string
	buys       []string
	speed      float64
	measured   string

	given func(flag string) bool
}

func newFit(env *environment) *cobra.Command {
	f := &fitFlags{}
	c := &cobra.Command{
		Use:   "fit [RIG...]",
		Short: "Will it train here? Memory, communication and cost of a workload on rigs",
		Long: `fit works out whether a training or serving job fits a card's memory, which strategy the
links between the cards suit, what speed-up to expect, how to start it, and what it costs. Every
number is shown with its formula; docs/fit.md derives them and names the sources.

A machine is described (4x4090: cards and a model of the catalogue), or is a rig of the inventory
(-i), or comes out of saved input (--from), whose measured all-reduce is then reckoned with. No
host is touched. Without --model and --config, the workload blocks of the inventory are judged.

Exit codes: 0 every job fits, as it is or with the changes that are named; 2 bad usage or inventory;
3 a job does not fit a rig; 4 of a rig nothing can be said.`,
		Example: `  preflight fit --model 7B --method full --rig 4x4090
  preflight fit --model llama-3-8b --method lora --sequence 4096 --rig 2x3090 --rig 4x4090
  preflight fit --config ./Qwen2.5-14B/config.json --method inference --precision 4bit --requests 8 --rig 2x4090
  preflight fit -i rigs.hcl                                # the workload blocks of the inventory, on its rigs
  preflight fit -i rigs.hcl node-a --model 13B --method full --optimizer adamw-8bit
  preflight fit --from runs/node-a.tar.gz --model 7B       # with the all-reduce that was measured there
  preflight fit --model 7B --rig 4x4090 --tokens 1B --price 0.40 --price a100=1.80 --buy 9000
  preflight fit --model 7B --rig 4x4090 --hours 10 --hours-on 1xa100-80gb-sxm --price 0.40
  preflight fit --model 7B --method lora --rig 4x4090 --measured 1=2600,2=4900,4=8800
  preflight fit --model 7B --method full --rig 8x4090 --format html=fit.html`,
		RunE: func(_ *cobra.Command, args []string) error { return runFit(env, f, args) },
	}
	f.add(c.Flags())
	return c
}

func (f *fitFlags) add(fl *pflag.FlagSet) {
	w := &f.ask.Workload
	words := func(list []string) string { return strings.Join(list, ", ") }
	fl.StringVar(&f.ask.Model, "model", "", "a size (7B, 350M) or a model by name (llama-3-8b)")
	fl.StringVar(&f.ask.Config, "config", "", "config.json of a Hugging Face model, or the folder that holds it")
	fl.StringVar(&w.Method, "method", "", words(workload.Methods())+" (default full)")
	fl.StringVar(&w.Precision, "precision", "", words(workload.Precisions())+" (default bf16; the small ones for inference)")
	fl.StringVar(&w.Optimizer, "optimizer", "", words(workload.Optimizers())+" (default adamw, 16 bytes a parameter)")
	fl.IntVar(&w.Sequence, "sequence", 0, "tokens of a sequence (default 2048)")
	fl.IntVar(&w.MicroBatch, "micro-batch", 0, "sequences on a card at once (default: the most that fit)")
	fl.IntVar(&w.GlobalBatch, "global-batch", 0, "sequences of one optimizer step over all cards (default 64)")
	fl.StringVar(&w.Checkpointing, "checkpointing", "", words(workload.Checkpointings())+" (default: none or full, whichever fits and is faster)")
	fl.StringVar(&w.Attention, "attention", "", words(workload.Attentions())+" (default flash)")
	fl.StringVar(&w.Strategy, "strategy", "", words(workload.Strategies())+" (default auto)")
	fl.IntVar(&w.Requests, "requests", 0, "requests served at once (default 1)")
	fl.IntVar(&w.Rank, "lora-rank", 0, "rank of the adapters, on every linear layer (default 16)")
	fl.StringVar(&f.tokens, "tokens", "", "tokens of the whole training (1B), for hours and cost")
	fl.Float64Var(&f.speed, "tokens-per-second", 0, "throughput that one card was measured at, in place of an estimate")
	fl.StringVar(&f.measured, "measured", "", "measured throughputs by number of cards: 1=2600,2=4900,4=8800 (tokens a second)")
	fl.StringArrayVar(&f.rigs, "rig", nil, "a machine (4x4090) or a rig of the inventory; may be given several times")
	fl.StringSliceVar(&f.workloads, "workload", nil, "workload blocks of the inventory, by name; without it all")
	fl.StringSliceVar(&f.references, "reference", fit.References(), "machines to compare with; none for none")
	fl.StringArrayVar(&f.prices, "price", nil, "price of an hour of one card: 0.40, or for one machine NAME=0.40 (a rig, 4x4090, or a card's slug or its beginning)")
	fl.StringArrayVar(&f.buys, "buy", nil, "price of the whole machine, for the break-even against renting: 9000 or NAME=9000")
	fl.Float64Var(&w.Hours, "hours", 0, "hours that the whole training took, measured on --hours-on")
	fl.StringVar(&w.HoursOn, "hours-on", "", "the machine of --hours: a rig, or a machine as in --rig")
	fl.StringVarP(&f.target.inventory, "inventory", "i", "", "inventory: an HCL file, a directory of *.hcl, or - for standard input")
	fl.StringArrayVar(&f.target.from, "from", nil, "saved input of rigs: snapshots, bug reports, dumps or directories of them; - for standard input")
	fl.StringArrayVar(&f.target.vars, "var", nil, "set a variable of the inventory, name=value")
	f.output.add(fl)
	f.given = fl.Changed
}

// fitFormats are the formats that tell a fit.
var fitFormats = []string{"text", "html", "json", "markdown"}

func runFit(env *environment, f *fitFlags, args []string) error {
	sinks, err := f.output.sinks(env)
	if err != nil {
		return err
	}
	for _, s := range sinks {
		if !slices.Contains(fitFormats, s.name) {
			return usage("--format %s: fit is told as %s", s.name, strings.Join(fitFormats, ", "))
		}
	}
	start := time.Now()
	in, err := f.inputs(env, args)
	if err != nil {
		return err
	}
	jobs := make([]workload.Job, 0, len(in.workloads))
	for _, w := range in.workloads {
		jobs = append(jobs, workload.Judge(w, in.rigs, in.references, in.open))
	}
	code := fitCode(jobs)
	build := func(lang.Language) (*report.Report, error) {
		r := &report.Report{
			Schema: report.Schema, Tool: report.Tool{Name: "preflight", Version: version}, Rigs: []report.Rig{}, Fit: jobs,
			Run: report.Run{At: start.UTC().Truncate(time.Second), Source: in.source, Seconds: time.Since(start).Seconds(), Exit: code},
		}
		r.Finish()
		return r, nil
	}
	if err := f.output.write(env, sinks, build); err != nil {
		return failed(err)
	}
	if code != checks.ExitOK {
		return exit{code: code}
	}
	return nil
}

// fitCode is the exit code: a job that does not fit wins over one of which nothing can be said.
func fitCode(jobs []workload.Job) int {
	code := checks.ExitOK
	for _, j := range jobs {
		switch j.Worst() {
		case workload.FitsNot:
			return checks.ExitFail
		case workload.Unclear:
			code = checks.ExitUnknown
		}
	}
	return code
}

// fits are the jobs of the inventory on the rigs of a run of check.
func (j judgement) fits() []workload.Job {
	var rigs []workload.Rig
	var open []workload.Open
	for _, r := range j.results {
		if x, err := fit.Judged(r.Rig, r.Host, r.Findings, r.Policy, j.target.catalogue()); err != nil {
			open = append(open, workload.Open{Rig: r.Rig.Name, Why: err.Error()})
		} else {
			rigs = append(rigs, x)
		}
	}
	var out []workload.Job
	for _, w := range j.target.jobs {
		out = append(out, workload.Judge(w, rigs, nil, open))
	}
	return out
}

// readJobs makes the inventory's workload blocks ready, before any host is touched.
func (t *target) readJobs() error {
	jobs, err := blocks(t.declared, nil)
	t.jobs = jobs
	return err
}

// blocks are the workloads of an inventory, or those of them that are named.
func blocks(declared []*inventory.Workload, names []string) ([]workload.Workload, error) {
	var out []workload.Workload
	var all []string
	for _, b := range declared {
		all = append(all, b.Name)
		if len(names) > 0 && !slices.Contains(names, b.Name) {
			continue
		}
		w, err := fit.FromBlock(b)
		if err != nil {
			return nil, usage("%w", err)
		}
		out = append(out, w)
	}
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, usage("--workload %s: the inventory declares %s%s", n, listOr(all, "no workload"), nearest(n, all))
		}
	}
	return out, nil
}

func listOr(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, ", ")
}

// rates reads "1=2600,2=4900": tokens a second by number of cards.
func rates(text string) ([]workload.Rate, error) {
	var out []workload.Rate
	for _, part := range strings.Split(text, ",") {
		n, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		cards, err := strconv.Atoi(n)
		rate, wrong := strconv.ParseFloat(value, 64)
		switch {
		case !ok || err != nil || wrong != nil:
			return nil, usage("--measured %s: it takes CARDS=TOKENS-PER-SECOND, as in 1=2600,2=4900", part)
		case cards < 1 || cards > 1024 || rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate):
			return nil, usage("--measured %s: cards and tokens a second must be above 0", part)
		}
		out = append(out, workload.Rate{Cards: cards, TokensPerSecond: rate})
	}
	if !slices.ContainsFunc(out, func(r workload.Rate) bool { return r.Cards == 1 }) {
		return nil, usage("--measured %s: what one card reaches is missing (1=…): speed-ups are told over it", text)
	}
	return out, nil
}

// named is a figure that may be meant for one machine.
type priced struct {
	name  string // "" for all
	value float64
}

// figures reads "0.40" and "NAME=0.40".
func figures(flag string, values []string) ([]priced, error) {
	var out []priced
	for _, v := range values {
		name, number, ok := strings.Cut(v, "=")
		if !ok {
			name, number = "", v
		}
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, usage("--%s %s: it takes a number, or NAME=NUMBER", flag, v)
		}
		if f < 0 {
			return nil, usage("--%s %s: %s cannot be negative", flag, v, fmt.Sprintf("a %s", map[string]string{"price": "price", "buy": "price"}[flag]))
		}
		out = append(out, priced{name, f})
	}
	return out, nil
}
