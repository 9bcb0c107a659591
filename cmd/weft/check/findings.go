package check

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/lint"
)

// replaces matches a command that makes a file the whole ruleset.
var replaces = regexp.MustCompile(`(?m)^\s*flush\s+ruleset\b`)

// Findings returns the findings of package lint. Files other than context are one party. needs is
// the traffic that the node must receive. Sets without a reading rule are findings only if the
// files are the whole ruleset: with context, or if a file flushes the ruleset.
func (r *Result) Findings(needs []lint.Need) ([]lint.Finding, error) {
	rules, err := load.Tables(cli.Map(r.units, func(u *unit) load.Part {
		p := load.Part{Tables: u.parsed}
		if !u.Context && len(r.units) > 1 {
			p.Owner = strings.TrimSuffix(filepath.Base(u.Name), ".nft")
		}
		return p
	})...)
	if err != nil {
		return nil, fmt.Errorf("look for findings: %w", err)
	}
	whole := slices.ContainsFunc(r.units, func(u *unit) bool { return u.Context || replaces.MatchString(u.Text) })
	return lint.Run(rules, lint.Options{Needs: needs, Part: !whole}), nil
}
