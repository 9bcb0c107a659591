package get

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
)

var tables = asking((*client.Client).ListTables, tableRows)

func tableRows(list *weftv1.ListTablesResponse, _ time.Time) *Rows {
	t := newRows("TABLE", "CHAINS", "RULES", "SETS", "ELEMENTS", "SHADOWED", "FRAGMENTS")
	for _, st := range list.GetTables() {
		t.Add(st.GetFamily()+" "+st.GetName(), st.GetChains(), st.GetRules(), st.GetSets(), st.GetElements(), st.GetShadowed(),
			cli.Some(weftv1.FragmentTexts(st.GetFragments())))
	}
	return t
}

func newTableCmd() *cobra.Command {
	var (
		conn                      cli.Connection
		terse, stateless, handles bool
	)
	cmd := cli.Query(&cobra.Command{
		Use:   "table FAMILY NAME",
		Short: "Show the merged content of a table, with the fragment that each rule comes from",
		Long: `Show the merged content of a table, with the fragment that each rule comes from,
and what counters, quotas and the elements that packets add have at present.`,
		Example: `  weft get table ip weft
  weft get table ip weft --terse --handle
  weft get table ip weft -o json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: conn.CompleteObject(cli.ObjectTable),
	}, &conn, "nft", func(ctx context.Context, c *client.Client, args []string) (*weftv1.GetTableResponse, error) {
		return c.GetTable(ctx, &weftv1.GetTableRequest{Family: args[0], Name: args[1], Terse: terse, Live: !stateless})
	}, func(w io.Writer, table *weftv1.GetTableResponse) error { return printTable(w, table, handles) })
	cmd.Flags().BoolVarP(&stateless, "stateless", "s", false, "leave out what rules and objects have counted, and elements that packets have added")
	cmd.Flags().BoolVarP(&terse, "terse", "t", false, "leave out the elements of sets and maps")
	cmd.Flags().BoolVarP(&handles, "handle", "a", false, "show the handles of rules")
	return cmd
}

// printTable prints text for nft. Comments hold the rest, such as the fragment of a rule.
func printTable(w io.Writer, t *weftv1.GetTableResponse, handles bool) error {
	st := t.GetStatus()
	m := &weftv1.Table{
		Family: st.GetFamily(), Name: st.GetName(), Comment: st.GetComment(), Flags: st.GetFlags(),
		Objects: cli.Map(t.GetObjects(), (*weftv1.MergedObject).GetObject), Flowtables: cli.Map(t.GetFlowtables(), (*weftv1.MergedFlowtable).GetFlowtable),
		Chains: cli.Map(t.GetChains(), (*weftv1.MergedChain).GetChain),
	}
	for _, s := range t.GetSets() {
		s.Set.Elements = append(s.Set.Elements, s.GetAdded()...)
		if s.GetMap() {
			m.Maps = append(m.Maps, s.Set)
		} else {
			m.Sets = append(m.Sets, s.Set)
		}
	}
	table, err := convert.TableOf(m)
	if err != nil {
		return fmt.Errorf("print table %s: %w", st.GetName(), err)
	}
	for i, c := range t.GetChains() {
		for _, r := range c.GetRules() {
			table.Chains[i].Rules = append(table.Chains[i].Rules, nft.Rule{Text: ruleLine(table.Family, r, handles)})
		}
	}
	_, err = fmt.Fprintf(w, "# revision %d, fragments: %s\n%s", t.GetRevision(), strings.Join(weftv1.FragmentTexts(st.GetFragments()), ", "), ruleset.Format([]nft.Table{table}))
	return err
}

// liveText returns the rule with its current counters and quotas, if known.
func liveText(family nft.Family, r *weftv1.MergedRule) string {
	text, live := r.GetRule().GetText(), r.GetStateful()
	rule, err := syntax.ParseRule(family, text)
	if len(live) == 0 || err != nil {
		return text
	}
	words := make([]string, len(rule.Stmts))
	for i, s := range rule.Stmts {
		words[i] = syntax.PrintStmt(s)
		switch s.(type) {
		case *syntax.Counter, *syntax.Quota:
			if len(live) > 0 {
				words[i], live = live[0], live[1:]
			}
		}
	}
	return strings.Join(words, " ")
}

func ruleLine(family nft.Family, r *weftv1.MergedRule, handles bool) string {
	var b strings.Builder
	b.WriteString(liveText(family, r))
	if c := r.GetRule().GetComment(); c != "" && b.Len() > 0 {
		// nft has no escapes in strings.
		b.WriteString(` comment "` + c + `"`)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString("# " + cmp.Or(r.GetFragment().Text(), unowned))
	if r.GetRule().GetText() == "" {
		fmt.Fprintf(&b, ": a rule from before the restart, handle %d: the text comes back with its publisher", r.GetHandle())
	} else if handles {
		fmt.Fprintf(&b, " handle %d", r.GetHandle())
	}
	return b.String()
}
