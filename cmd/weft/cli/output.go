package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// Output is the -o flag.
type Output struct {
	Format  string
	allowed []string
}

// AddFlag adds -o; the first format is the default.
func (o *Output) AddFlag(cmd *cobra.Command, allowed ...string) {
	o.Format, o.allowed = allowed[0], allowed
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(allowed, ", "))
	// The only error is an unknown flag.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String implements pflag.Value.
func (o *Output) String() string { return o.Format }

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	if !slices.Contains(o.allowed, s) {
		return fmt.Errorf("want one of %s", strings.Join(o.allowed, ", "))
	}
	o.Format = s
	return nil
}

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Write prints v as "json" or "yaml", or escapes v and calls text.
func (o *Output) Write(w io.Writer, v any, text func() error) error {
	if o.Format != "json" && o.Format != "yaml" {
		Escape(v)
		return text()
	}
	b, err := MarshalJSON(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if o.Format == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
	}
	_, err = w.Write(b)
	return err
}

// MarshalJSON returns indented JSON, in protobuf's mapping for messages.
func MarshalJSON(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return json.MarshalIndent(v, "", "  ")
	}
	b, err := protojson.MarshalOptions{EmitUnpopulated: false}.Marshal(m)
	if err != nil {
		return nil, err
	}
	// protojson varies its spacing on purpose; indenting again makes it stable.
	var raw json.RawMessage = b
	return json.MarshalIndent(raw, "", "  ")
}
