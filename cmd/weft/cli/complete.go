package cli

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Object is the kind of kernel object named by a verb's arguments.
type Object int

const (
	// ObjectTable is FAMILY TABLE.
	ObjectTable Object = iota
	// ObjectRule is FAMILY TABLE CHAIN HANDLE.
	ObjectRule
	// ObjectElement is FAMILY TABLE SET KEY.
	ObjectElement
)

const completionTime = time.Second

// Complete completes with the words from ask within a second.
func Complete(cmd *cobra.Command, ask func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	words, err := ask(ctx)
	if err != nil {
		words = nil
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (c *Connection) complete(cmd *cobra.Command, ask func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	return Complete(cmd, func(ctx context.Context) ([]string, error) {
		config := client.Config{Socket: c.Socket, Publisher: c.Publisher, DialTimeout: -1}
		return Ask(ctx, config, func(cl *client.Client) ([]string, error) { return ask(ctx, cl) })
	})
}

// CompleteFragments completes "publisher/name".
func (c *Connection) CompleteFragments(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, func(ctx context.Context, cl *client.Client) ([]string, error) {
		list, err := cl.List(ctx)
		return Map(list.GetFragments(), func(f *weftv1.FragmentStatus) string { return f.GetFragment().Text() }), err
	})
}

// CompletePublishers completes names of publishers.
func (c *Connection) CompletePublishers(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, func(ctx context.Context, cl *client.Client) ([]string, error) {
		list, err := cl.ListPublishers(ctx)
		return Map(list.GetPublishers(), (*weftv1.PublisherStatus).GetName), err
	})
}

// CompleteObject completes each argument in turn.
func (c *Connection) CompleteObject(what Object) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.complete(cmd, func(ctx context.Context, cl *client.Client) ([]string, error) {
			switch {
			case len(args) < 2:
				return tableWords(ctx, cl, args)
			case what != ObjectTable:
				return objectWords(ctx, cl, what, args)
			default:
				return nil, nil
			}
		})
	}
}

func tableWords(ctx context.Context, cl *client.Client, args []string) ([]string, error) {
	list, err := cl.ListTables(ctx)
	var words []string
	for _, t := range list.GetTables() {
		switch {
		case len(args) == 1 && args[0] == t.GetFamily():
			words = append(words, t.GetName())
		case len(args) == 0 && !slices.Contains(words, t.GetFamily()):
			words = append(words, t.GetFamily())
		}
	}
	return words, err
}

func objectWords(ctx context.Context, cl *client.Client, what Object, args []string) (names []string, _ error) {
	t, err := cl.GetTable(ctx, &weftv1.GetTableRequest{Family: args[0], Name: args[1], Terse: what == ObjectRule || len(args) == 2})
	of := make(map[string][]string)
	if what == ObjectRule {
		for _, ch := range t.GetChains() {
			names = append(names, ch.GetChain().GetName())
			of[ch.GetChain().GetName()] = Map(ch.GetRules(), func(r *weftv1.MergedRule) string {
				return strconv.FormatUint(r.GetHandle(), 10) + "\t" + r.GetRule().GetText()
			})
		}
	} else {
		for _, s := range t.GetSets() {
			names = append(names, s.GetSet().GetName())
			of[s.GetSet().GetName()] = Map(s.GetSet().GetElements(), (*weftv1.Element).GetKey)
		}
	}
	switch len(args) {
	case 2:
		return names, err
	case 3:
		return of[args[2]], err
	default:
		return nil, err
	}
}
