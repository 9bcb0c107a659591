package access

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// SharedPattern names objects that may be shared although another publisher declared them first.
// Names are globs.
type SharedPattern struct {
	// nil means every family
	Family *nft.Family `json:"family" text:"family"`
	Table  string      `json:"table" text:"glob"`
	Chains []string    `json:"chains" text:"glob"`
	// sets and maps
	Sets []string `json:"sets" text:"glob"`
	// named objects and flowtables
	Objects []string `json:"objects" text:"glob"`
	// only "dormant"
	Flags []string `json:"flags" text:"flag"`
}

func (s *SharedPattern) table() TablePattern { return TablePattern{s.Family, s.Table} }

// String returns the table, then the kinds of parts with their globs.
func (s SharedPattern) String() string {
	text := s.table().String()
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

// names returns the patterns for a kind; the empty kind is the flag dormant.
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

// Shared refuses to add or refer to a chain, set or object first declared by owner. An empty kind
// means the flag dormant of a table with content of owner.
func (p *Publisher) Shared(table nft.TableID, kind, name, owner string) *Refusal {
	pattern := name
	if kind == "" {
		pattern = flagDormant
	}
	for i := range p.Allow.Shared {
		s := &p.Allow.Shared[i]
		if s.table().matches(table) && slices.ContainsFunc(s.names(kind), func(glob string) bool { return matchName(glob, pattern) }) {
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
