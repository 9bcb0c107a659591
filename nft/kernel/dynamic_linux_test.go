package kernel

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestRulesThatChangeSets tests that a rule that changes a set compiles if, and only if, the
// kernel accepts it: it cannot change the fixed table or the bitmap that it chooses for some
// sets without flags.
func TestRulesThatChangeSets(t *testing.T) {
	for _, tt := range []struct {
		decl nft.Set
		key  string
		ok   bool
	}{
		{nft.Set{Type: "ipv4_addr"}, "ip saddr", true},
		{nft.Set{Type: "ipv4_addr", Size: 100}, "ip saddr", false},
		{nft.Set{Type: "ipv4_addr", Size: 100, Flags: []string{"dynamic"}}, "ip saddr", true},
		{nft.Set{Type: "ipv4_addr", Size: 100, Flags: []string{"timeout"}}, "ip saddr", true},
		{nft.Set{Type: "inet_service"}, "tcp dport", false},
		{nft.Set{Type: "inet_service", Flags: []string{"dynamic"}}, "tcp dport", true},
	} {
		tt.decl.Name = "s"
		s := setOf(t, tt.decl)
		text := "add @s { " + tt.key + " }"
		rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, setsScope{"s": s})
		if !tt.ok {
			if err == nil || !strings.Contains(err.Error(), "declare it with flags dynamic") {
				t.Errorf("%+v: error %v", tt.decl, err)
			}
			// The rule for a set that says so, on this one.
			dynamic := *s
			dynamic.Flags |= set.FlagEval
			rule, err = compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, setsScope{"s": &dynamic})
		}
		if err != nil {
			t.Errorf("%+v: error %v", tt.decl, err)
			continue
		}
		c := open(t, nfttest.New(t), Config{})
		id := testTable()
		_, err = c.Commit([]Op{AddTable{Table: id}, AddSet{Table: id, Set: s}, AddChain{Table: id, Chain: chain("c")}, AddRule{Table: id, Chain: "c", Rule: rule, Handle: &Handle{}}})
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("%+v: the kernel's answer is %v, want one that it accepts: %t", tt.decl, err, tt.ok)
		}
	}
}
