// Package report writes what a run of tests found into a document: the lines between
//
//	<!-- NAME: begin -->
//	<!-- NAME: end -->
//
// A document that lacks the lines is an error.
package report

import (
	"fmt"
	"os"
	"strings"
)

// Write replaces the section of that name in a file.
func Write(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("write the section %s: %s lacks %q or %q", name, file, begin, end)
	}
	return os.WriteFile(file, []byte(head+begin+text+end+tail), 0o644)
}

// Table returns rows, the first of which is the header, as a table in Markdown.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	return b.String()
}
