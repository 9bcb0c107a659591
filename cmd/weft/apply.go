package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

func newApplyCmd() *cobra.Command {
	var (
		conn     connection
		includes includePath
		file     string
		name     string
		priority int32
		lifetime = "sticky"
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Publish a .nft file as a fragment and wait until it is committed",
		Long: `Publish a .nft file as a fragment and wait until it is committed. The file
replaces whatever the fragment held before: applying it again changes nothing.
Files that it includes are read here, not by the daemon.`,
		Example: `  weft apply -f deny.nft
  weft apply --name deny -f - < deny.nft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			life, ok := weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(lifetime)]
			if !ok || life == int32(weftv1.Lifetime_LIFETIME_SESSION) || life == 0 {
				return usage("--lifetime %q: want sticky or durable", lifetime)
			}
			if file == "" {
				return usage("weft apply: name the file with -f (see weft apply --help)")
			}
			bundle, err := includes.read(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			if name == "" {
				if file == "-" {
					return usage("apply -f -: give the fragment a --name")
				}
				name = strings.TrimSuffix(filepath.Base(file), ".nft")
			}
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				revision, err := c.Apply(cmd.Context(), &weftv1.Fragment{
					Name: name, Priority: priority, Lifetime: weftv1.Lifetime(life), Nft: bundle.Text,
				})
				if err != nil {
					return locateError(bundle, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s committed, revision %d\n", name, revision)
				return nil
			})
		},
	}
	conn.addFlags(cmd)
	includes.addFlag(cmd.Flags())
	cmd.Flags().StringVarP(&file, "file", "f", "", "the .nft file; - reads standard input")
	cmd.Flags().StringVar(&name, "name", "", "name of the fragment (default: the file's name without .nft)")
	cmd.Flags().Int32Var(&priority, "priority", 0, "place among the fragments that share an object, lowest first")
	cmd.Flags().StringVar(&lifetime, "lifetime", lifetime, "sticky (stays when weft restarts) or durable (also after a reboot)")
	// The only error is a flag that does not exist.
	_ = cmd.MarkFlagFilename("file", "nft")
	return cmd
}

// maxFile is more than the aggregator accepts; it keeps a wrong path, such as a
// device, from filling the memory.
const maxFile = 64 << 20

func readFile(stdin io.Reader, path string) (string, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read fragment: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read fragment: %w", err)
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("read fragment: %s is larger than %d MiB", path, maxFile>>20)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("read fragment: %s is not a text file", path)
	}
	return string(b), nil
}
