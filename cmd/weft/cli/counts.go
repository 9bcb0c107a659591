package cli

import (
	"fmt"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Counts returns what a commit changed, such as "+3 -1 elements, +1 rules".
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
