package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/nft/ruleset"
)

const planChanges cli.ExitCode = 3

func newPlanCmd() *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
		req    planRequest
		strict bool
	)
	cmd := &cobra.Command{
		Use:   "plan [-f FILE|DIR|-]... [--delete NAME]...",
		Short: "Show what a commit would change in the kernel, and what would be refused; change nothing",
		Long: `Show what one commit would change in the kernel that applies the files and deletes
the fragments, and what would be refused: by the parser, because of other
fragments, or by the kernel itself, which checks the batch and drops it. Nothing
changes. In a directory each .nft file is a fragment. They are planned in the
order of their names, so a fragment that needs another must sort after it.

What would be accepted and can hardly be meant is a finding, such as an accept that the
drop of another publisher or program overrides: it is printed after the changes, with both
parties and a remedy. The comment "weft:ignore" on a rule silences those of the rule.

Exit codes: 0 nothing would change, 3 something would change, 1 something would be
refused, there are findings and --strict is set, or there is no answer, 2 the command line is wrong.`,
		Example: `  weft plan -f deny.nft
  weft plan -f fragments/ --delete old -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			message, err := req.message(cmd.InOrStdin())
			if err != nil {
				return err
			}
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				plan, err := c.Plan(cmd.Context(), message)
				if err != nil {
					return err
				}
				req.locate(plan)
				w := cmd.OutOrStdout()
				if err := output.Write(w, plan, func() error { return printPlan(w, plan) }); err != nil {
					return err
				}
				switch {
				case len(plan.GetRejections()) > 0:
					return refusedPlan(plan.GetRejections())
				case len(plan.GetFindings()) > 0 && strict:
					return fmt.Errorf("plan: %s (see --strict)", counted(len(plan.GetFindings()), "finding"))
				case len(plan.GetChanges()) > 0:
					return planChanges
				default:
					return nil
				}
			})
		},
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "text", "json", "yaml")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if there are findings")
	req.files.AddFragmentFlags(cmd)
	cmd.Flags().StringArrayVar(&req.deletes, "delete", nil, "a fragment to withdraw first: [PUBLISHER/]NAME")
	// The only error is an unknown flag.
	_ = cmd.RegisterFlagCompletionFunc("delete", conn.CompleteFragments)
	return cmd
}

func refusedPlan(rejections []*weftv1.Rejection) error {
	names := cli.Map(rejections, func(r *weftv1.Rejection) string { return r.GetFragment().Text() })
	return fmt.Errorf("plan: would be refused: %s", cli.Some(names))
}

type planRequest struct {
	files   nftfile.Selection
	deletes []string
	// by fragment
	bundles map[string]*ruleset.Bundle
}

func (p *planRequest) locate(plan *weftv1.PlanResponse) {
	for _, r := range plan.GetRejections() {
		nftfile.Locate(p.bundles[r.GetFragment().GetName()], r.GetViolations())
	}
}

func (p *planRequest) message(stdin io.Reader) (*weftv1.PlanRequest, error) {
	if len(p.files.Files)+len(p.deletes) == 0 {
		return nil, cli.Usagef("weft plan: name files with -f, or fragments with --delete (see weft plan --help)")
	}
	req := &weftv1.PlanRequest{Findings: true}
	for _, arg := range p.deletes {
		publisher, name := cli.SplitName(arg)
		req.Withdraw = append(req.Withdraw, &weftv1.FragmentName{Publisher: publisher, Name: name})
	}
	sources, err := p.files.Sources("weft plan")
	if err != nil {
		return nil, err
	}
	p.bundles = map[string]*ruleset.Bundle{}
	for _, from := range sources {
		f, bundle, err := p.files.Fragment(stdin, from)
		if err != nil {
			return nil, err
		}
		p.bundles[from.Name] = bundle
		req.Fragments = append(req.Fragments, f)
	}
	return req, nil
}

func printPlan(w io.Writer, p *weftv1.PlanResponse) error {
	var b strings.Builder
	several := slices.ContainsFunc(p.GetChanges(), func(c *weftv1.Change) bool { return c.GetFragment().Text() != p.GetChanges()[0].GetFragment().Text() })
	for _, c := range p.GetChanges() {
		b.WriteString(changeLine(c, several))
	}
	for _, s := range p.GetShadows() {
		fmt.Fprintf(&b, "hidden: %s: %q of %s, by %q of %s\n", s.GetElement().Text(),
			s.GetHiddenValue(), s.GetHidden().Text(), s.GetWinnerValue(), s.GetWinner().Text())
	}
	for _, r := range p.GetRejections() {
		fmt.Fprintln(&b, (&client.RejectedError{Fragment: r.GetFragment().Text(), Violations: r.GetViolations()}).Detail())
	}
	if len(p.GetRejections()) == 0 {
		fmt.Fprintf(&b, "plan against revision %d: %s\n", p.GetRevision(), cli.Counts(p.GetCounts()))
	}
	if len(p.GetChanges()) > 0 {
		for _, c := range p.GetCosts() {
			b.WriteString(costLine(c))
		}
	}
	for _, f := range p.GetFindings() {
		fmt.Fprintln(&b, cli.Finding(f))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func costLine(c *weftv1.PathCost) string {
	line := fmt.Sprintf("cost: a packet takes at most %v in %s", time.Duration(c.GetNanoseconds()), c.GetChain().Text()) //nolint:gosec // at most 2^40
	if path := c.GetPath(); len(path) > 1 {
		line += ", then " + strings.Join(path[1:], ", then ")
	}
	return line + "\n"
}

// changeLine adds the fragment's name if several is set.
func changeLine(c *weftv1.Change, several bool) string {
	sign := "?"
	switch c.GetOperation() {
	case weftv1.Change_OPERATION_ADD:
		sign = "+"
	case weftv1.Change_OPERATION_DELETE:
		sign = "-"
	case weftv1.Change_OPERATION_FLUSH:
		sign = "- all elements of"
	case weftv1.Change_OPERATION_UNSPECIFIED:
	}
	line := sign + " " + c.GetText()
	switch {
	case several && strings.Contains(line, " # "):
		line += ", of " + c.GetFragment().Text()
	case several:
		line += " # of " + c.GetFragment().Text()
	}
	return line + "\n"
}
