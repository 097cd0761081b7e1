package main

import (
	"github.com/spf13/cobra"

	"preflight/internal/probe"
)

func newProbe(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:     "probe",
		Short:   "Measure rigs under load",
		Example: "  preflight probe nccl -i rigs.hcl",
	}
	c.AddCommand(newProbeNCCL(env))
	return c
}

// newProbeNCCL is check reduced to what the all-reduce tells: the run itself, and the links while it ran.
func newProbeNCCL(env *environment) *cobra.Command {
	f := &checkFlags{only: []string{"nccl.all-reduce", "pcie.width", "pcie.speed"}, failOn: "fail"}
	c := &cobra.Command{
		Use:   "nccl [RIG...]",
		Short: "Run an all-reduce over all cards of each rig, and judge it and the links",
		Long: `probe nccl runs an all-reduce over all cards with nccl-tests found on the host, samples
width and speed of every link meanwhile, and judges both. Cards at work are left alone unless
--force is given. It needs no more than nccl-tests on the host and leaves nothing there.`,
		Example: `  preflight probe nccl -i rigs.hcl
  preflight probe nccl -i rigs.hcl node-a -v --probe-timeout 3m`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCheck(cmd.Context(), env, f, args) },
	}
	fl := c.Flags()
	f.target.add(fl, false)
	f.output.add(fl)
	fl.BoolVar(&f.force, "force", false, "probe although cards are busy")
	fl.DurationVar(&f.probeLimit, "probe-timeout", probe.DefaultLimit, "deadline of the all-reduce on a rig")
	fl.StringVar(&f.save, "save", "", "keep each rig's snapshot as RIG.tar.gz in this directory")
	return c
}
