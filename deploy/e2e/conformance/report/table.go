package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// Subjects are in the order of the columns. Name is a directory of results.
var Subjects = []struct{ Name, Title string }{
	{"weft", "weft"},
	{"kube-proxy", "kube-proxy 1.37.2"},
	{"weft-chaos", "weft, chaos"},
}

type row struct {
	name  string
	cells map[string]string
}

// seconds is the title of the column with the median time with weft.
const seconds = "seconds"

// policies is the kind, and the prefix of names, of the ClusterNetworkPolicy suite's tests.
const policies = "ClusterNetworkPolicy"

// Table is the results of specs.
type Table struct {
	rows map[string]row
	// facts are summary lines beyond the rows, by line title and column title.
	facts map[string]map[string]string
	// messages are for failed and skipped specs, by column and name.
	messages map[string]map[string]string
}

const (
	runs    = "Runs"
	minutes = "Minutes of a run of all specs"
)

// New returns a table of runs.
func New(all []Run) *Table {
	t := &Table{rows: map[string]row{}, facts: map[string]map[string]string{}, messages: map[string]map[string]string{}}
	for _, subject := range Subjects {
		cells := map[string]*cell{}
		n := 0
		var elapsed []time.Duration
		for _, r := range all {
			if r.Subject != subject.Name {
				continue
			}
			n++
			if r.complete() {
				elapsed = append(elapsed, r.Elapsed)
			}
			for _, s := range r.Specs {
				add(cells, s)
			}
			for _, s := range r.Policies {
				s.Name = policies + " " + s.Name
				add(cells, s)
			}
		}
		for name, c := range cells {
			t.set(name, subject.Title, c.String())
			if subject.Title == Subjects[0].Title {
				t.set(name, seconds, c.median())
			}
			if c.message != "" {
				put(t.messages, subject.Title, name, c.message)
			}
		}
		if len(elapsed) > 0 {
			slices.Sort(elapsed)
			put(t.facts, runs, subject.Title, fmt.Sprint(n))
			put(t.facts, minutes, subject.Title, fmt.Sprintf("%.0f", elapsed[(len(elapsed)-1)/2].Minutes()))
		}
	}
	return t
}

func add(cells map[string]*cell, s Spec) {
	if cells[s.Name] == nil {
		cells[s.Name] = &cell{}
	}
	cells[s.Name].add(s)
}

func put(m map[string]map[string]string, outer, inner, value string) {
	if m[outer] == nil {
		m[outer] = map[string]string{}
	}
	m[outer][inner] = value
}

func (t *Table) set(name, column, value string) {
	if t.rows[name].cells == nil {
		t.rows[name] = row{name: name, cells: map[string]string{}}
	}
	t.rows[name].cells[column] = value
}

func (t *Table) sorted() []row {
	return slices.SortedFunc(maps.Values(t.rows), func(a, b row) int { return cmp.Compare(a.name, b.name) })
}

func (t *Table) columns() []string {
	var titles []string
	for _, s := range Subjects {
		for _, r := range t.rows {
			if r.cells[s.Title] != "" {
				titles = append(titles, s.Title)
				break
			}
		}
	}
	return titles
}

// over merges t over older results. Rows of specs that no longer exist must be deleted by hand.
func (t *Table) over(old *Table) {
	for name, r := range old.rows {
		for column, value := range r.cells {
			if _, known := t.rows[name].cells[column]; !known {
				t.set(name, column, value)
			}
		}
	}
}

func kindsOf() []string {
	var titles []string
	for _, k := range kinds {
		titles = append(titles, k.title)
	}
	return append(titles, policies)
}

func (t *Table) kind(name string) string {
	if strings.HasPrefix(name, policies+" ") {
		return policies
	}
	return kindOf(name)
}

func (t *Table) dropSkipped() error {
	skips, err := specs.Skips()
	if err != nil {
		return err
	}
	maps.DeleteFunc(t.rows, func(name string, _ row) bool {
		_, skipped := specs.Reason(skips, name)
		return skipped
	})
	return nil
}

// Markdown returns the summary, the differences, and all and the skipped specs.
func (t *Table) Markdown() (string, error) {
	skips, err := specs.Skips()
	if err != nil {
		return "", err
	}
	known, err := specs.Known()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	columns := t.columns()
	t.summary(&b, columns)
	t.failures(&b, columns, known)
	b.WriteString("\n### All specs\n\n")
	header := slices.Concat([]string{"spec"}, columns, []string{seconds})
	line(&b, header)
	rule(&b, len(header))
	for _, r := range t.sorted() {
		cells := []string{r.name}
		for _, c := range header[1:] {
			cells = append(cells, r.cells[c])
		}
		line(&b, cells)
	}
	b.WriteString("\n### Not run\n\n")
	line(&b, []string{"specs", "reason"})
	rule(&b, 2)
	for _, s := range skips {
		line(&b, []string{"`" + s.Pattern + "`", s.Reason})
	}
	return b.String(), nil
}

// Specs that skipped themselves do not count.
func (t *Table) summary(b *strings.Builder, columns []string) {
	line(b, append([]string{"passed"}, columns...))
	rule(b, len(columns)+1)
	counts := map[string]map[string]*count{}
	for name, r := range t.rows {
		k := t.kind(name)
		if counts[k] == nil {
			counts[k] = map[string]*count{}
		}
		for _, c := range columns {
			if counts[k][c] == nil {
				counts[k][c] = &count{}
			}
			counts[k][c].add(r.cells[c])
		}
	}
	for _, k := range kindsOf() {
		if counts[k] == nil {
			continue
		}
		cells := []string{k}
		for _, c := range columns {
			cells = append(cells, counts[k][c].String())
		}
		line(b, cells)
	}
	for _, fact := range []string{runs, minutes} {
		if len(t.facts[fact]) == 0 {
			continue
		}
		cells := []string{fact}
		for _, c := range columns {
			cells = append(cells, t.facts[fact][c])
		}
		line(b, cells)
	}
}

func (t *Table) failures(b *strings.Builder, columns []string, known []specs.Skip) {
	b.WriteString("\n### What does not pass\n\n")
	any := false
	for _, r := range t.sorted() {
		for _, c := range columns {
			v := r.cells[c]
			if v == "" || v == string(Passed) {
				continue
			}
			reason, ok := specs.Reason(known, r.name)
			switch {
			case ok:
			case t.messages[c][r.name] != "":
				reason = "`" + strings.ReplaceAll(t.messages[c][r.name], "`", "'") + "`"
			default:
				reason = "no reason is known"
			}
			fmt.Fprintf(b, "* %s, %s: %s. %s\n", c, strings.Trim(v, "*"), r.name, reason)
			any = true
		}
	}
	if !any {
		b.WriteString("Nothing.\n")
	}
}

func line(b *strings.Builder, cells []string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func rule(b *strings.Builder, n int) { b.WriteString(strings.Repeat("| --- ", n) + "|\n") }
