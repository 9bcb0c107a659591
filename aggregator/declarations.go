package aggregator

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
)

// declarations are what a fragment declares, by table: what the elements of its
// patches are packed with, and the words to give back in Get. Values are
// immutable; a change makes a new one.
type declarations map[nft.TableID]tableDeclarations

type tableDeclarations struct {
	sets map[string]setDeclaration
	// chains are without their rules.
	chains    map[string]nft.Chain
	conntrack map[string]bool
	affinity  map[string]bool
}

// setDeclaration is a set or map, as it was written (without its elements) and
// compiled.
type setDeclaration struct {
	source   nft.Set
	compiled *compile.Set
}

func (d declarations) set(table nft.TableID, name string) (*compile.Set, bool) {
	s, ok := d[table].sets[name]
	return s.compiled, ok
}

func (d declarations) conntrackMaps(table nft.TableID) map[string]bool { return d[table].conntrack }

func (d declarations) affinityMaps(table nft.TableID) map[string]bool { return d[table].affinity }

// after returns the declarations as an admitted update leaves them (nil where
// they stay as they are), and whether it changes those of sets or maps.
func (d declarations) after(a *admission) (_ declarations, changed bool) {
	out := declarations{}
	if !a.snapshot {
		touched := false
		for _, t := range a.tables {
			changed = changed || len(t.sets) > 0 || len(t.deleteSets) > 0
			touched = touched || d[t.id].redeclares(t) || len(t.deleteChains) > 0
		}
		if !changed && !touched {
			return nil, false
		}
		maps.Copy(out, d)
	}
	for _, t := range a.tables {
		out[t.id] = out[t.id].after(t)
	}
	return out, changed || a.snapshot
}

// redeclares reports whether the chains of an update are declared in another way
// than they are. To put other rules into a chain is the usual case, and must not copy
// what else there is.
func (d tableDeclarations) redeclares(t *tableAdmission) bool {
	if len(t.chains) > 0 && (len(t.conntrack) != len(d.conntrack) || len(t.affinity) != len(d.affinity)) {
		return true
	}
	return slices.ContainsFunc(t.chains, func(c *chainAdmission) bool {
		was, ok := d.chains[c.source.Name]
		return !ok || !sameDeclaration(was, c.source)
	})
}

// sameDeclaration compares chains without their rules.
func sameDeclaration(a, b nft.Chain) bool {
	return a.Type == b.Type && a.Hook == b.Hook && a.Priority == b.Priority && a.Policy == b.Policy && a.Device == b.Device && a.Comment == b.Comment &&
		slices.Equal(a.Devices, b.Devices) && slices.Equal(a.Flags, b.Flags)
}

// after returns a table's declarations as the update leaves them.
func (d tableDeclarations) after(t *tableAdmission) tableDeclarations {
	n := tableDeclarations{
		sets:      make(map[string]setDeclaration, len(d.sets)+len(t.sets)),
		chains:    make(map[string]nft.Chain, len(d.chains)+len(t.chains)),
		conntrack: make(map[string]bool),
		affinity:  make(map[string]bool),
	}
	maps.Copy(n.sets, d.sets)
	maps.Copy(n.chains, d.chains)
	maps.Copy(n.conntrack, d.conntrack)
	maps.Copy(n.conntrack, t.conntrack)
	maps.Copy(n.affinity, d.affinity)
	maps.Copy(n.affinity, t.affinity)
	for _, name := range t.deleteSets {
		delete(n.sets, name)
		if t.setByName[name] == nil {
			// Else the same update declares it again.
			delete(n.conntrack, name)
			delete(n.affinity, name)
		}
	}
	for _, name := range t.deleteChains {
		delete(n.chains, name)
	}
	for _, s := range t.sets {
		n.sets[s.source.Name] = setDeclaration{source: s.source, compiled: s.decl}
	}
	for _, c := range t.chains {
		n.chains[c.source.Name] = c.source
	}
	return n
}
