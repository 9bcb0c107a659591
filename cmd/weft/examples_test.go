package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// example is a command line in the help of a command.
type example struct {
	of   *cobra.Command
	text string
}

// examples returns the examples of a command and of its subcommands. Lines that belong together,
// such as a here document, are one.
func examples(cmd *cobra.Command) (out []example) {
	for line := range strings.Lines(cmd.Example) {
		line = strings.TrimPrefix(line, "  ")
		if n := len(out) - 1; n >= 0 && strings.Contains(out[n].text, "<<") && !strings.HasSuffix(out[n].text, "\nEND\n") {
			out[n].text += strings.TrimSuffix(line, "\n") + "\n"
			continue
		}
		out = append(out, example{cmd, strings.TrimSuffix(line, "\n") + "\n"})
	}
	for _, sub := range cmd.Commands() {
		out = append(out, examples(sub)...)
	}
	return out
}

// TestExamplesParse checks that every command has an example, which is of that command or one
// below it, and that its flags and arguments are accepted.
func TestExamplesParse(t *testing.T) {
	for _, e := range examples(newRootCmd()) {
		found := false
		for _, words := range invocations(e.text) {
			// Flags keep their values: each line has commands of its own.
			root := newRootCmd()
			cmd, rest, err := root.Find(words)
			if err != nil {
				t.Errorf("%s: %v", e.text, err)
				continue
			}
			found = found || strings.HasPrefix(cmd.CommandPath(), e.of.CommandPath())
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", e.text, err)
			} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: %v", e.text, err)
			}
		}
		if !found {
			t.Errorf("an example of %s is about something else: %s", e.of.CommandPath(), e.text)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCmd())
}

// invocations returns the arguments of each weft in a line for the shell.
func invocations(text string) (out [][]string) {
	line, _, _ := strings.Cut(text, "\n")
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == '|' || r == '&' }) {
		words := strings.Fields(part)
		if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "<>") }); i >= 0 {
			words = words[:i]
		}
		if len(words) > 0 && words[0] == "weft" {
			out = append(out, words[1:])
		}
	}
	return out
}
