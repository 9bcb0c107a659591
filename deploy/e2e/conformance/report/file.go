package report

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Parse reads tab-separated results: a line with the titles of the columns, then a line for each spec.
func Parse(text string) (*Table, error) {
	t := New(nil)
	var header []string
	for l := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		switch {
		case header == nil:
			header = cells
		case len(cells) != len(header):
			return nil, fmt.Errorf("row %q has %d columns, not %d", l, len(cells), len(header))
		default:
			for i, c := range cells[1:] {
				if c != "" {
					t.set(cells[0], header[i+1], c)
				}
			}
		}
	}
	if len(header) < 2 || header[0] != "spec" {
		return nil, errors.New(`the first line is not "spec" and the names of proxies, separated by tabs`)
	}
	return t, nil
}

// Read reads the results of a file.
func Read(file string) (*Table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	t, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read results: %s: %w", file, err)
	}
	return t, nil
}

// Write writes the results into a file. It keeps the file's results that t does not have.
func (t *Table) Write(file string) error {
	old, err := Read(file)
	if err != nil {
		return err
	}
	t.over(old)
	if err := t.dropSkipped(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	header := slices.Concat([]string{"spec"}, t.columns())
	text := strings.Join(header, "\t") + "\n"
	for _, r := range t.sorted() {
		text += r.name
		for _, c := range header[1:] {
			text += "\t" + r.cells[c]
		}
		text += "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Regressions returns a line for each spec that passed in old and has another result in t.
func (t *Table) Regressions(old *Table) []string {
	var lines []string
	for _, r := range t.sorted() {
		for _, s := range Subjects {
			was, is := old.rows[r.name].cells[s.Title], r.cells[s.Title]
			if was == string(Passed) && is != "" && is != was {
				lines = append(lines, fmt.Sprintf("%s, %s: %s. %s", s.Title, strings.Trim(is, "*"), r.name, t.messages[s.Title][r.name]))
			}
		}
	}
	return lines
}

// Flakes returns a line for each spec with different results.
func (t *Table) Flakes() []string {
	var lines []string
	for _, r := range t.sorted() {
		for _, s := range Subjects {
			if c := r.cells[s.Title]; flake.MatchString(c) {
				lines = append(lines, fmt.Sprintf("%s, %s: %s. %s", s.Title, strings.Trim(c, "*"), r.name, t.messages[s.Title][r.name]))
			}
		}
	}
	return lines
}
