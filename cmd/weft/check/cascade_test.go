package check

import (
	"errors"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/nft/ruleset"
)

// TestNothingFollows checks files of which each error is reported once, and nothing that
// follows from it.
func TestNothingFollows(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"names": {`table ip t {
	chain a { jump nope; }
	chain b { tcp dport 22 jump nope; ip saddr @nah drop; ip saddr @nah accept; }
	map m { type inet_service : verdict; elements = { 22 : jump also, 23 : jump also }; }
}`, []string{
			`f:2:12: chain "nope" is not declared in this table`,
			`f:3:45: set or map @nah is not declared in this table`,
			`f:4:52: unknown chain "also"`,
		}},
		"declarations": {`table ip t {
	chain a { type filter hook input priority $X; policy drop; jump b; }
	chain b { type filter hook nowhere priority 0; policy drop; jump a; }
	set s { type ipv4_addr; nonsense; elements = { 192.0.2.300 }; }
	chain c { ip saddr @s jump a; }
	counter k { $X }
	chain d { counter name k; }
	flowtable f { hook ingress priority $X; devices = { lo }; }
	chain e { flow add @f; }
}`, []string{
			`f:2:44: unknown variable $X: define it before its use`,
			`f:3:8: compile chain b: unknown hook "nowhere" in family ip: want prerouting, input, forward, output, postrouting`,
			`f:4:26: unexpected "nonsense" in a set: want type, typeof, flags, timeout, gc-interval, size, policy, auto-merge, comment, elements, counter, limit, quota or ct count`,
		}},
		"not read": {`table ip t {
	chain a { jump later; }
	}
	chain later { accept; }
}`, []string{`f:4:8: later is in no table: a "}" before it is too much`}},
		"include": {`include "/abs"
table ip t { chain a { jump there; }; }`, []string{`f:1:1: include "/abs": gone`}},
		"anonymous": {`table ip t {
	chain a { tcp dport 22 jump { iifname drop; accept; }; tcp dport 23 jump { drop; } counter; }
}`, []string{
			`f:2:40: drop is a keyword: a name is missing before it, or it is a name and needs double quotes`,
			`f:2:85: statement after a terminal statement has no effect`,
		}},
	} {
		open := func(string, string) ([]ruleset.SourceFile, error) { return nil, errors.New("gone") }
		var got []string
		for _, p := range Run([]File{{Name: "f", Text: c.text, Open: open}}).Problems {
			got = append(got, p.File+":"+p.Err.Pos.String()+": "+p.Err.Msg)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}
