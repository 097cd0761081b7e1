package main

import (
	"github.com/spf13/cobra"

	"preflight/internal/probe"
)

func newProbe(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "probe",
		Short: "Measure rigs under load",
		Long: `probe measures rigs and judges what was measured; check does the same among all else. It sends a
small helper to each rig, which needs the NVIDIA driver there and nothing more, and takes it away.
Where the helper finds no libnccl, nccl-tests or torch of the rig are used.`,
		Example: `  preflight probe links -i rigs.hcl
  preflight probe nccl -i rigs.hcl node-a -v
  preflight probe burn-in -i rigs.hcl --duration quick
  preflight probe ddp -i rigs.hcl node-a`,
	}
	c.AddCommand(newProbeLinks(env), newProbeNCCL(env), newProbeBurnIn(env), newProbeDDP(env))
	return c
}

// measures are the checks that each kind of probe decides.
var measures = map[string][]string{
	"links":   {"link.bandwidth", "topology.p2p", "pcie.width", "pcie.speed"},
	"ddp":     {"ddp.scaling"},
	"burn-in": {"burn-in.thermal", "burn-in.power", "burn-in.memory", "pcie.width", "pcie.speed"},
	"nccl":    {"nccl.all-reduce", "topology.p2p", "pcie.width", "pcie.speed"},
}

func newProbeLinks(env *environment) *cobra.Command {
	return probing(env, "links", &cobra.Command{
		Use:   "links [RIG...]",
		Short: "Measure host-to-card and card-to-card copies, and judge the links",
		Long: `probe links copies between the host and each card, alone and all at once, in both directions,
and between every pair of cards, every byte compared; it samples width and speed of every link
meanwhile. Cards at work are left alone unless --force is given. It leaves nothing on the rigs.`,
		Example: `  preflight probe links -i rigs.hcl
  preflight probe links --local -v`,
	}, nil)
}

func newProbeNCCL(env *environment) *cobra.Command {
	across := false
	c := probing(env, "nccl", &cobra.Command{
		Use:   "nccl [RIG...]",
		Short: "Run an all-reduce over all cards of each rig, and judge it and the links",
		Long: `probe nccl runs an all-reduce over all cards, in one process and in a process for each card,
checks the sums, samples width and speed of every link meanwhile, and judges all of it. P2P is
proved by copies first; where it fails, the run is repeated without. Cards at work are left alone
unless --force is given. It leaves nothing on the rigs.

--across runs one all-reduce over the cards of several rigs, those of one group or those that are
named: no MPI, no SSH between them. Whether they have one version of libnccl and reach each other is
found out first; the result is held against the line rate of the network.`,
		Example: `  preflight probe nccl -i rigs.hcl
  preflight probe nccl --across -i rigs.hcl group:lab-1
  preflight probe nccl -i rigs.hcl node-a -v --probe-timeout 3m
  preflight probe nccl -i rigs.hcl --engine nccl-tests`,
	}, &across)
	c.Flags().BoolVar(&across, "across", false, "one all-reduce over the cards of several rigs")
	return c
}

// probing is check reduced to what one kind of probe tells.
func probing(env *environment, kind string, c *cobra.Command, across *bool) *cobra.Command {
	f := &checkFlags{only: measures[kind], failOn: "fail"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if across != nil && *across {
			f.across, f.only = true, []string{"nccl.all-reduce"}
		}
		return runCheck(cmd.Context(), env, f, args)
	}
	fl := c.Flags()
	f.target.add(fl, false)
	f.output.add(fl)
	f.probing(fl)
	fl.DurationVar(&f.probeLimit, "probe-timeout", probe.DefaultLimit, "deadline of one all-reduce on a rig")
	f.keeping(fl)
	return c
}
