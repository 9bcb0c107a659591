package compile

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Dump returns the expressions as `nft --debug=netlink` prints them, one per line.
func (r *Rule) Dump() string {
	var b strings.Builder
	for _, e := range r.Exprs {
		b.WriteString("  [ ")
		b.WriteString(expr.Format(e))
		b.WriteString(" ]\n")
	}
	return b.String()
}

// DumpComment returns the comment like `nft --debug=netlink`, indented and with a newline, or "".
func (r *Rule) DumpComment() string {
	words := set.DumpComment(set.Element{Comment: r.Comment}, false)
	if words == "" {
		return ""
	}
	return " " + words + "\n"
}

// DumpSets returns the anonymous sets and their elements, one per line, without the sets of meters.
func (r *Rule) DumpSets() string {
	var b strings.Builder
	for _, a := range r.Anonymous {
		if a.Set.Flags&set.FlagEval != 0 {
			continue // a meter's set, which has a name and no elements
		}
		fmt.Fprintf(&b, "%s %x size %d\n", a.Set.Name, a.Set.Flags, a.Set.Size)
		for _, e := range set.KernelElements(a) {
			fmt.Fprintf(&b, "  element %s\n", e)
		}
	}
	return b.String()
}
