package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"preflight/internal/probe"
)

func newVersion(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  preflight version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.stdout, "preflight %s (%s/%s, %s)\nnative helper: %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version(), carried())
			return err
		},
	}
}

// carried says for which hosts the native helper was built in.
func carried() string {
	var archs []string
	for _, a := range []string{"amd64", "arm64"} {
		if probe.Embedded(a) {
			archs = append(archs, "linux/"+a)
		}
	}
	if len(archs) == 0 {
		return "none; make build puts it in"
	}
	return strings.Join(archs, ", ")
}
