package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// newHelpCmd replaces cobra's help, which exits with 0 for an unknown command.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Show the help of a command",
		Example: `  weft help apply
  weft help get table`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, word := range args {
				next := subcommand(at, word)
				if next == nil {
					return cli.Usagef("no help for %q: %s", strings.Join(args, " "), available(at))
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
		ValidArgsFunction: completeCommands,
	}
}

// adaptCompletion rejects an unknown shell, which cobra's verb accepts.
func adaptCompletion(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.Example = "  weft completion bash >weft.bash"
	for _, shell := range cmd.Commands() {
		shell.Example = "  weft completion " + shell.Name()
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return cli.Usagef("%s: no script for %q: %s", cmd.CommandPath(), args[0], available(cmd))
	}
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
	if i < 0 {
		return nil
	}
	return cmd.Commands()[i]
}

func available(cmd *cobra.Command) string {
	names := commandNames(cmd)
	if len(names) == 0 {
		return cmd.CommandPath() + " has no commands"
	}
	return cmd.CommandPath() + " has " + strings.Join(names, ", ")
}

func commandNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

func completeCommands(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	at := cmd.Root()
	for _, word := range args {
		if at = subcommand(at, word); at == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return commandNames(at), cobra.ShellCompDirectiveNoFileComp
}
