package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"preflight/internal/probe"
	"preflight/internal/sample"
)

// ddpFlags are those of a scaling test.
type ddpFlags struct {
	on      bool
	size    string
	tokens  int
	steps   int
	data    string
	limit   time.Duration
	every   time.Duration
	command string
}

func (d *ddpFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&d.size, "size", "350M", "parameters of the synthetic model, such as 100M or 1.3B")
	fl.IntVar(&d.tokens, "tokens", probe.DDPTokens, "tokens of a card's batch")
	fl.IntVar(&d.steps, "steps", probe.DDPSteps, "timed steps on each set of cards")
	fl.StringVar(&d.data, "data", "", "read batches from the files of this folder on the rig, to see whether input keeps up")
	fl.DurationVar(&d.limit, "probe-timeout", probe.DDPLimit, "deadline of the whole test on a rig; a command of your own is ended then")
	fl.DurationVar(&d.every, "interval", 2*time.Second, "time between two samples")
}

var modelSize = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([MB])$`)

// options understands the flags; nil when no scaling test is asked for.
func (d *ddpFlags) options() (*probe.DDPOptions, error) {
	if !d.on {
		return nil, nil
	}
	m := modelSize.FindStringSubmatch(strings.ToUpper(d.size))
	if m == nil {
		return nil, usage("--size %s: a number of parameters, such as 350M or 1.3B", d.size)
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	n *= map[string]float64{"M": 1e6, "B": 1e9}[m[2]]
	switch {
	case n < 34e6 || n > 100e9:
		return nil, usage("--size %s: 34M (one block of the model) to 100B", d.size)
	case d.tokens < 64 || d.tokens > 1<<20:
		return nil, usage("--tokens %d: 64 to %d", d.tokens, 1<<20)
	case d.steps < 5 || d.steps > 10000:
		return nil, usage("--steps %d: 5 to 10000", d.steps)
	case d.limit < 30*time.Second || d.limit > 6*time.Hour:
		return nil, usage("--probe-timeout %s: 30s to 6h", d.limit)
	case d.every < sample.Shortest || d.every > 10*time.Second:
		return nil, usage("--interval %s: %s to 10s", d.every, sample.Shortest)
	case d.data != "" && !strings.HasPrefix(d.data, "/"):
		return nil, usage("--data %s: the full path of a folder on the rigs", d.data)
	case d.data != "" && d.command != "":
		return nil, usage("--data is for the synthetic model; a command of your own reads its own data")
	}
	return &probe.DDPOptions{Parameters: int64(n), Tokens: d.tokens, Steps: d.steps, Data: d.data, Command: d.command, Limit: d.limit, Every: d.every}, nil
}

func newProbeDDP(env *environment) *cobra.Command {
	f := &checkFlags{only: measures["ddp"], failOn: "fail", engine: "auto", probeLimit: probe.DefaultLimit}
	f.ddp.on = true
	c := &cobra.Command{
		Use:   "ddp [RIG...] [-- COMMAND...]",
		Short: "Train a synthetic model on one card and on several, and judge how it scales",
		Long: `probe ddp trains a synthetic model through the rig's own torch: on each card alone, then on 2, 4, 8
and all of them, with the gradients synchronised and without, while one reader samples the cards. It
tells the speed-ups, what of a step is communication, and whether the training is bound by
communication, by heat, by what the cards share, or by nothing. Whether input keeps up is tested only
with --data, which reads batches from files of a folder on the rig.

What stands behind -- is run on the rigs instead, in the login's home, and the cards are watched
meanwhile: cards that wait for each other are busy and draw little, cards that wait for input are idle.

It needs torch with CUDA (python in rigs.hcl, else the one that is found), writes nothing on the rigs,
and leaves cards at work alone.`,
		Example: `  preflight probe ddp -i rigs.hcl node-a
  preflight probe ddp -i rigs.hcl --size 1.3B --data /data/train
  preflight probe ddp -i rigs.hcl node-a --probe-timeout 2m -- torchrun --standalone --nproc-per-node=4 train.py`,
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if at := c.ArgsLenAtDash(); at >= 0 {
			words := make([]string, 0, len(args)-at)
			for _, w := range args[at:] {
				words = append(words, quoted(w))
			}
			if f.ddp.command = strings.Join(words, " "); f.ddp.command == "" {
				return usage("nothing stands behind --: name the command to watch, or leave -- out")
			}
			args = args[:at]
		}
		return runCheck(cmd.Context(), env, f, args)
	}
	fl := c.Flags()
	f.target.add(fl, false)
	f.output.add(fl)
	f.keeping(fl)
	fl.BoolVar(&f.force, "force", false, "train although cards are busy")
	f.ddp.add(fl)
	return c
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as the rig's shell takes it.
func quoted(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
