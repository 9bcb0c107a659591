package access

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weft-proxy/weft/nft"
)

// SharedPattern names objects that a publisher may share although another publisher declared them
// first. Names are globs.
type SharedPattern struct {
	Table TablePattern
	// Sets are sets and maps, Objects named objects and flowtables.
	Chains, Sets, Objects []string
	// flags of the table; only "dormant"
	Flags []string
}

// String returns the pattern for people: the table, then the kinds of parts with their globs.
func (s SharedPattern) String() string {
	text := s.Table.String()
	for _, part := range []struct {
		kind  string
		globs []string
	}{{"chains", s.Chains}, {"sets", s.Sets}, {"objects", s.Objects}, {"flags", s.Flags}} {
		if len(part.globs) > 0 {
			text += " " + part.kind + " " + strings.Join(part.globs, " ")
		}
	}
	return text
}

// names returns the patterns for a kind of part; the empty kind is the flag dormant.
func (s *SharedPattern) names(kind string) []string {
	switch kind {
	case "":
		return s.Flags
	case "chain":
		return s.Chains
	case "set", "map":
		return s.Sets
	default:
		return s.Objects
	}
}

// Shared returns a Refusal if the publisher may not add or refer to a chain, set or object that
// owner declared first, else nil. An empty kind means the flag dormant of a table with content of
// owner.
func (p *Publisher) Shared(table nft.TableID, kind, name, owner string) *Refusal {
	pattern := name
	if kind == "" {
		pattern = flagDormant
	}
	for i := range p.Allow.Shared {
		s := &p.Allow.Shared[i]
		if s.Table.matches(table) && slices.ContainsFunc(s.names(kind), func(glob string) bool { return matchName(glob, pattern) }) {
			return nil
		}
	}
	asked, allowed := "may not use "+kind+" "+clip(name)+" of table "+clip(table.String()), "publisher "+owner+" declared it first, and no grant names it"
	if kind == "" {
		asked, allowed = "may not make table "+clip(table.String())+" dormant", "publisher "+owner+" has fragments in it, and no grant names the flag"
	}
	return p.refuse(LimitShared, "allow.shared", asked, allowed)
}

func (t TablePattern) matches(id nft.TableID) bool {
	return (t.Family == nil || *t.Family == id.Family) && matchName(t.Name, id.Name)
}

const flagDormant = "dormant"

// shared reads an entry of allow.shared.
func (p *parser) shared(path string, n *yaml.Node) (SharedPattern, bool) {
	var s SharedPattern
	glob := text(p, "a name or a glob of one", checked(checkGlob))
	given := p.mapping(path, n, map[string]field{
		"family":  pointer(&s.Table.Family, text(p, "a family", nft.ParseFamily)),
		"table":   into(&s.Table.Name, text(p, "a table's name or a glob of one", checked(checkGlob))),
		"chains":  listOf(p, &s.Chains, glob),
		"sets":    listOf(p, &s.Sets, glob),
		"objects": listOf(p, &s.Objects, glob),
		"flags":   listOf(p, &s.Flags, text(p, "a flag of tables", checked(checkFlag))),
	})
	switch {
	case given == nil:
	case given["table"] == 0:
		p.Add(n.Line, path, `the entry has no table: give it one, or "*" for each`)
	case given["chains"]+given["sets"]+given["objects"]+given["flags"] == 0:
		p.Add(n.Line, path, "the entry allows nothing: give it chains, sets, objects or flags")
	}
	return s, true
}

func checkFlag(name string) error {
	if name != flagDormant {
		return fmt.Errorf("unknown flag %q: want %s", clip(name), flagDormant)
	}
	return nil
}
