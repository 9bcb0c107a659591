package specs

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var program = flag.String("specs.program", "", "a built cmd/specs: its specs are written to testdata/names.txt")

func names(t *testing.T) []string {
	t.Helper()
	const file = "testdata/names.txt"
	if *program != "" {
		all, err := List(t.Context(), *program)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestLists checks the lists in the tree against the names of the specs.
func TestLists(t *testing.T) {
	all := names(t)
	skips, err := Skips()
	if err != nil {
		t.Fatal(err)
	}
	if err := check(all, skips, Short()); err != nil {
		t.Error(err)
	}
	if _, err := Known(); err != nil {
		t.Error(err)
	}
	for i, name := range all[1:] {
		if name == all[i] {
			t.Errorf("two specs are called %q: a report cannot tell them apart", name)
		}
	}
	count := func(part string) int {
		n := 0
		for _, name := range all {
			if strings.Contains(name, part) {
				n++
			}
		}
		return n
	}
	if got := [...]int{len(all), count("[Conformance]"), count("[Serial]"), count("] Netpol ")}; got != [...]int{249, 47, 10, 51} {
		t.Errorf("specs, [Conformance], [Serial], NetworkPolicy: %v", got)
	}
}
