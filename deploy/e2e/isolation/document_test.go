package isolation

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	document = "../../docs/policy.md"
	begin    = "<!-- isolation: begin -->\n"
	finish   = "<!-- isolation: end -->\n"
)

// document compares the table with the results, or writes it.
func (r *result) document(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	have, after, ok2 := strings.Cut(rest, finish)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", document, begin, finish)
	}
	want := r.table()
	if *write {
		if err := os.WriteFile(document, []byte(before+begin+want+finish+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s has another table: run go test ./isolation -isolation.write in deploy/e2e. Want\n%s", document, want)
	}
}

func (r *result) table() string {
	var b strings.Builder
	b.WriteString("| packets | from the pod, routed | bridged | to the pod, routed | bridged |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		b.WriteString("| " + row + " |")
		for _, direction := range []string{"from", "to"} {
			for _, plugin := range []string{"routed", "bridged"} {
				b.WriteString(" " + r.cells[cell{row, direction, plugin}].text() + " |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (o *outcome) text() string {
	switch {
	case o == nil:
		return "-"
	case len(o.passed) > 0:
		return "passes: " + families(o.passed)
	case len(o.lost) > 0:
		return "lost: " + families(o.lost)
	case !o.reached:
		return "never arrives"
	case o.seen:
		return "passes"
	}
	return cmp.Or(o.verb, "dropped")
}

func families(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
