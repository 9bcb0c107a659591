package get

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Rows is a table.
type Rows struct {
	// Columns are their names in upper case. Each row has as many cells.
	Columns []string
	Rows    [][]string
}

func newRows(columns ...string) *Rows { return &Rows{Columns: columns} }

// add adds a row.
func (r *Rows) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	r.Rows = append(r.Rows, row)
}

// write prints the table.
func (r *Rows) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(r.Columns, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}
