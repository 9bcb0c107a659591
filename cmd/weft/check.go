package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/check"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/ruleset"
)

func newCheckCmd() *cobra.Command {
	var (
		output   cli.Output
		paths    []string
		with     []string
		strict   bool
		node     bool
		includes nftfile.IncludePath
	)
	cmd := &cobra.Command{
		Use:   "check -f FILE|DIR|-... [--with FILE|DIR]...",
		Short: "Parse and compile .nft files, without a daemon, and report all their errors",
		Long: `Parse and compile .nft files as the daemon does, and report all errors of all
files at once. It needs no daemon, no kernel and no privilege. A directory stands
for its .nft files. It also reads the output of "nft -j list ruleset".

The files are one ruleset: what one of them refers to must be declared in one of
them. Use --with for files with the chains, sets and objects that other publishers
declare, or with the output of "nft list ruleset" of a node.

What is right and cannot be meant is a finding, such as an accept that the rules of a
--with file override: it is printed, with both parties and a remedy. With --node it is
also a finding that a chain drops what a node of Kubernetes needs: SSH, its kubelet, its
API server. With --strict findings are errors. The comment "weft:ignore" on a rule silences those of the rule.

With -o netlink the expressions of every rule and the elements of every set are
printed, in the notation of "nft --debug=netlink".

Exit codes: 0 no errors, 1 a file has errors or cannot be read, or there are findings
and --strict is set, 2 the command line is wrong.`,
		Example: `  weft check -f deny.nft
  weft check -f policies/ --with base.nft
  weft check -f deny.nft -o netlink`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(paths) == 0 {
				return cli.Usagef("weft check: name files with -f (see weft check --help)")
			}
			files, err := readFiles(cmd.InOrStdin(), paths, with, includes.Open)
			if err != nil {
				return err
			}
			var needs []lint.Need
			if node {
				needs = lint.NodeNeeds
			}
			return runCheck(cmd.OutOrStdout(), cmd.ErrOrStderr(), files, output.Format == "netlink", strict, needs)
		},
	}
	output.AddFlag(cmd, "text", "netlink")
	cmd.Flags().StringArrayVarP(&paths, "file", "f", nil, "a .nft file, or a directory of them; - reads standard input")
	cmd.Flags().StringArrayVar(&with, "with", nil, "a .nft file, or a directory of them, that declares what the others refer to")
	cmd.Flags().BoolVar(&node, "node", false, "the files are for a node of Kubernetes: find what cuts it off from SSH, its kubelet or its API server")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if there are findings")
	includes.AddFlag(cmd.Flags())
	// Errors are unknown flags.
	_ = cmd.MarkFlagFilename("file", "nft")
	_ = cmd.MarkFlagFilename("with", "nft")
	return cmd
}

func readFiles(stdin io.Reader, paths, with []string, open ruleset.OpenFunc) ([]check.File, error) {
	var files []check.File
	inputs := 0
	for i, args := range [][]string{with, paths} {
		names, err := nftfile.Paths(args, false)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if name == "-" {
				if inputs++; inputs > 1 {
					return nil, cli.Usagef("weft check: standard input can be read once only")
				}
			}
			text, err := nftfile.Read(stdin, name)
			if err != nil {
				return nil, err
			}
			files = append(files, check.File{Name: name, Text: text, Context: i == 0, Open: open})
		}
	}
	return files, nil
}

func runCheck(stdout, stderr io.Writer, files []check.File, netlink, strict bool, needs []lint.Need) error {
	r := check.Run(files)
	if len(r.Problems) > 0 {
		wrong := map[string]bool{}
		for _, p := range r.Problems {
			wrong[p.File] = true
			fmt.Fprintln(stderr, p)
		}
		return fmt.Errorf("check: %s in %s", counted(len(r.Problems), "error"), counted(len(wrong), "file"))
	}
	if netlink {
		return r.Netlink(stdout)
	}
	findings, err := r.Findings(needs)
	if err != nil {
		return err
	}
	out := stdout
	if strict {
		out = stderr
	}
	for i := range findings {
		fmt.Fprintln(out, findings[i].String())
	}
	if len(findings) > 0 && strict {
		return fmt.Errorf("check: %s (see --strict)", counted(len(findings), "finding"))
	}
	_, err = fmt.Fprintf(stdout, "ok: %s, %s, %s with %s, %s\n", counted(r.Tables, "table"), counted(r.Rules, "rule"),
		counted(r.Sets, "set"), counted(r.Elements, "element"), counted(r.Objects, "object"))
	return err
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
