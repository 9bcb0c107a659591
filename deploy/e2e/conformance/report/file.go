package report

import (
	"fmt"
	"os"
	"strings"
)

// The tables are between these lines of the file.
const (
	begin = "<!-- make conformance: results -->"
	end   = "<!-- end of results -->"
)

// split returns the text before, between and after the markers.
func split(text string) (before, between, after string, err error) {
	before, rest, found := strings.Cut(text, begin+"\n")
	between, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", "", fmt.Errorf("the lines %q and %q are missing", begin, end)
	}
	return before + begin + "\n", between, end + after, nil
}

// Parse reads the tables of a file's text.
func Parse(text string) (*Table, error) {
	_, between, _, err := split(text)
	if err != nil {
		return nil, err
	}
	t := New(nil)
	var header []string
	for l := range strings.Lines(between) {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "| ") {
			header = nil
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(l, "|"), "|"), " | ")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), `\|`, "|")
		}
		switch {
		case header == nil:
			header = cells
		case strings.HasPrefix(l, "| --- "):
		case len(cells) != len(header):
			return nil, fmt.Errorf("row %q has %d cells, not %d", l, len(cells), len(header))
		case header[0] == "spec":
			for i, c := range cells[1:] {
				if c != "" {
					t.set(cells[0], header[i+1], c)
				}
			}
		case header[0] == "passed" && (cells[0] == runs || cells[0] == minutes):
			for i, c := range cells[1:] {
				put(t.facts, cells[0], header[i+1], c)
			}
		}
	}
	return t, nil
}

// Read reads the tables of a file.
func Read(file string) (*Table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	t, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read table: %s: %w", file, err)
	}
	return t, nil
}

// Write puts the results into a file. What it has of specs and subjects without results stays.
func (t *Table) Write(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	old, err := Parse(string(text))
	if err != nil {
		return fmt.Errorf("write table: %s: %w", file, err)
	}
	t.over(old)
	before, _, after, err := split(string(text))
	if err != nil {
		return fmt.Errorf("write table: %s: %w", file, err)
	}
	tables, err := t.Markdown()
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if err := os.WriteFile(file, []byte(before+"\n"+tables+"\n"+after), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// Regressions returns a line for each spec that passed in the older table and did not pass
// in t. A spec without a result in t is not one.
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

// Flakes returns a line for each spec that had different results in the runs.
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
