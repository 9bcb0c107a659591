package kernel

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// testTable is the table of most tests.
func testTable() nft.TableID { return nft.TableID{Family: nft.FamilyIP, Name: "weft"} }

// open opens a Conn in a namespace.
func open(t testing.TB, ns *nfttest.NS, cfg Config) *Conn {
	t.Helper()
	cfg.NetNS = ns.FD()
	c := nfttest.Must(Open(cfg))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connect opens a Conn in a namespace of its own.
func connect(t testing.TB, cfg Config) (*nfttest.NS, *Conn) {
	t.Helper()
	ns := nfttest.New(t)
	return ns, open(t, ns, cfg)
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
func mapOf(m nft.Map) *set.Set {
	return nfttest.Must(set.CompileMap(nft.FamilyIP, &m))
}

// setOf compiles a set.
func setOf(s nft.Set) *set.Set {
	return nfttest.Must(set.Compile(nft.FamilyIP, &s))
}

// pack packs elements of the form "key" or "key : value".
func pack(s *set.Set, texts ...string) []set.Element {
	elements := make([]set.Element, len(texts))
	for i, text := range texts {
		key, value, _ := strings.Cut(text, " : ")
		elements[i] = nfttest.Must(s.Pack(nft.Element{Key: key, Value: value}))
	}
	return elements
}

// chain returns a regular chain.
func chain(name string) *object.Chain { return &object.Chain{Name: name} }

// ruleOf compiles a rule.
func ruleOf(text, comment string) *compile.Rule {
	return nfttest.Must(compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text, Comment: comment}, declared.Sets{}))
}

// opsOf returns the ops that create the declarations of a file.
func opsOf(text string) (ops []Op) {
	for _, table := range declared.Parse(text) {
		ops = append(ops, opsOfTable(table)...)
	}
	return ops
}

// opsOfTable returns the ops that create a table without its rules.
func opsOfTable(t *declared.Table) []Op {
	id := t.Decl.ID()
	ops := []Op{AddTable{Table: id, Comment: t.Decl.Comment, Dormant: slices.Contains(t.Decl.Flags, "dormant")}}
	for _, o := range t.Objects {
		ops = append(ops, AddObject{Table: id, Object: o})
	}
	for _, f := range t.Flowtables {
		ops = append(ops, AddFlowtable{Table: id, Flowtable: f})
	}
	for _, c := range t.Chains {
		ops = append(ops, AddChain{Table: id, Chain: c})
	}
	for _, s := range t.Contents {
		ops = append(ops, AddSet{Table: id, Set: s.Decl})
	}
	for _, s := range t.Contents {
		if len(s.Elements) > 0 {
			ops = append(ops, AddElements{Table: id, Set: s.Decl, Elements: s.Elements})
		}
	}
	return ops
}

// setOption sets the size of a socket buffer; the Conn does not size it again.
func setOption(t *testing.T, c *Conn, option, value int) {
	t.Helper()
	var failed error
	err := c.sock.raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, value) })
	nfttest.NoError(t, errors.Join(err, failed))
	if option == unix.SO_RCVBUF {
		c.sock.recvSize = 1 << 30
	} else {
		c.sock.sendSize = 1 << 30
	}
}

// contains checks that text has all the lines, with any indentation.
func contains(t testing.TB, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("missing %q in:\n%s", line, text)
		}
	}
}
