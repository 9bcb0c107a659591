package conditions

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of conditions anew")

// document has the table, which begins with tableHead.
const (
	document  = "../../../deploy/docs/operating.md"
	tableHead = "| condition | meaning, if it is not ok | remedy |\n| --- | --- | --- |\n"
)

// TestDocument has the table of the documentation as Kinds makes it.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(document)
	must(t, err)
	before, rest, ok := strings.Cut(string(b), tableHead)
	have, after, ok2 := strings.Cut(rest, "\n\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no table of conditions", document)
	}
	var rows []string
	for _, k := range Kinds {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", k.Name, k.Meaning, k.Remedy))
	}
	want := strings.Join(rows, "\n")
	if *update {
		if err := os.WriteFile(document, []byte(before+tableHead+want+"\n\n"+after), 0o644); err != nil { //nolint:gosec // of a repository
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s has another table of conditions than Kinds: run go test ./cmd/weft/conditions -args -update. Want\n%s", document, want)
	}
}

// TestKinds: each condition has a name, a meaning and a remedy of its own.
func TestKinds(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range Kinds {
		if k.Name == "" || k.Meaning == "" || k.Remedy == "" || seen[k.Name] || strings.HasSuffix(k.Remedy, ".") || strings.HasSuffix(k.Meaning, ".") {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
	}
}
