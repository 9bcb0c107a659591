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
	"github.com/weft-proxy/weft/nft/ruleset"
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
	rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text, Comment: comment}, setsScope{})
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// setsScope is a compile.Scope with some sets, and all chains, objects and flowtables.
type setsScope map[string]*set.Set

func (s setsScope) Set(name string) (*set.Set, bool) { set, ok := s[name]; return set, ok }
func (setsScope) Chain(string) bool                  { return true }
func (setsScope) Object(nft.ObjectKind, string) bool { return true }
func (setsScope) Flowtable(string) bool              { return true }

// declared is a compiled table without its rules. It implements compile.Scope: all chains exist.
type declared struct {
	setsScope
	table      nft.Table
	sets       []Set
	objects    []*object.Object
	flowtables []*object.Flowtable
	chains     []*object.Chain
}

// declare compiles a table.
func declare(t nft.Table) (*declared, error) {
	d := &declared{table: t, setsScope: setsScope{}}
	var errs []error
	add := func(decl *set.Set, err error, elements []nft.Element) {
		if errs = append(errs, err); err != nil {
			return
		}
		s := Set{Decl: decl}
		for _, e := range elements {
			p, err := decl.Pack(e)
			s.Elements, errs = append(s.Elements, p), append(errs, err)
		}
		s.Elements, err = decl.Normalize(s.Elements)
		d.sets, d.setsScope[decl.Name], errs = append(d.sets, s), decl, append(errs, err)
	}
	for i, s := range t.Sets {
		decl, err := set.Compile(t.Family, &t.Sets[i])
		add(decl, err, s.Elements)
	}
	for i, m := range t.Maps {
		decl, err := set.CompileMap(t.Family, &t.Maps[i])
		add(decl, err, m.Elements)
	}
	for i := range t.Objects {
		o, err := object.Compile(t.Family, &t.Objects[i])
		d.objects, errs = append(d.objects, o), append(errs, err)
	}
	for i := range t.Flowtables {
		f, err := object.CompileFlowtable(&t.Flowtables[i])
		d.flowtables, errs = append(d.flowtables, f), append(errs, err)
	}
	for i := range t.Chains {
		c, err := object.CompileChain(t.Family, &t.Chains[i])
		d.chains, errs = append(d.chains, c), append(errs, err)
	}
	return d, errors.Join(errs...)
}

// Object implements compile.Scope.
func (d *declared) Object(kind nft.ObjectKind, name string) bool {
	return slices.ContainsFunc(d.objects, func(o *object.Object) bool { return o.Kind == kind && o.Name == name })
}

// Flowtable implements compile.Scope.
func (d *declared) Flowtable(name string) bool {
	return slices.ContainsFunc(d.flowtables, func(f *object.Flowtable) bool { return f.Name == name })
}

// ops returns the ops that create the table.
func (d *declared) ops() []Op {
	id := d.table.ID()
	ops := []Op{AddTable{Table: id, Comment: d.table.Comment, Dormant: slices.Contains(d.table.Flags, "dormant")}}
	for _, o := range d.objects {
		ops = append(ops, AddObject{Table: id, Object: o})
	}
	for _, f := range d.flowtables {
		ops = append(ops, AddFlowtable{Table: id, Flowtable: f})
	}
	for _, c := range d.chains {
		ops = append(ops, AddChain{Table: id, Chain: c})
	}
	for _, s := range d.sets {
		ops = append(ops, AddSet{Table: id, Set: s.Decl})
	}
	for _, s := range d.sets {
		if len(s.Elements) > 0 {
			ops = append(ops, AddElements{Table: id, Set: s.Decl, Elements: s.Elements})
		}
	}
	return ops
}

// declareFile compiles the tables of a file.
func declareFile(t testing.TB, text string) []*declared {
	t.Helper()
	tables, err := ruleset.Parse("", text)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*declared, len(tables))
	for i := range tables {
		if out[i], err = declare(tables[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// opsOf returns the ops that create the declarations of a file.
func opsOf(t testing.TB, text string) (ops []Op) {
	t.Helper()
	for _, d := range declareFile(t, text) {
		ops = append(ops, d.ops()...)
	}
	return ops
}

// setOption sets the size of a socket buffer; the Conn does not size it again.
func setOption(t *testing.T, c *Conn, option, value int) {
	t.Helper()
	var failed error
	err := c.sock.raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, value) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
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
