package get

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft/printable"
)

// Rows is a table.
type Rows struct {
	// Columns are in upper case, one for each cell.
	Columns []string
	Rows    [][]string
	// Notes are for the standard error.
	Notes []string
	// number of leading columns that name an object
	key int
	// another table about the same objects, or nil
	more *Rows
}

func newRows(columns ...string) *Rows { return &Rows{Columns: columns, key: 1} }

func (r *Rows) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Add adds a row with escaped text.
func (r *Rows) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = printable.Escape(fmt.Sprint(c))
	}
	r.Rows = append(r.Rows, row)
}

func (r *Rows) names() []string {
	return slices.Compact(cli.Map(r.Rows, func(row []string) string { return row[0] }))
}

func (r *Rows) print(out, notes io.Writer) error {
	for t := r; t != nil; t = t.more {
		if t != r {
			fmt.Fprintln(out)
		}
		if err := t.Write(out); err != nil {
			return err
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(notes, n)
	}
	return nil
}

// Write prints the table.
func (r *Rows) Write(w io.Writer) error {
	p := &printer{out: w}
	p.rows(append([][]string{r.Columns}, r.Rows...))
	return p.err
}

// printer prints tables of which the columns never become narrower.
type printer struct {
	out io.Writer
	// the widest cell of each column up to now
	widest []string
	err    error
}

func (p *printer) rows(lines [][]string) {
	for _, cells := range lines {
		for i, c := range cells {
			if i == len(p.widest) {
				p.widest = append(p.widest, "")
			}
			if utf8.RuneCountInString(c) > utf8.RuneCountInString(p.widest[i]) {
				p.widest[i] = c
			}
		}
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	// The first line sets the widths, and is not printed.
	for _, cells := range slices.Insert(slices.Clone(lines), 0, p.widest) {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush() // to memory
	_, _ = b.ReadBytes('\n')
	if _, err := b.WriteTo(p.out); p.err == nil {
		p.err = err
	}
}
