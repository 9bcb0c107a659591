package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

func newGetTablesCmd() *cobra.Command {
	var (
		conn   connection
		output outputFormat
	)
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "Show the tables that weft has in the kernel, and which fragments are in them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				list, err := c.ListTables(cmd.Context())
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				return output.write(w, list, func() error { return printTables(w, list.GetTables()) })
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, "table", "json", "yaml")
	return cmd
}

func printTables(w io.Writer, tables []*weftv1.TableStatus) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TABLE\tCHAINS\tRULES\tSETS\tELEMENTS\tSHADOWED\tFRAGMENTS")
	for _, t := range tables {
		fmt.Fprintf(tw, "%s %s\t%d\t%d\t%d\t%d\t%d\t%s\n", t.GetFamily(), t.GetName(),
			t.GetChains(), t.GetRules(), t.GetSets(), t.GetElements(), t.GetShadowed(), some(t.GetFragments()))
	}
	return tw.Flush()
}

func newGetTableCmd() *cobra.Command {
	var (
		conn           connection
		output         outputFormat
		terse, handles bool
	)
	cmd := &cobra.Command{
		Use:   "table FAMILY NAME",
		Short: "Show the merged content of a table, with the fragment that each rule comes from",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				table, err := c.GetTable(cmd.Context(), args[0], args[1], terse)
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				return output.write(w, table, func() error { return printTable(w, table, handles) })
			})
		},
		ValidArgsFunction: conn.completeObject(objectTable),
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, "nft", "json", "yaml")
	cmd.Flags().BoolVarP(&terse, "terse", "t", false, "leave out the elements of sets and maps")
	cmd.Flags().BoolVarP(&handles, "handle", "a", false, "show the handles of rules")
	return cmd
}

// printTable prints a table as nft would. What is nobody's in nft's language,
// such as a rule's fragment, comes in comments, so nft can read it all back.
func printTable(w io.Writer, t *weftv1.GetTableResponse, handles bool) error {
	st := t.GetStatus()
	family, err := nft.ParseFamily(st.GetFamily())
	if err != nil {
		return fmt.Errorf("print table %s: %w", st.GetName(), err)
	}
	table := nft.Table{Family: family, Name: st.GetName(), Comment: st.GetComment(), Flags: st.GetFlags()}
	for _, o := range t.GetObjects() {
		table.Objects = append(table.Objects, objectOf(o.GetObject()))
	}
	for _, f := range t.GetFlowtables() {
		table.Flowtables = append(table.Flowtables, flowtableOf(f.GetFlowtable()))
	}
	for _, s := range t.GetSets() {
		if s.GetMap() {
			table.Maps = append(table.Maps, nft.Map(setOf(s.GetSet())))
		} else {
			table.Sets = append(table.Sets, setOf(s.GetSet()))
		}
	}
	for _, c := range t.GetChains() {
		chain := chainOf(c.GetChain())
		for _, r := range c.GetRules() {
			chain.Rules = append(chain.Rules, nft.Rule{Text: ruleLine(r, handles)})
		}
		table.Chains = append(table.Chains, chain)
	}
	_, err = fmt.Fprintf(w, "# revision %d, fragments: %s\n%s", t.GetRevision(), strings.Join(st.GetFragments(), ", "), syntax.FormatFile([]nft.Table{table}))
	return err
}

// ruleLine is a rule with what there is to say about it behind.
func ruleLine(r *weftv1.MergedRule, handles bool) string {
	fragment := r.GetFragment()
	if fragment == "" {
		fragment = "nobody"
	}
	var b strings.Builder
	b.WriteString(r.GetRule().GetText())
	if c := r.GetRule().GetComment(); c != "" && b.Len() > 0 {
		// nft knows no escapes.
		b.WriteString(` comment "` + c + `"`)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString("# " + fragment)
	if r.GetRule().GetText() == "" {
		fmt.Fprintf(&b, ": a rule from before the restart, handle %d: the text comes back with its publisher", r.GetHandle())
	} else if handles {
		fmt.Fprintf(&b, " handle %d", r.GetHandle())
	}
	return b.String()
}
