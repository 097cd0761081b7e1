package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages, one for each command",
		Long: `man writes a page of section 1 for preflight and for each of its commands. Their date is that of
SOURCE_DATE_EPOCH where it is set, so that a package is the same each time it is built.`,
		Example: `  preflight man ~/.local/share/man/man1
  preflight man . && man ./preflight-check.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return failed(err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "preflight " + version, Manual: "preflight"}, args[0])
			if err != nil {
				return failed(err)
			}
			return nil
		},
	}
}
