package compile

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// statements has a statement of each type of package syntax, by its first words in LANGUAGE.md.
var statements = map[string]syntax.Stmt{
	"match": &syntax.Match{}, "verdict": &syntax.Verdict{}, "vmap": &syntax.Vmap{}, "reject": &syntax.Reject{},
	"counter": &syntax.Counter{}, "limit": &syntax.Limit{}, "quota": &syntax.Quota{}, "ct count": &syntax.ConnLimit{}, "meter": &syntax.Meter{},
	"log":  &syntax.Log{},
	"dnat": &syntax.NAT{Kind: "dnat"}, "snat": &syntax.NAT{Kind: "snat"}, "masquerade": &syntax.NAT{Kind: "masquerade"}, "redirect": &syntax.NAT{Kind: "redirect"},
	"tproxy":  &syntax.TProxy{},
	"notrack": &syntax.Notrack{}, "reset tcp option": &syntax.ResetOption{},
	"dup": &syntax.Dup{}, "fwd": &syntax.Fwd{}, "queue": &syntax.Queue{}, "flow add": &syntax.FlowAdd{}, "synproxy": &syntax.SynProxy{},
}

// otherStatements have their classes from other tables (assignments, references to objects) or from
// SetClass. Extensions of iptables are not compiled.
var otherStatements = []string{"Assign", "ObjectRef", "Dynamic", "XT"}

// TestEveryStatementHasAClass finds the statements in the source of package syntax.
func TestEveryStatementHasAClass(t *testing.T) {
	files, err := filepath.Glob("../syntax/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	types := map[string]bool{}
	for words, s := range statements {
		types[strings.TrimPrefix(fmt.Sprintf("%T", s), "*syntax.")] = true
		if classOf(s) == 0 {
			t.Errorf("statement %s has no class", words)
		}
	}
	for _, name := range otherStatements {
		types[name] = true
	}
	found := 0
	for _, name := range files {
		file := nfttest.Must(parser.ParseFile(token.NewFileSet(), name, nil, 0))
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "printStmt" {
				continue
			}
			found++
			if typ := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !types[typ] {
				t.Errorf("statement %s has no class: add it to kind.go and to this test", typ)
			}
		}
	}
	if found != len(types) {
		t.Errorf("%d statements in the source, and %d here", found, len(types))
	}
	for _, kind := range nft.ObjectKinds {
		if ObjectClass(kind) == 0 || classOf(&syntax.ObjectRef{Kind: kind}) != ObjectClass(kind) {
			t.Errorf("object %s has no class", kind)
		}
	}
	if len(objectClasses) != len(nft.ObjectKinds) {
		t.Errorf("%d kinds of objects have a class, and there are %d", len(objectClasses), len(nft.ObjectKinds))
	}
}

// TestEverySelectorHasAClass finds all settable keys and fields of package selector.
func TestEverySelectorHasAClass(t *testing.T) {
	class := func(x syntax.Expr) nft.Class { return classOf(&syntax.Assign{Target: x}) }
	settable := map[string]int{}
	for table, keys := range map[string]selector.Keys{"meta": selector.MetaKeys, "ct": selector.CTKeys} {
		for i := range keys {
			if !keys[i].Settable {
				continue
			}
			settable[table]++
			var x syntax.Expr = &syntax.Meta{Key: keys[i].Name}
			if table == "ct" {
				x = &syntax.CT{Key: keys[i].Name}
			}
			if class(x) == 0 {
				t.Errorf("%s %s set has no class", table, keys[i].Name)
			}
		}
		if settable[table] != len(keyClasses[table]) {
			t.Errorf("%d keys of %s can be set, and %d have a class", settable[table], table, len(keyClasses[table]))
		}
	}
	for _, h := range selector.Headers {
		for _, name := range mangleFields[h.Name] {
			if h.Field(name) == nil {
				t.Errorf("header %s has no field %s", h.Name, name)
			}
		}
		for i := range h.Fields {
			if class(&syntax.Payload{Proto: h.Name, Field: h.Fields[i].Name}) == 0 {
				t.Errorf("%s %s set has no class", h.Name, h.Fields[i].Name)
			}
		}
	}
	if class(&syntax.RawPayload{}) == 0 || class(&syntax.Exthdr{}) == 0 {
		t.Error("raw payload or TCP options have no class")
	}
	if class(&syntax.FIB{}) != 0 {
		t.Error("fib cannot be set, and has a class")
	}
}

// TestClassesAreDocumented compares the tables with LANGUAGE.md.
func TestClassesAreDocumented(t *testing.T) {
	doc := nfttest.Must(os.ReadFile("../LANGUAGE.md"))
	if want := classTable(); !strings.Contains(string(doc), want) {
		t.Errorf("LANGUAGE.md does not have this table:\n%s", want)
	}
}

// classTable is the table of LANGUAGE.md.
func classTable() string {
	var b strings.Builder
	b.WriteString("| class | statements and declarations |\n| --- | --- |\n")
	for _, c := range nft.Classes() {
		var list []string
		add := func(format string, names ...string) {
			if len(names) > 0 {
				list = append(list, fmt.Sprintf(format, strings.Join(names, "`, `")))
			}
		}
		var words []string
		for first, s := range statements {
			if classOf(s) == c {
				words = append(words, first)
			}
		}
		slices.Sort(words)
		add("`%s`", words...)
		for _, table := range []string{"meta", "ct"} {
			add(table+" `%s`", namesOf(keyClasses[table], c)...)
		}
		for _, h := range selector.Headers {
			var fields []string
			for _, f := range h.Fields {
				if classOf(&syntax.Assign{Target: &syntax.Payload{Proto: h.Name, Field: f.Name}}) == c {
					fields = append(fields, f.Name)
				}
			}
			slices.Sort(fields)
			add(h.Name+" `%s`", fields...)
		}
		switch c {
		case nft.ClassMangle:
			list = append(list, "fields of TCP options")
		case nft.ClassNAT:
			list = append(list, "raw payload", "maps with data of other types than this table names", "maps of role conntrack", "base chains of type nat")
		case nft.ClassRoute:
			list = append(list, "base chains of type route")
		case nft.ClassPolicyDrop:
			list = append(list, "base chains with policy drop")
		case nft.ClassFlowtables:
			list = append(list, "flowtables")
		case nft.ClassFilter:
			list = append(list, "`add`, `update` and `delete` of elements of sets", "sets, verdict maps")
		}
		add("objects `%s` and their maps", objectNames(c)...)
		add("maps of `%s`", namesOf(dataClasses, c)...)
		fmt.Fprintf(&b, "| `%s` | %s |\n", c, strings.Join(list, "; "))
	}
	return b.String()
}

// namesOf returns the sorted names that have a class.
func namesOf[K cmp.Ordered](table map[K]nft.Class, c nft.Class) []K {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(table)), func(name K) bool { return table[name] != c })
}

func objectNames(c nft.Class) []string {
	var names []string
	for _, kind := range namesOf(objectClasses, c) {
		names = append(names, string(kind))
	}
	return names
}
