package kernel

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// testTable is the table of most tests.
func testTable() nft.TableID { return nft.TableID{Family: nft.FamilyIP, Name: "weft"} }

// open opens a Conn in a namespace.
func open(t testing.TB, ns *nfttest.NS, cfg Config) *Conn {
	t.Helper()
	cfg.NetNS = ns.FD()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// commit commits ops, and ends the test if that fails.
func commit(t testing.TB, c *Conn, ops ...Op) Stats {
	t.Helper()
	stats, err := c.Commit(ops)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return stats
}

// mapOf compiles a map.
func mapOf(t testing.TB, m nft.Map) *set.Set {
	t.Helper()
	set, err := set.CompileMap(nft.FamilyIP, &m)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// setOf compiles a set.
func setOf(t testing.TB, s nft.Set) *set.Set {
	t.Helper()
	set, err := set.Compile(nft.FamilyIP, &s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// pack packs elements of the form "key" or "key : value".
func pack(t testing.TB, s *set.Set, texts ...string) []set.Element {
	t.Helper()
	elements := make([]set.Element, len(texts))
	for i, text := range texts {
		key, value, _ := strings.Cut(text, " : ")
		e, err := s.Pack(nft.Element{Key: key, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		elements[i] = e
	}
	return elements
}

// chain returns a regular chain.
func chain(name string) *object.Chain { return &object.Chain{Name: name} }

// ruleOf compiles a rule.
func ruleOf(t testing.TB, text, comment string) *compile.Rule {
	t.Helper()
	rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text, Comment: comment}, anyScope{})
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// anyScope is a compile.Scope with all chains and without sets.
type anyScope struct{}

func (anyScope) Set(string) (*set.Set, bool)        { return nil, false }
func (anyScope) Chain(string) bool                  { return true }
func (anyScope) Object(nft.ObjectKind, string) bool { return true }
func (anyScope) Flowtable(string) bool              { return true }

// contains checks that text has all the lines, with any indentation.
func contains(t testing.TB, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("missing %q in:\n%s", line, text)
		}
	}
}
