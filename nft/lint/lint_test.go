package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// parse compiles a ruleset.
func parse(t *testing.T, name, text string) *eval.Ruleset {
	t.Helper()
	tables, err := ruleset.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := load.Tables(tables)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// summary returns a finding as "ID: PARTY, PARTY".
func summary(f *lint.Finding) string {
	party := func(p lint.Place) string {
		switch {
		case p.Table.Name == "":
			return p.Chain // what the node needs
		case p.Party.String() == "":
			return "table " + p.Table.Name
		default:
			return p.Party.String()
		}
	}
	s := string(f.ID) + ": " + party(f.Subject)
	if other := party(f.Other); other != "" {
		s += ", " + other
	}
	return s
}

// TestPublicIssues: each file is what a public issue is about, and says which findings there are.
func TestPublicIssues(t *testing.T) {
	files, err := filepath.Glob("testdata/issues/*.nft")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v: want at least 10", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for line := range strings.Lines(string(text)) {
				if rest, ok := strings.CutPrefix(line, "# finds "); ok {
					want = append(want, strings.TrimSpace(rest))
				}
			}
			found := lint.Run(parse(t, file, string(text)), lint.Options{Needs: lint.NodeNeeds})
			for i := range found {
				t.Log(found[i].String())
				if s := summary(&found[i]); !slices.Contains(got, s) {
					got = append(got, s)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestStockRulesets: what distributions and products load has no findings.
func TestStockRulesets(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/stock/*.nft", "../eval/testdata/stock/*.nft"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 17 { // and those of iptables, see TestStockIPTables
		t.Fatalf("%d files: want at least 17", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := lint.Run(parse(t, file, string(text)), lint.Options{})
			for i := range found {
				t.Errorf("%s", found[i].String())
			}
		})
	}
}

// TestRules: what each kind finds, and what silences it.
func TestRules(t *testing.T) {
	for name, tt := range map[string]struct {
		rules string
		want  []string
	}{
		"contradiction":        {`chain c { tcp dport 80 tcp dport 81 accept; }`, []string{"never-matches"}},
		"outside the range":    {`chain c { tcp dport 80-90 tcp dport 100 accept; }`, []string{"never-matches"}},
		"not equal":            {`chain c { tcp dport 80 tcp dport != 80 accept; }`, []string{"never-matches"}},
		"agree":                {`chain c { tcp dport 80-90 tcp dport 85 tcp dport != 86 accept; }`, nil},
		"changed between":      {`chain c { meta mark 1 meta mark set 2 meta mark 2 accept; }`, nil},
		"after a verdict":      {`chain c { counter drop; tcp dport 80 accept; }`, []string{"never-matches"}},
		"two after a verdict":  {`chain c { counter drop; tcp dport 80 accept; tcp dport 81 accept; }`, []string{"never-matches", "never-matches"}},
		"after a limit":        {`chain c { limit rate 5/second drop; tcp dport 80 accept; }`, nil},
		"after a jump":         {`chain d { }; chain c { jump d; tcp dport 80 accept; }`, nil},
		"unread set":           {`set s { type ipv4_addr; elements = { 10.0.0.1 }; }; chain c { accept; }`, []string{"never-read"}},
		"empty set":            {`set s { type ipv4_addr; }; chain c { accept; }`, nil},
		"read set":             {`set s { type ipv4_addr; elements = { 10.0.0.1 }; }; chain c { ip saddr @s accept; }`, nil},
		"set for listing":      {`set s { type ipv4_addr; size 9; flags dynamic, timeout; timeout 1m; }; chain c { add @s { ip saddr }; }`, nil},
		"ignored rule":         {`chain c { counter drop; tcp dport 80 accept comment "weft:ignore"; }`, nil},
		"ignored kind":         {`chain c { counter drop; tcp dport 80 accept comment "later; weft:ignore=never-matches"; }`, nil},
		"another kind ignored": {`chain c { counter drop; tcp dport 80 accept comment "weft:ignore=never-read"; }`, []string{"never-matches"}},
		"ignored set":          {`set s { type ipv4_addr; comment "weft:ignore"; elements = { 10.0.0.1 }; }`, nil},
		"SSH from one network": {`chain c { type filter hook input priority 0; policy drop; ct state established accept; ip saddr 10.0.0.0/8 tcp dport { 22, 10250 } accept; }`, nil},
		"SSH undecided":        {`chain c { type filter hook input priority 0; policy drop; ct state established accept; numgen random mod 2 0 tcp dport 22 accept; tcp dport 10250 accept; }`, nil},
		"no answers":           {`chain c { type filter hook input priority 0; policy drop; tcp dport { 22, 10250 } accept; }`, []string{"cut-off"}},
		"no output":            {`chain c { type filter hook output priority 0; policy drop; ct state established accept; }`, []string{"cut-off"}},
		"nothing":              {`chain c { type filter hook input priority 0; drop; }`, []string{"cut-off", "cut-off", "cut-off"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "table inet t {\n" + tt.rules + "\n}\n"
			var got []string
			for _, f := range lint.Run(parse(t, "t", text), lint.Options{Needs: lint.NodeNeeds}) {
				t.Log(f.String())
				got = append(got, string(f.ID))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %q: want %q", got, tt.want)
			}
		})
	}
}
