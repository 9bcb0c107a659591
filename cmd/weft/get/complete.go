package get

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// CompleteServices completes the name of a Service.
func CompleteServices(conn *cli.Connection) cobra.CompletionFunc {
	return completeLocal(func(ctx context.Context) (names []string, err error) {
		state, err := readState(ctx, conn)
		if err != nil {
			return nil, err
		}
		for _, s := range state.Services {
			names = append(names, s.Namespace+"/"+s.Name)
		}
		return names, nil
	})
}

// CompletePods completes the name of a pod of this node.
func CompletePods(conn *cli.Connection) cobra.CompletionFunc {
	return completeLocal(func(ctx context.Context) (names []string, err error) {
		pods, err := ReadPods(ctx, conn)
		for _, p := range pods {
			names = append(names, p.text())
		}
		return names, err
	})
}

// completeLocal completes with the words that ask returns, and with nothing if there is no
// answer soon.
func completeLocal(ask func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTime)
		defer cancel()
		words, err := ask(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOnly completes the first argument only.
func firstOnly(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}
