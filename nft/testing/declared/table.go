package declared

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// Sets is a scope of some sets, and of all chains, objects and flowtables.
type Sets map[string]*set.Set

// Set is a method of the scope, like those below.
func (s Sets) Set(name string) (*set.Set, bool) { d, ok := s[name]; return d, ok }

// Chain returns true.
func (Sets) Chain(string) bool { return true }

// Object returns true.
func (Sets) Object(nft.ObjectKind, string) bool { return true }

// Flowtable returns true.
func (Sets) Flowtable(string) bool { return true }

// Set is a compiled set or map.
type Set struct {
	Decl     *set.Set
	Elements []set.Element
}

// Table is a table with compiled declarations. As a scope it has all chains, and what it declares.
type Table struct {
	Sets
	Decl       nft.Table
	Contents   []Set
	Chains     []*object.Chain
	Objects    []*object.Object
	Flowtables []*object.Flowtable
}

// Compile compiles the declarations of a table. With an error, the table has those without a mistake.
func Compile(decl nft.Table) (*Table, error) {
	t := &Table{Sets: Sets{}, Decl: decl}
	var errs []error
	for i := range decl.Sets {
		s, err := set.Compile(decl.Family, &decl.Sets[i])
		errs = append(errs, err, t.add(s, decl.Sets[i].Elements))
	}
	for i := range decl.Maps {
		s, err := set.CompileMap(decl.Family, &decl.Maps[i])
		errs = append(errs, err, t.add(s, decl.Maps[i].Elements))
	}
	for i := range decl.Chains {
		c, err := object.CompileChain(decl.Family, &decl.Chains[i])
		t.Chains, errs = append(t.Chains, c), append(errs, err)
	}
	for i := range decl.Objects {
		o, err := object.Compile(decl.Family, &decl.Objects[i])
		t.Objects, errs = append(t.Objects, o), append(errs, err)
	}
	for i := range decl.Flowtables {
		f, err := object.CompileFlowtable(&decl.Flowtables[i])
		t.Flowtables, errs = append(t.Flowtables, f), append(errs, err)
	}
	return t, errors.Join(errs...)
}

func (t *Table) add(s *set.Set, elements []nft.Element) error {
	if s == nil {
		return nil
	}
	t.Sets[s.Name] = s
	packed, err := Pack(s, elements)
	t.Contents = append(t.Contents, Set{s, packed})
	return err
}

// Pack packs elements.
func Pack(s *set.Set, elements []nft.Element) ([]set.Element, error) {
	packed := make([]set.Element, len(elements))
	for i := range elements {
		var err error
		if packed[i], err = s.Pack(elements[i]); err != nil {
			return nil, err
		}
	}
	return s.Normalize(packed)
}

// Object reports whether an object is declared. It need not be one that the family supports.
func (t *Table) Object(kind nft.ObjectKind, name string) bool {
	return slices.ContainsFunc(t.Decl.Objects, func(o nft.Object) bool { return o.Kind == kind && o.Name == name })
}

// Flowtable reports whether a flowtable is declared.
func (t *Table) Flowtable(name string) bool {
	return slices.ContainsFunc(t.Decl.Flowtables, func(f nft.Flowtable) bool { return f.Name == name })
}

// Corpus returns the table of a corpus, without its rules. Its objects are not compiled: a corpus has one list of them
// for several families.
func Corpus(t testing.TB, c *nfttest.Corpus) *Table {
	t.Helper()
	tables, err := ruleset.Parse(c.Name, "table "+c.Family+" t {\n"+strings.Join(c.Decls, "\n")+"\n}\n")
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	objects := tables[0].Objects
	tables[0].Objects = nil
	out, err := Compile(tables[0])
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	out.Decl.Objects = objects
	return out
}

// Parse compiles the tables of a file.
func Parse(text string) []*Table {
	tables := nfttest.Must(ruleset.Parse("", text))
	out := make([]*Table, len(tables))
	for i := range tables {
		out[i] = nfttest.Must(Compile(tables[i]))
	}
	return out
}
