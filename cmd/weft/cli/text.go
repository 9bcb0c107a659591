package cli

import (
	"fmt"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/lint"
)

// Counts returns a text such as "+3 -1 elements, +1 rules".
func Counts(c *weftv1.Counts) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if a, d := c.GetElementsAdded(), c.GetElementsDeleted(); a+d > 0 {
		add("+%d -%d elements", a, d)
	}
	if a, d := c.GetRulesAdded(), c.GetRulesDeleted(); a+d > 0 {
		add("+%d -%d rules", a, d)
	}
	for _, n := range []struct {
		count uint32
		what  string
	}{{c.GetTables(), "tables"}, {c.GetChains(), "chains"}, {c.GetSets(), "sets"}, {c.GetObjects(), "objects"}} {
		if n.count > 0 {
			add("%d %s", n.count, n.what)
		}
	}
	if len(parts) == 0 {
		return "no change"
	}
	return strings.Join(parts, ", ")
}

// Finding returns a finding as text.
func Finding(f *weftv1.Finding) string {
	return lint.Format(f.GetId(), f.GetText(), f.GetRemedy(), f.GetRules(), f.GetExample(), int(f.GetMore()))
}

// Word returns "adopted" for "STATE_ADOPTED" and the prefix "STATE_".
func Word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

const maxNamed = 8

// Some joins eight names, and counts the others; "-" for an empty list.
func Some(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	if n := len(names) - maxNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ","), n)
	}
	return strings.Join(names, ",")
}

// Map returns the results of f, never nil.
func Map[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, e := range list {
		out[i] = f(e)
	}
	return out
}
