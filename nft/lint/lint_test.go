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
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// parse compiles a ruleset.
func parse(name, text string) *eval.Ruleset {
	return nfttest.Must(load.Tables(load.Part{Tables: nfttest.Must(ruleset.Parse(name, text))}))
}

// summary returns a finding as "ID: PARTY, PARTY".
func summary(f *lint.Finding) string {
	party := func(p lint.Place) string {
		switch {
		case p.Table.Name == "":
			return p.Chain // what the node needs
		case p.Party.Fragment == "" && p.Party.Program == "":
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

// TestPublicIssues runs lint on rulesets of public issues; each file has its findings.
func TestPublicIssues(t *testing.T) {
	files, err := filepath.Glob("testdata/issues/*.nft")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v: want at least 10", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := nfttest.Must(os.ReadFile(file))
			var want, got []string
			for line := range strings.Lines(string(text)) {
				if rest, ok := strings.CutPrefix(line, "# finds "); ok {
					want = append(want, strings.TrimSpace(rest))
				}
			}
			found := lint.Run(parse(file, string(text)), lint.Options{Needs: lint.NodeNeeds})
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

// TestStockRulesets tests that rulesets of distributions and products have no findings.
func TestStockRulesets(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/stock/*.nft", "../eval/testdata/stock/*.nft"} {
		found := nfttest.Must(filepath.Glob(pattern))
		files = append(files, found...)
	}
	if len(files) < 17 { // and those of iptables, see TestStockIPTables
		t.Fatalf("%d files: want at least 17", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := nfttest.Must(os.ReadFile(file))
			found := lint.Run(parse(file, string(text)), lint.Options{})
			for i := range found {
				t.Errorf("%s", found[i].String())
			}
		})
	}
}

// TestRules tests the findings of each kind, and silencing.
func TestRules(t *testing.T) {
	for name, tt := range map[string]struct {
		rules string
		want  []string
	}{
		"contradiction":        {`chain c { tcp dport 80 tcp dport 81 accept; }`, []string{"never-matches"}},
		"outside the range":    {`chain c { tcp dport 80-90 tcp dport 100 accept; }`, []string{"never-matches"}},
		"not equal":            {`chain c { tcp dport 80 tcp dport != 80 accept; }`, []string{"never-matches"}},
		"after a load":         {`chain c { meta l4proto tcp socket transparent 1 accept; tcp dport 22 ipsec in reqid 1 accept; tcp dport 22 osf name "Linux" accept; iifname "eth0" ip option lsrr exists rt type 0 drop; }`, nil},
		"set and matched":      {`chain c { meta mark 0 meta mark set 1 jump d; }; chain d { meta mark 1 accept; }`, nil},
		"IPv6 alone":           {`}; table ip6 u { chain c { type filter hook input priority 0; drop; }`, nil},
		"marks of one author":  {`chain c { meta mark set 1; meta mark 1 accept; }; }; table ip u { chain c { meta mark set 1; meta mark 1 accept; }`, nil},
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
		"SSH from a set":       {`set s { type ipv4_addr; }; chain c { type filter hook input priority 0; policy drop; ct state established accept; tcp dport { 22, 10250 } ip saddr @s accept; }`, nil},
		"another from a set":   {`set s { type ipv4_addr; }; chain c { type filter hook input priority 0; policy drop; ct state established accept; tcp dport 10250 accept; tcp dport { 80, 443 } ip saddr @s accept; }`, []string{"cut-off"}},
		"SSH undecided":        {`chain c { type filter hook input priority 0; policy drop; ct state established accept; numgen random mod 2 0 tcp dport 22 accept; tcp dport 10250 accept; }`, nil},
		"no answers":           {`chain c { type filter hook input priority 0; policy drop; tcp dport { 22, 10250 } accept; }`, []string{"cut-off"}},
		"no output":            {`chain c { type filter hook output priority 0; policy drop; ct state established accept; }`, []string{"cut-off"}},
		"nothing":              {`chain c { type filter hook input priority 0; drop; }`, []string{"cut-off", "cut-off", "cut-off"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "table inet t {\n" + tt.rules + "\n}\n"
			var got []string
			for _, f := range lint.Run(parse("t", text), lint.Options{Needs: lint.NodeNeeds}) {
				t.Log(f.String())
				got = append(got, string(f.ID))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %q: want %q", got, tt.want)
			}
		})
	}
}

// TestFindingText: a finding says the cause, then the remedy, then the rules with their tables and chains, then a packet.
// A party of which the reader may not see the rules is named all the same.
func TestFindingText(t *testing.T) {
	for name, tt := range map[string]struct{ rules, want string }{
		"accept-overridden": {
			`table inet web { chain in { type filter hook input priority -10; tcp dport 443 accept; }; }
			table inet host { chain input { type filter hook input priority 0; policy drop; tcp dport { 22, 10250 } accept; ct state established accept; }; }`,
			`accept-overridden: table inet host drops packets that fragment a/web accepts, and an accept ends its own base chain only. Accept them in chain input of table inet host too, or narrow its drop.
  "tcp dport 443 accept" in chain in of table inet web (fragment a/web)
  the policy of chain input of table inet host
  for example: TCP from 198.51.100.77:40123 to 203.0.113.99:443, the first of its connection`,
		},
		"equal-priority": {
			`table ip web { chain pre { type nat hook prerouting priority -100; tcp dport 80 dnat to 10.0.0.1; }; }
			table ip cni_hostport { chain pre { type nat hook prerouting priority -100; tcp dport 80 dnat to 10.0.0.2; }; }`,
			`equal-priority: CNI plugins and fragment a/web translate the same packets at hook prerouting with the same priority -100: which one does depends on which was loaded last. Give the chain that must decide a smaller priority, or exclude its packets from the other.
  "tcp dport 80 dnat to 10.0.0.2" in chain pre of table ip cni_hostport (CNI plugins)
  "tcp dport 80 dnat to 10.0.0.1" in chain pre of table ip web (fragment a/web)
  for example: TCP from 198.51.100.77:40123 to 203.0.113.99:80, the first of its connection`,
		},
		"mark-collision": {
			`table ip web { chain c { meta mark set meta mark | 0x1; }; }
			table ip other { chain c { meta mark set meta mark | 0x3; }; }`,
			`mark-collision: fragment a/web and table ip other both write bits 0x1 of the packet's mark. Let the parties use different bits, and write and compare only these with a mask.
  "meta mark set meta mark | 0x1" in chain c of table ip web (fragment a/web)
  "meta mark set meta mark | 0x3" in chain c of table ip other`,
		},
		"contradiction": {
			`table ip web { chain c { tcp dport 80 tcp dport 81 accept; }; }`,
			`never-matches: the conditions of a rule of fragment a/web contradict each other, so the rule never matches. Correct the rule, or remove it.
  "tcp dport 80 tcp dport 81 accept" in chain c of table ip web (fragment a/web)`,
		},
		"after the end": {
			`table ip web { chain c { counter drop; tcp dport 80 accept; }; }`,
			`never-matches: a rule of fragment a/web ends the chain for every packet, so a later rule of fragment a/web never matches. Move the later rule to before the other, or remove it.
  "tcp dport 80 accept" in chain c of table ip web (fragment a/web)
  "counter drop" in chain c of table ip web (fragment a/web)`,
		},
		"never-read": {
			`table ip web { set s { type ipv4_addr; elements = { 10.0.0.1 }; }; }`,
			`never-read: no rule reads set s of fragment a/web. Add the rule that should read it, or remove the set.
  set s of table ip web (fragment a/web)`,
		},
		"cut-off": {
			`table ip web { chain in { type filter hook input priority 0; ct state established accept; tcp dport 10250 accept; drop; }; }`,
			`cut-off: fragment a/web drops all connections to TCP port 22, and so cuts the node off from SSH. Accept them in chain in of table ip web before the drop.
  "drop" in chain in of table ip web (fragment a/web)
  for example: TCP from 198.51.100.77:40123 to 203.0.113.99:22, the first of its connection`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := parse(name, tt.rules)
			for i := range rules.Tables {
				table := &rules.Tables[i]
				if table.ID.Name != "web" {
					continue
				}
				for j := range table.Chains {
					table.Chains[j].Owner = "a/web"
				}
				for j := range table.Sets {
					table.Sets[j].Owner = "a/web"
				}
			}
			found := lint.Run(rules, lint.Options{Needs: lint.NodeNeeds})
			if len(found) != 1 {
				t.Fatalf("found %v: want one finding", found)
			}
			if got := found[0].String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			for _, rule := range found[0].Rules(func(lint.Party) bool { return false }) {
				if strings.Contains(rule, `"`) || !strings.Contains(rule, " of table ") {
					t.Errorf("a reader who may not see it sees %s", rule)
				}
			}
		})
	}
}
