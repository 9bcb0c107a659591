package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/weft-proxy/weft/nft/compile"
)

// Netlink prints sets and rules in the notation of "nft --debug=netlink", without context files.
func (r *Result) Netlink(w io.Writer) error {
	var b strings.Builder
	for _, t := range r.tables {
		for i := range t.sets {
			s := &t.sets[i]
			b.WriteString(s.decl.DumpDeclaration(t.id.Name))
			b.WriteString(s.decl.DumpElements(t.id.Name, s.elements))
		}
		for i := range t.chains {
			for _, rule := range t.chains[i].rules {
				dumpRule(&b, t, t.chains[i].name, rule)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print expressions: %w", err)
	}
	return nil
}

func dumpRule(b *strings.Builder, t *table, chain string, rule *compile.Rule) {
	for i := range rule.Anonymous {
		a := &rule.Anonymous[i]
		b.WriteString(a.Set.DumpDeclaration(t.id.Name))
		b.WriteString(a.Set.DumpElements(t.id.Name, a.Elements))
	}
	fmt.Fprintf(b, "%s %s %s\n%s", t.id.Family, t.id.Name, chain, rule.Dump())
	if comment := rule.DumpComment(); comment != "" {
		b.WriteString(comment)
		return
	}
	b.WriteByte('\n')
}
