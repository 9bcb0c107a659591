package get

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

type section struct {
	object, list string
	read         func(ctx context.Context, conn *cli.Connection) (objects any, rows *Rows, err error)
}

var sections = []section{
	{"publisher", "publishers", publishers.read},
	{"fragment", "fragments", fragments.read},
	{"table", "tables", tables.read},
	{"service", "services", servedServices.read},
	{"policy", "policies", policies.read},
	{"pod", "pods", pods.read},
}

func newAllCmd() *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
	)
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Show everything that weft has on this node: publishers, fragments, tables, Services, network policies and pods",
		Long: `Show everything that weft has on this node, each kind in a table of its own: publishers,
fragments, tables, and, of the frontends that run here, Services, network policies and pods.`,
		Example: `  weft get all
  weft get all -o json`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answers, tables, err := readAll(cmd.Context(), &conn)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.Write(w, answers, func() error {
				for i, t := range tables {
					if i > 0 {
						fmt.Fprintln(w)
					}
					if err := t.print(w, cmd.ErrOrStderr()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "table", "json", "yaml")
	return cmd
}

// readAll leaves out frontends that do not run.
func readAll(ctx context.Context, conn *cli.Connection) (answers map[string]json.RawMessage, tables []*Rows, err error) {
	answers = make(map[string]json.RawMessage, len(sections))
	for _, s := range sections {
		answer, rows, err := s.read(ctx, conn)
		if errors.As(err, new(*NoFrontendError)) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if answers[s.list], err = cli.MarshalJSON(answer); err != nil {
			return nil, nil, err
		}
		if len(rows.Rows) == 0 {
			continue
		}
		for _, row := range rows.Rows {
			row[0] = s.object + "/" + row[0]
		}
		rows.more = nil
		tables = append(tables, rows)
	}
	return answers, tables, nil
}
