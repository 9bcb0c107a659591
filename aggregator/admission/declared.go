package admission

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Declared is what a fragment declares, by table: the elements of its patches
// are packed with it, and Get prints it. Values are immutable. A change makes a
// new one.
type Declared map[nft.TableID]DeclaredTable

// DeclaredTable is the part of Declared in one table.
type DeclaredTable struct {
	Sets map[string]DeclaredSet
	// Chains are without their rules.
	Chains    map[string]nft.Chain
	conntrack map[string]bool
	affinity  map[string]bool
}

// DeclaredSet is a set or map, as it was written (without elements) and
// compiled.
type DeclaredSet struct {
	Source   nft.Set
	compiled *set.Set
}

// Set returns the declaration of a set or map.
func (d Declared) Set(table nft.TableID, name string) (*set.Set, bool) {
	s, ok := d[table].Sets[name]
	return s.compiled, ok
}

func (d Declared) conntrackMaps(table nft.TableID) map[string]bool { return d[table].conntrack }

func (d Declared) affinityMaps(table nft.TableID) map[string]bool { return d[table].affinity }

// Declared returns the fragment's declarations after the update (nil if they
// stay as they are), and whether the update changes those of sets or maps.
func (b *Builder) Declared() (_ Declared, changed bool) {
	out := Declared{}
	if !b.snapshot {
		touched := false
		for _, t := range b.tables {
			changed = changed || len(t.sets) > 0 || len(t.deleteSets) > 0
			touched = touched || b.own[t.id].redeclares(t) || len(t.deleteChains) > 0
		}
		if !changed && !touched {
			return nil, false
		}
		maps.Copy(out, b.own)
	}
	for _, t := range b.tables {
		out[t.id] = out[t.id].after(t)
	}
	return out, changed || b.snapshot
}

// redeclares reports whether an update changes the declarations of chains.
// Replacing the rules of a chain is the usual case, and must not cost a copy of
// all declarations.
func (d DeclaredTable) redeclares(t *tablePart) bool {
	if len(t.chains) > 0 && (len(t.conntrack) != len(d.conntrack) || len(t.affinity) != len(d.affinity)) {
		return true
	}
	return slices.ContainsFunc(t.chains, func(c *chainPart) bool {
		was, ok := d.Chains[c.source.Name]
		return !ok || !sameDeclaration(was, c.source)
	})
}

// sameDeclaration compares chains without their rules.
func sameDeclaration(a, b nft.Chain) bool {
	return a.Type == b.Type && a.Hook == b.Hook && a.Priority == b.Priority && a.Policy == b.Policy && a.Device == b.Device && a.Comment == b.Comment &&
		slices.Equal(a.Devices, b.Devices) && slices.Equal(a.Flags, b.Flags)
}

// after returns a table's declarations after the update.
func (d DeclaredTable) after(t *tablePart) DeclaredTable {
	n := DeclaredTable{
		Sets:      make(map[string]DeclaredSet, len(d.Sets)+len(t.sets)),
		Chains:    make(map[string]nft.Chain, len(d.Chains)+len(t.chains)),
		conntrack: make(map[string]bool),
		affinity:  make(map[string]bool),
	}
	maps.Copy(n.Sets, d.Sets)
	maps.Copy(n.Chains, d.Chains)
	maps.Copy(n.conntrack, d.conntrack)
	maps.Copy(n.conntrack, t.conntrack)
	maps.Copy(n.affinity, d.affinity)
	maps.Copy(n.affinity, t.affinity)
	for _, name := range t.deleteSets {
		delete(n.Sets, name)
		if t.setByName[name] == nil {
			// Else the same update declares it again.
			delete(n.conntrack, name)
			delete(n.affinity, name)
		}
	}
	for _, name := range t.deleteChains {
		delete(n.Chains, name)
	}
	for _, s := range t.sets {
		n.Sets[s.source.Name] = DeclaredSet{Source: s.source, compiled: s.decl}
	}
	for _, c := range t.chains {
		n.Chains[c.source.Name] = c.source
	}
	return n
}
