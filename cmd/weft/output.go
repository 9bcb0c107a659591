package main

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

// outputFormat is the value of -o.
type outputFormat struct {
	value   string
	allowed []string
}

// addFlag adds -o with the formats that a verb has; the first is the default.
func (o *outputFormat) addFlag(cmd *cobra.Command, allowed ...string) {
	o.value, o.allowed = allowed[0], allowed
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(allowed, ", "))
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String, Set and Type make outputFormat a pflag.Value.
func (o *outputFormat) String() string { return o.value }

// Set checks the format.
func (o *outputFormat) Set(s string) error {
	if !slices.Contains(o.allowed, s) {
		return fmt.Errorf("want one of %s", strings.Join(o.allowed, ", "))
	}
	o.value = s
	return nil
}

// Type is what the help shows.
func (o *outputFormat) Type() string { return "format" }

// write prints v as JSON or YAML where that is asked for, and else calls table.
func (o *outputFormat) write(w io.Writer, v any, table func() error) error {
	switch o.value {
	case "json":
		b, err := marshalJSON(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	case "yaml":
		b, err := marshalJSON(v)
		if err != nil {
			return err
		}
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	default:
		return table()
	}
}

// marshalJSON indents, and renders protobuf messages by their JSON mapping.
func marshalJSON(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return json.MarshalIndent(v, "", "  ")
	}
	b, err := protojson.MarshalOptions{EmitUnpopulated: false}.Marshal(m)
	if err != nil {
		return nil, err
	}
	// protojson's spacing is random on purpose; a reader wants it steady.
	var raw json.RawMessage = b
	return json.MarshalIndent(raw, "", "  ")
}
