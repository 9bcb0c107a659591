package admission

import (
	"maps"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Declared has the sets and maps that a fragment declares, by table: the elements
// and rules of its next patch are compiled against them. A value is immutable.
type Declared map[nft.TableID]map[string]declaredSet

// declaredSet is a set or map with the lists of maps that name it.
type declaredSet struct {
	decl                *set.Set
	conntrack, affinity bool
}

// Set returns the declaration of a set or map.
func (d Declared) Set(table nft.TableID, name string) (*set.Set, bool) {
	s, ok := d[table][name]
	return s.decl, ok
}

func (d Declared) conntrackMaps(table nft.TableID) map[string]bool {
	return d.named(table, func(s declaredSet) bool { return s.conntrack })
}

func (d Declared) affinityMaps(table nft.TableID) map[string]bool {
	return d.named(table, func(s declaredSet) bool { return s.affinity })
}

func (d Declared) named(table nft.TableID, is func(declaredSet) bool) map[string]bool {
	names := make(map[string]bool)
	for name, s := range d[table] {
		if is(s) {
			names[name] = true
		}
	}
	return names
}

// Declared returns what the fragment declares after the update, and whether the
// update changes that.
func (b *Builder) Declared() (_ Declared, changed bool) {
	changed = b.snapshot
	for _, t := range b.tables {
		changed = changed || len(t.sets) > 0 || len(t.deleteSets) > 0
	}
	if !changed {
		return b.own, false
	}
	out := Declared{}
	maps.Copy(out, b.own)
	for _, t := range b.tables {
		sets := make(map[string]declaredSet, len(b.own[t.id])+len(t.sets))
		maps.Copy(sets, b.own[t.id])
		for _, name := range t.deleteSets {
			delete(sets, name)
		}
		for _, s := range t.sets {
			name := s.source.Name
			sets[name] = declaredSet{decl: s.decl, conntrack: t.conntrack[name], affinity: t.affinity[name]}
		}
		out[t.id] = sets
	}
	return out, true
}
