package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Object is the kind of object that a verb's arguments name.
type Object int

const (
	// ObjectTable is FAMILY TABLE.
	ObjectTable Object = iota
	// ObjectRule is FAMILY TABLE CHAIN HANDLE.
	ObjectRule
	// ObjectElement is FAMILY TABLE SET KEY.
	ObjectElement
)

// CompleteFragments completes an argument with the names of all fragments, as
// "publisher/name". It is a cobra.CompletionFunc, and offers nothing on an error.
func (c *Connection) CompleteFragments(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	err := c.Do(cmd.Context(), func(cl *client.Client) error {
		list, err := cl.List(cmd.Context())
		for _, f := range list.GetFragments() {
			names = append(names, f.GetFragment().Text())
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteObject completes each argument in turn with what the aggregator has.
func (c *Connection) CompleteObject(what Object) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var words []string
		err := c.Do(cmd.Context(), func(cl *client.Client) (err error) {
			if len(args) < 2 {
				words, err = tableWords(cmd.Context(), cl, args)
			} else if what != ObjectTable {
				words, err = objectWords(cmd.Context(), cl, what, args)
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// tableWords returns the families in use, or the tables of one.
func tableWords(ctx context.Context, cl *client.Client, args []string) ([]string, error) {
	list, err := cl.ListTables(ctx)
	var words []string
	seen := map[string]bool{}
	for _, t := range list.GetTables() {
		switch {
		case len(args) == 1 && args[0] == t.GetFamily():
			words = append(words, t.GetName())
		case len(args) == 0 && !seen[t.GetFamily()]:
			seen[t.GetFamily()] = true
			words = append(words, t.GetFamily())
		}
	}
	return words, err
}

// objectWords returns the chains or sets of a table, the handles of a chain, or
// the keys of a set.
func objectWords(ctx context.Context, cl *client.Client, what Object, args []string) ([]string, error) {
	t, err := cl.GetTable(ctx, &weftv1.GetTableRequest{Family: args[0], Name: args[1], Terse: what == ObjectRule || len(args) == 2})
	var words []string
	for _, ch := range t.GetChains() {
		switch {
		case what != ObjectRule:
		case len(args) == 2:
			words = append(words, ch.GetChain().GetName())
		case len(args) == 3 && ch.GetChain().GetName() == args[2]:
			for _, r := range ch.GetRules() {
				words = append(words, strconv.FormatUint(r.GetHandle(), 10)+"\t"+r.GetRule().GetText())
			}
		}
	}
	for _, s := range t.GetSets() {
		switch {
		case what != ObjectElement:
		case len(args) == 2:
			words = append(words, s.GetSet().GetName())
		case len(args) == 3 && s.GetSet().GetName() == args[2]:
			for _, e := range s.GetSet().GetElements() {
				words = append(words, e.GetKey())
			}
		}
	}
	return words, err
}
