package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// version is set by the linker (see the Makefile).
var version = "unknown"

func newVersionCmd() *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  weft version
  weft version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return output.Write(cmd.OutOrStdout(), v, func() error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "weft %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
				return err
			})
		},
	}
	output.AddFlag(cmd, "table", "json", "yaml")
	return cmd
}
